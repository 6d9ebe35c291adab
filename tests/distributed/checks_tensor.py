"""Run by ranks: distributed tensors and tensor parallelism against one process with the whole."""

import copy
import itertools
import math
import pickle
import tempfile

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    init_device_mesh,
)
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

dist.init_process_group("mpi")
r, n = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (n,))
rng = np.random.default_rng(0)


def numbers(*size):
    return torch.tensor(rng.normal(size=size))


def same(a, b, tol=1e-10):
    a, b = a.detach().numpy(), b.detach().numpy()
    assert a.shape == b.shape, (a.shape, b.shape)
    assert np.allclose(a, b, rtol=tol, atol=tol), abs(a - b).max()


# Changes from every way to every other, also of sizes that do not divide, with their gradients.
ways = [Replicate(), Shard(0), Shard(1), Partial(), Partial("avg")]
for size in [(4, 6), (5, 7), (1, 3), (2 * n, 3 * n)]:
    for old, new in itertools.product(ways, ways):
        if isinstance(new, Partial) and new.reduce_op == "avg" and isinstance(old, Shard):
            continue
        whole, weight = numbers(*size), numbers(*size)
        leaf = whole.clone().requires_grad_()
        start = [Replicate()] if isinstance(old, Partial) else [old]
        d = distribute_tensor(whole, mesh, start).requires_grad_()
        if isinstance(old, Partial):
            local = d.to_local()
            local = local / n if old.reduce_op == "sum" else local
            d2 = DTensor.from_local(local, mesh, [old], shape=size)
        else:
            d2 = d
        got = d2.redistribute(placements=[new])
        assert got.placements == (new,) and tuple(got.shape) == size
        full = got.full_tensor()
        same(full, whole)
        (full * weight).sum().backward()
        (leaf * weight).sum().backward()
        want = leaf.grad if isinstance(start[0], Replicate) else distribute_tensor(
            leaf.grad, mesh, start).to_local()  # fmt: skip
        if isinstance(old, Partial):
            # Every process computed with its own: their gradients together are the whole's.
            want = want / n
        same(d.grad.to_local(), want)

# Operations: values and gradients are the whole's, however operands lie.
CASES = [
    ("add", lambda a, b: a + b, [(4, 6), (4, 6)]),
    ("broadcast", lambda a, b: a * b + 2 * a, [(4, 6), (6,)]),
    ("unary", lambda a: a.tanh() * 3 - a.exp(), [(4, 6)]),
    ("matmul", lambda a, b: a @ b, [(4, 6), (6, 5)]),
    ("bmm", lambda a, b: a @ b, [(4, 3, 6), (4, 6, 5)]),
    ("linear", F.linear, [(2, 4, 6), (8, 6), (8,)]),
    ("linear without bias", F.linear, [(4, 6), (8, 6)]),
    ("addmm", torch.addmm, [(5,), (4, 6), (6, 5)]),
    ("softmax", lambda a: a.softmax(-1), [(4, 6)]),
    ("log_softmax", lambda a: F.log_softmax(a, 0), [(4, 6)]),
    ("layer_norm", lambda a, w, b: F.layer_norm(a, (6,), w, b), [(4, 6), (6,), (6,)]),
    ("sum", lambda a: a.sum(), [(4, 6)]),
    ("sum of dim", lambda a: a.sum(0), [(4, 6)]),
    ("mean", lambda a: a.mean(1, keepdim=True), [(4, 6)]),
    ("mean of all", lambda a: a.mean(), [(5, 7)]),
    ("amax", lambda a: a.amax(0), [(4, 6)]),
    ("transpose", lambda a: a.transpose(0, 1) * 2, [(4, 6)]),
    ("T", lambda a: a.T * 2, [(4, 6)]),
    ("permute", lambda a: a.permute(2, 0, 1), [(2, 4, 6)]),
    ("view", lambda a: a.view(2, 4, 2, 3).transpose(1, 2), [(2, 4, 6)]),
    ("flatten", lambda a: a.flatten(), [(4, 6)]),
    ("reshape", lambda a: a.reshape(24), [(4, 6)]),
    ("unsqueeze", lambda a: a.unsqueeze(1).squeeze(1), [(4, 6)]),
    ("chunk", lambda a: a.chunk(2, 1)[1] * 2, [(4, 6)]),
    ("split", lambda a: a.split(2, 0)[1] + a.split(2)[0], [(4, 6)]),
    ("index", lambda a: a[:, 1] * a[None, :, 2], [(4, 6)]),
    ("cat", lambda a, b: torch.cat([a, b], 1), [(4, 6), (4, 2)]),
    ("stack", lambda a, b: torch.stack([a, b]), [(4, 6), (4, 6)]),
    ("attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
     [(2, 4, 5, 3)] * 3),
    ("where", lambda a, b: torch.where(a > 0, a, b), [(4, 6), (4, 6)]),
    ("mse", lambda a, b: F.mse_loss(a, b), [(4, 6), (4, 6)]),
    ("expand", lambda a: a.unsqueeze(0).expand(3, 4, 6) * 2, [(4, 6)]),
]  # fmt: skip
for name, f, sizes in CASES:
    choices = [[Replicate(), *(Shard(d) for d in range(len(s)))] for s in sizes]
    for combination in itertools.islice(itertools.product(*choices), 0, None, 2 if n > 2 else 1):
        wholes = [numbers(*s).requires_grad_() for s in sizes]
        parts = [distribute_tensor(w.detach(), mesh, [p]).requires_grad_()
                 for w, p in zip(wholes, combination)]  # fmt: skip
        want, got = f(*wholes), f(*parts)
        assert isinstance(got, DTensor) and tuple(got.shape) == tuple(want.shape), name
        try:
            same(got.full_tensor(), want)
            weight = numbers(*want.shape)
            (want * weight).sum().backward()
            (got * distribute_tensor(weight, mesh)).sum().redistribute(
                placements=[Replicate()]).backward()  # fmt: skip
            for w, d, p in zip(wholes, parts, combination):
                same(d.grad.to_local(), distribute_tensor(w.grad, mesh, [p]).to_local())
        except AssertionError as error:
            raise AssertionError(f"{name} of {combination}: {error}") from None

