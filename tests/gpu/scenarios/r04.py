"""R04: each micro-batch of 256 MiB goes to the GPU from pageable memory, and the host waits for
it. Cured: pinned, asynchronous, one batch ahead.
"""

from common import Run
from uploads import upload_loop

run = Run("r04", {"a": ["h2d-pageable"]})
upload_loop(run, lambda host: host.to(run.device))
