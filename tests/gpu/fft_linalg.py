"""FFT, linear algebra, sort and scan, sparse, random numbers: many libraries, many names.

Results whose last bits a library does not promise are printed rounded; the sparse
product uses small whole numbers, whose sums are exact in any order.
"""

import torch

from common import DEVICE, referee, setup, show

setup()
signal = torch.randn(8, 4096).to(DEVICE)
odd = torch.randn(4, 1009).to(DEVICE)
image = torch.randn(4, 64, 64).to(DEVICE)
square = (torch.randn(64, 64) + 8 * torch.eye(64)).to(DEVICE)
batch = (torch.randn(8, 24, 24) + 5 * torch.eye(24)).to(DEVICE)
keys = torch.randint(0, 1000, (20000,)).to(DEVICE)
wide = torch.randn(16, 3000).to(DEVICE)
sparse = torch.randint(-3, 4, (256, 256)).float()
sparse = (sparse * (torch.rand(256, 256) < 0.05)).to(DEVICE)
dense = torch.randint(-3, 4, (256, 32)).float().to(DEVICE)


def work():
    out = {}

    def close(label, value):
        out[label] = "%.3f" % float(value)

    spectrum = torch.fft.rfft(signal)
    close("irfft", (torch.fft.irfft(spectrum, n=4096) - signal).abs().max())
    close("bluestein", torch.fft.fft(odd).abs().mean())
    close("fft2", torch.fft.fft2(image).abs().mean())

    spd = square @ square.T
    close("svd", torch.linalg.svd(square).S.sum())
    close("eigh", torch.linalg.eigh(spd).eigenvalues.max())
    close("solve", torch.linalg.solve(square, wide[:4, :64].T).abs().sum())
    close("solve_batch", torch.linalg.solve(batch, batch.transpose(1, 2)).abs().mean())
    close("cholesky", torch.linalg.cholesky(spd).diagonal().log().sum())
    close("qr", torch.linalg.qr(square).R.diagonal().abs().sum())
    close("inv", torch.linalg.inv(batch).abs().sum())
    close("slogdet", torch.linalg.slogdet(square).logabsdet)

    ordered, index = torch.sort(keys, stable=True)
    out["sort"] = ordered
    out["index"] = index
    out["sort_rows"] = torch.sort(wide, dim=1).values
    out["topk"] = torch.topk(wide, 10).values
    out["unique"] = torch.unique(keys)
    out["scan"] = torch.cumsum(keys, 0)
    out["nonzero"] = torch.nonzero(wide > 2.5)
    out["counts"] = torch.bincount(keys % 7, minlength=7)

    csr = sparse.to_sparse_csr()
    out["csr"] = csr @ dense
    coo = sparse.to_sparse_coo()
    out["coo"] = torch.sparse.mm((coo + coo).coalesce(), dense)

    torch.manual_seed(7)
    out["randn"] = torch.randn(1000, device=DEVICE)
    out["rand"] = torch.rand(1000, device=DEVICE)
    out["perm"] = torch.randperm(5000, device=DEVICE)
    out["pick"] = torch.multinomial(torch.ones(4, 50, device=DEVICE), 5)
    out["dropout"] = torch.nn.functional.dropout(wide, 0.3)
    buffer = torch.zeros(1 << 16, device=DEVICE)
    buffer[1000:2000].copy_(wide.view(-1)[:1000])
    out["copied"] = buffer
    return out


work()
with referee("fft_linalg"):
    results = work()
for label, value in results.items():
    show(label, value)