# Embeddings by rows and by features, padding too.
table, ids = numbers(7, 4), torch.tensor([[0, 6, 3], [2, 2, 5]])
for p in (Replicate(), Shard(0), Shard(1)):
    whole = table.clone().requires_grad_()
    d = distribute_tensor(table, mesh, [p]).requires_grad_()
    want = F.embedding(ids, whole, 2)
    got = F.embedding(distribute_tensor(ids, mesh), d, 2)
    same(got.full_tensor(), want)
    (want**2).sum().backward()
    (got.full_tensor() ** 2).sum().backward()
    same(d.grad.to_local(), distribute_tensor(whole.grad, mesh, [p]).to_local())

# What cannot be done says so.
d = distribute_tensor(numbers(4, 6), mesh, [Shard(0)])
for text, bad in [
    ("there is no rule for", lambda: d.as_strided((2,), (1,))),
    ("plain tensors beside", lambda: d + numbers(4, 6)),
    ("as many placements", lambda: d.redistribute(placements=[Replicate()] * 2)),
    ("of a tensor of 2 dims", lambda: distribute_tensor(numbers(4, 6), mesh, [Shard(2)])),
    ("not partial", lambda: distribute_tensor(numbers(4, 6), mesh, [Partial()])),
    ("must be a plain tensor", lambda: DTensor.from_local(d, mesh, [Shard(0)])),
]:
    try:
        bad()
    except Exception as error:
        assert text in str(error), (text, error)
    else:
        raise AssertionError(text)


# A GPT, its blocks divided by columns and rows, or by sequence between them.
class Block(nn.Module):
    def __init__(self, width, heads, ways):
        super().__init__()
        self.heads = heads // ways
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.o = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        B, T = x.shape[:2]
        q, k, v = (f(x) for f in (self.q, self.k, self.v))
        T = q.shape[1]
        q, k, v = (y.view(B, T, self.heads, -1).transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(B, T, -1))

    def forward(self, x):
        x = x + self.attend(self.ln1(x))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, ways):
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, 24), nn.Parameter(torch.randn(8, 24) * 0.1)
        self.blocks = nn.ModuleList([Block(24, 12, ways) for _ in range(2)])
        self.ln, self.head = nn.LayerNorm(24), nn.Linear(24, 11)

    def forward(self, ids):
        x = self.tokens(ids) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


