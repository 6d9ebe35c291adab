"""Run by ranks: operations that every rank computes of the whole, against plain tensors."""

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh

dist.init_process_group("gloo")
r, n = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (n,))
whole = torch.tensor(np.random.default_rng(0).normal(size=(6, 4)))
places = distribute_tensor(torch.tensor([1, 0]), mesh)


def index(x):
    return places if isinstance(x, DTensor) else places.to_local()


OPERATIONS = {
    "movedim": lambda x: x.movedim(0, 1),
    "glu": lambda x: F.glu(x),
    "pad": lambda x: F.pad(x, (1, 2), value=3.0),
    "dot": lambda x: torch.dot(x[:, 0], x[:, 1]),
    "inner": lambda x: torch.inner(x, x),
    "baddbmm": lambda x: torch.baddbmm(x[None], x[None], (x.mT @ x)[None]),
    "tensordot": lambda x: torch.tensordot(x, x, dims=([1], [1])),
    "kron": lambda x: torch.kron(x, x),
    "trace": lambda x: torch.trace(x),
    "diagonal": lambda x: x.diagonal(),
    "var_mean": lambda x: torch.var_mean(x, 0),
    "aminmax": lambda x: torch.aminmax(x, dim=0),
    "cummax": lambda x: x.cummax(0).values,
    "tile": lambda x: x.tile(2),
    "hstack": lambda x: torch.hstack([x, x]),
    "unfold": lambda x: x.unfold(0, 2, 1),
    "index_add": lambda x: x.index_add(0, index(x), x[:2]),
    "take_along_dim": lambda x: torch.take_along_dim(x, index(x)[:, None], 0),
    "max_pool1d": lambda x: F.max_pool1d(x[None], 2),
    "interpolate": lambda x: F.interpolate(x[None], scale_factor=2),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x.exp()),
    "rfft": lambda x: torch.fft.rfft(x, dim=0).abs(),
    "ifft2": lambda x: torch.fft.ifft2(x).real,
    "irfft": lambda x: torch.fft.irfft(torch.complex(x, x)),
    "grid_sample": lambda x: F.grid_sample(x[None, None], x.view(1, 3, 4, 2), align_corners=True),
    "block_diag": lambda x: torch.block_diag(x, x),
    "inv": lambda x: torch.linalg.inv(x.mT @ x),
    "det": lambda x: torch.linalg.det(x.mT @ x),
    "slogdet": lambda x: torch.linalg.slogdet(x.mT @ x),
    "cholesky": lambda x: torch.linalg.cholesky(x.mT @ x),
    "cholesky_solve": lambda x: torch.cholesky_solve(x.mT, torch.linalg.cholesky(x.mT @ x)),
    "qr": lambda x: torch.linalg.qr(x),
    "svdvals": lambda x: torch.linalg.svdvals(x),
    "eigvalsh": lambda x: torch.linalg.eigvalsh(x.mT @ x),
    "matrix_exp": lambda x: torch.linalg.matrix_exp(x[:4]),
    "pinv": lambda x: torch.linalg.pinv(x),
    "solve": lambda x: torch.linalg.solve(x.mT @ x, x.mT),
    "lu_solve": lambda x: torch.linalg.lu_solve(*torch.linalg.lu_factor(x[:4]), x[:4]),
    "solve_triangular": lambda x: torch.linalg.solve_triangular(x[:4].tril(), x[:4], upper=False),
    # The sizes of these are not known before.
    "nonzero": lambda x: (x > 0).nonzero(),
    "masked_select": lambda x: x.masked_select(x > 0),
    "unique": lambda x: torch.unique(x.detach().round()),
    "one_hot": lambda x: F.one_hot((x > 0).long()),
    "bincount": lambda x: torch.bincount((x > 0).long().flatten()),
    "count_nonzero": lambda x: torch.count_nonzero(x > 0),
}


def tensors(made):
    return list(made) if isinstance(made, (tuple, list)) else [made]


for name, f in OPERATIONS.items():
    for way in (Replicate(), Shard(0), Shard(1)):
        x, y = whole.clone().requires_grad_(), distribute_tensor(whole, mesh, [way])
        y.requires_grad_()
        plain, ours = tensors(f(x)), tensors(f(y))
        assert len(plain) == len(ours)
        for p, q in zip(plain, ours):
            assert isinstance(q, DTensor) and q.shape == p.shape and q.dtype == p.dtype, name
            assert np.allclose(q.full_tensor().detach().numpy(), p.detach().numpy()), (name, way)
        if plain[0].requires_grad:
            sum((p.double() * p.detach().sin()).sum() for p in plain).backward()
            sum((q * q.detach().sin()).sum() for q in ours).full_tensor().backward()
            assert np.allclose(y.grad.full_tensor().numpy(), x.grad.numpy()), (name, way)

torch.manual_seed(3)
for way in (Replicate(), Shard(0)):
    x = distribute_tensor(whole, mesh, [way])
    for f in (
        torch.rand_like,
        torch.randn_like,
        lambda x: torch.bernoulli(x.sigmoid()),
        lambda x: torch.multinomial(x.exp(), 2),
        lambda x: torch.randint_like(x, 9),
    ):
        state = torch.get_rng_state()
        made = f(x)
        torch.set_rng_state(state)
        assert torch.equal(made.full_tensor(), f(whole))
    assert torch.rand_like(x).placements == (way,)
    fresh = x.new_zeros(3, 2)
    assert fresh.shape == (3, 2) and fresh.dtype == torch.float64
    assert torch.equal(fresh.full_tensor(), torch.zeros(3, 2))
    assert x.new_full((2,), 4.0).full_tensor().tolist() == [4.0, 4.0]
dist.barrier()
print(f"rank {r} is through")
