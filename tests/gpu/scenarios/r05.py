"""R05: as R04 with non_blocking=True, which from pageable memory is not asynchronous: the copy
call itself takes as long, and no synchronisation follows. Cured: pinned, one batch ahead.
"""

from common import Run
from uploads import upload_loop

run = Run("r05", {"a": ["h2d-pageable"]})
upload_loop(run, lambda host: host.to(run.device, non_blocking=True))