def losses(net, steps=4):
    opt = torch.optim.AdamW(net.parameters(), 0.01)
    made = []
    for step in range(steps):
        ids = torch.tensor(np.random.default_rng(step).integers(0, 11, (4, 9)))
        logits = net(ids[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, 11), ids[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        made.append(loss.item())
    return made


torch.manual_seed(1)
want = losses(GPT(1).double())
if 12 % n == 0:
    torch.manual_seed(1)
    plan = {
        "tokens": RowwiseParallel(input_layouts=Replicate()),
        "head": ColwiseParallel(output_layouts=Replicate()),
    }
    for i in range(2):
        plan |= {f"blocks.{i}.{k}": ColwiseParallel() for k in ("q", "k", "v", "up")}
        plan |= {f"blocks.{i}.{k}": RowwiseParallel() for k in ("o", "down")}
    net = parallelize_module(GPT(n).double(), mesh, plan)
    got = losses(net)
    assert np.allclose(got, want, rtol=1e-9), (got, want)
    assert isinstance(net.head.weight, nn.Parameter) and isinstance(net.head.weight, DTensor)
    assert net.head.weight.placements == (Shard(0),) and net.head.weight.shape == (11, 24)
    assert net.blocks[0].o.weight.to_local().shape == (24, 24 // n)
    assert [p for p, _ in net.named_parameters()] == [p for p, _ in GPT(1).named_parameters()]

# By sequence: T = 8 in n parts where blocks are not divided by their weights.
if 8 % n == 0 and 12 % n == 0:
    torch.manual_seed(1)
    plan = {
        "tokens": RowwiseParallel(input_layouts=Replicate()),
        "ln": SequenceParallel(),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    }
    for i in range(2):
        b = f"blocks.{i}"
        plan |= {f"{b}.ln1": SequenceParallel(use_local_output=True),
                 f"{b}.ln2": SequenceParallel(use_local_output=True)}  # fmt: skip
        plan |= {f"{b}.{k}": ColwiseParallel(input_layouts=Shard(1)) for k in ("q", "k", "v", "up")}
        plan |= {f"{b}.{k}": RowwiseParallel(output_layouts=Shard(1)) for k in ("o", "down")}
    plan["blocks.0"] = PrepareModuleInput(
        input_layouts=Replicate(), desired_input_layouts=Shard(1), use_local_output=True
    )
    net = parallelize_module(GPT(n).double(), mesh, plan)
    got = losses(net)
    assert np.allclose(got, want, rtol=1e-9), (got, want)


# A parameter that two parts share stays one where both divide it alike; else a warning says so.
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.head = nn.Embedding(11, 6), nn.Linear(6, 11, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        return self.head(self.tokens(ids))


plain = Tied()
ids = torch.tensor([[0, 3, 10], [2, 2, 9]])
plan = {"tokens": RowwiseParallel(input_layouts=Replicate()),
        "head": ColwiseParallel(output_layouts=Replicate())}  # fmt: skip
net = parallelize_module(copy.deepcopy(plain), mesh, plan)
assert net.head.weight is net.tokens.weight and net.head.weight.placements == (Shard(0),)
for m in (plain, net):
    (m(ids) ** 2).sum().backward()
same(net.tokens.weight.grad.full_tensor(), plain.tokens.weight.grad, 1e-4)
with pytest.warns(UserWarning, match="several parts share"):
    parallelize_module(Tied(), mesh, plan | {"head": RowwiseParallel()})

# Modules by functions, and outputs that are put together.
torch.manual_seed(2)
plain, divided = nn.Linear(6, 4).double(), nn.Linear(6, 4).double()
distribute_module(divided, mesh, lambda name, m, where: [
    m.register_parameter(k, nn.Parameter(distribute_tensor(p.detach(), where, [Shard(0)])))
    for k, p in list(m.named_parameters(recurse=False))])  # fmt: skip
divided.weight.data.copy_(distribute_tensor(plain.weight.detach(), mesh, [Shard(0)]))
divided.bias.data.copy_(distribute_tensor(plain.bias.detach(), mesh, [Shard(0)]))
x = numbers(3, 6)
same(divided(distribute_tensor(x, mesh)).full_tensor(), plain(x))
torch.nn.init.normal_(divided.weight)
assert math.isfinite(divided.weight.full_tensor().sum().item())
out = parallelize_module(nn.Identity(), mesh, PrepareModuleOutput(
    output_layouts=Shard(0), desired_output_layouts=Replicate()))(torch.ones(2, 3) * r)  # fmt: skip
assert out.shape == (2 * n, 3) and out[:, 0].tolist() == [float(i) for i in range(n) for _ in "ab"]
torch.manual_seed(4)
two = nn.Sequential(nn.Linear(6, 2 * n), nn.Linear(2 * n, 6)).double()
want = two(x).detach()
plan = {"": PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Replicate()),
        "0": ColwiseParallel(), "1": RowwiseParallel()}  # fmt: skip
same(parallelize_module(two, mesh, plan)(x), want)  # an empty name is the module's own


# Files of each process's own part: with the mesh that is there, and with one that is made anew.
def parts_in_file(path, where):
    torch.manual_seed(3)
    whole = numbers(2 * n + 1, 4)
    ways = [Shard(0), Shard(1), Replicate()] if where.ndim == 1 else [[Shard(0), Replicate()]]
    model = nn.Linear(4, 2 * n + 1).double()
    fully = distribute_module(model, where) if where.ndim == 1 else None
    saved = {"cut": [distribute_tensor(whole, where, way if isinstance(way, list) else [way])
                     for way in ways], "model": model.state_dict() if fully else {},
             "parameter": nn.Parameter(distribute_tensor(whole, where, ways[0] if where.ndim > 1
                                                         else [ways[0]]))}  # fmt: skip
    saved["again"] = saved["cut"][0]
    torch.save(saved, path)
    return saved


def same_parts(a, b):
    assert type(b) is DTensor and a.placements == b.placements and a.shape == b.shape
    assert a.device_mesh == b.device_mesh and a.requires_grad == b.requires_grad
    assert isinstance(a, nn.Parameter) == isinstance(b, nn.Parameter)
    assert torch.equal(a.to_local(), b.to_local())
    assert torch.equal(a.detach().full_tensor(), b.detach().full_tensor())


with tempfile.TemporaryDirectory() as folder:
    path = f"{folder}/part.pt"
    saved = parts_in_file(path, mesh)
    for anew in (False, True):
        if anew:
            dist.barrier()
            dist.destroy_process_group()
            dist.init_process_group("mpi")
        loaded = torch.load(path)
        if not anew:
            for kind in (saved, loaded):
                kind["all"] = [*kind["cut"], kind["parameter"], *kind["model"].values()]
            for a, b in zip(saved["all"], loaded["all"], strict=True):
                same_parts(a, b)
            assert loaded["cut"][0].device_mesh is mesh
            same_parts(saved["cut"][0], pickle.loads(pickle.dumps(saved["cut"][0])))
        assert loaded["again"] is loaded["cut"][0]
        assert loaded["cut"][0].device_mesh is loaded["cut"][1].device_mesh
        assert torch.equal(loaded["cut"][0].full_tensor(), loaded["cut"][2].to_local())
        (loaded["parameter"] * 2).sum().full_tensor().backward()
        assert loaded["parameter"].grad.full_tensor().unique().tolist() == [2.0]
    mesh = init_device_mesh("cpu", (n,))

# A grid: cut along both of its dims.
if n == 4:
    grid = init_device_mesh("cpu", (2, 2))
    whole = numbers(5, 6)
    for ways2 in itertools.product([Replicate(), Shard(0), Shard(1)], repeat=2):
        d = distribute_tensor(whole, grid, ways2).requires_grad_()
        same(d.full_tensor(), whole)
        leaf = whole.clone().requires_grad_()
        (d @ d.T).sum().full_tensor().backward()
        (leaf @ leaf.T).sum().backward()
        same(d.grad.to_local(), distribute_tensor(leaf.grad, grid, ways2).to_local())

    with tempfile.TemporaryDirectory() as folder:
        kept = parts_in_file(f"{folder}/part.pt", grid)
        same_parts(kept["cut"][0], torch.load(f"{folder}/part.pt")["cut"][0])

dist.barrier()
print(f"rank {r} is through")
