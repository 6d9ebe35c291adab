"""Run by ranks: calls in every form, of tensors that lie in every way, against the whole's."""

import itertools
import warnings

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
    init_device_mesh,
)

dist.init_process_group("mpi")
r, n = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (n,))
rng = np.random.default_rng(0)
torch.manual_seed(0)
warnings.simplefilter("ignore")
WAYS = [Replicate(), Shard(0), Shard(1), Partial(), Partial("avg")]


def spread(whole, way):
    if isinstance(way, Partial):
        share = whole / n if way.reduce_op == "sum" else whole
        return DTensor.from_local(share.clone(), mesh, [way])
    return distribute_tensor(whole, mesh, [way])


def check(name, func, *wholes):
    """Values and gradients of func for every way of every operand."""
    leaves = [w.clone().requires_grad_(w.is_floating_point()) for w in wholes]
    want = func(*leaves)
    smooth = isinstance(want, torch.Tensor) and want.requires_grad
    weight = torch.tensor(rng.normal(size=want.shape)) if smooth else None
    if smooth:
        (want * weight).sum().backward()
    for ways in itertools.product(*(WAYS[: min(w.ndim, 2) + 1] + WAYS[3:] for w in wholes)):
        given = [spread(w, way) for w, way in zip(wholes, ways)]
        for g in given:
            g.requires_grad_(g.is_floating_point())
        made = func(*given)
        got = made.full_tensor() if isinstance(made, DTensor) else made
        where = f"{name} of {ways}"
        assert type(got) is type(want), where
        if not isinstance(want, torch.Tensor):
            assert abs(got - want) < 1e-12, where
            continue
        assert got.dtype == want.dtype and got.shape == want.shape, where
        assert tuple(made.shape) == tuple(want.shape), where
        assert torch.allclose(got, want, equal_nan=True), f"{where}: {got} for {want}"
        if not smooth:
            continue
        assert got.requires_grad, where
        (got * weight).sum().backward()
        for g, way, leaf in zip(given, ways, leaves):
            if leaf.grad is None:
                continue
            grad = g.grad.to_local() if g.grad is not None else None
            assert grad is not None, where
            if isinstance(way, Shard):
                wanted = distribute_tensor(leaf.grad, mesh, [way]).to_local()
            else:  # every part of a sum has the sum's gradient
                wanted = leaf.grad / (n if way == Partial("avg") else 1)
            assert torch.allclose(grad, wanted), f"{where}: gradient {grad} for {wanted}"


# Every operation that works element by element, as the library itself counts them.
SKIPPED = {"prelu", "gate"}  # the weight of prelu lies along another dim
PARAMETERS = {"threshold": (0.5, 0.25), "clamp_min": (0.4,), "clamp_max": (0.4,), "pow": (2.5,)}
INTEGERS = {"gcd", "lcm"} | {f"bitwise_{kind}" for kind in
            ("and", "or", "xor", "not", "left_shift", "right_shift")}  # fmt: skip


def elementwise():
    import clew

    for full, kind in clew._C._operation_kinds.items():
        name = full.rpartition(".")[2]
        if kind != "elementwise" or name.startswith("_") or name in SKIPPED:
            continue
        function = clew._C.functions[full]
        text = function.signatures[0]
        count = sum(part.strip().startswith(("Tensor ", "Operand ")) for part in
                    text[text.index("(") + 1 :].split(","))  # fmt: skip
        yield name, function, count


def sharded_as_whole(name, function, count):
    wholes = [torch.tensor(rng.uniform(0.1, 0.9, (5, 3))) for _ in range(count)]
    if name in INTEGERS:
        wholes = [(w * 9).long() for w in wholes]
    more = PARAMETERS.get(name, ()) if count == 1 else ()
    want = function(*wholes, *more)
    for way in (Shard(0), Shard(1), Replicate()):
        given = [distribute_tensor(w, mesh, [way]) for w in wholes]
        got = function(*given, *more)
        assert isinstance(got, DTensor) and got.placements == (way,), (name, way, got)
        assert torch.allclose(got.full_tensor(), want, equal_nan=True), (name, way)
        change = getattr(torch.Tensor, f"{name}_", None)
        if change is not None and want.dtype == wholes[0].dtype:
            assert change(given[0], *given[1:], *more) is given[0], name
            assert torch.allclose(given[0].full_tensor(), want, equal_nan=True), (name, way)


seen = 0
for operation in elementwise():
    try:
        sharded_as_whole(*operation)
    except Exception as error:
        raise AssertionError(operation[0]) from error
    seen += 1
assert seen > 120, seen


ONE = {
    "itself twice": lambda x: x @ x.T,
    "linear of itself": lambda x: F.linear(x, x),
    "sum of itself": lambda x: x + x * x - x,
    "norm 2": lambda x: x.norm(2),
    "norm 1, 1": lambda x: x.norm(1, 1),
    "norm": lambda x: x.norm(),
    "std False": lambda x: x.std(False),
    "std 1": lambda x: x.std(1),
    "var": lambda x: x.var(dim=0, unbiased=False, keepdim=True),
    "flip two": lambda x: x.flip(0, 1),
    "flip one": lambda x: x.flip(1),
    "roll one": lambda x: x.roll(1, 0),
    "roll": lambda x: torch.roll(x, 2),
    "softmax": lambda x: F.softmax(x),
    "softmax to": lambda x: F.softmax(x, 1, dtype=torch.float64),
    "softmax by name": lambda x: F.softmax(input=x, dim=0),
    "log_softmax": lambda x: F.log_softmax(x, dim=-1),
    "normalize": lambda x: F.normalize(x, 2.0, 0),
    "sum []": lambda x: x.sum(dim=[]),
    "sum axis": lambda x: x.sum(axis=1),
    "sum keepdims": lambda x: x.sum(1, keepdim=True),
    "sum both": lambda x: x.sum((-1, 0)),
    "sum to": lambda x: x.sum(0, dtype=torch.float64),
    "mean axis": lambda x: x.mean(axis=0),
    "mean []": lambda x: x.mean([]),
    "mean": lambda x: x.mean(),
    "prod": lambda x: x.prod(1),
    "amax": lambda x: x.amax((0, 1)),
    "amin": lambda x: torch.amin(x, dim=-1, keepdim=True),
    "logsumexp": lambda x: x.logsumexp((0,)),
    "any": lambda x: (x > 0).any(1),
    "all": lambda x: (x > 0).all(),
    "max": lambda x: x.max(1).values,
    "cumsum": lambda x: x.cumsum(0),
    "sort": lambda x: x.sort(descending=True).values,
    "argmax": lambda x: x.argmax(),
    "floor": lambda x: x.div(0.3, rounding_mode="floor"),
    "divided": lambda x: x / 3,
    "times": lambda x: 3 * x,
    "less": lambda x: 1 - x,
    "over": lambda x: 1 / x,
    "power": lambda x: 2**x,
    "to int": lambda x: x.to(torch.int64),
    "long": lambda x: x.long(),
    "bits": lambda x: x.view(torch.int64),
    "True": lambda x: x[True],
    "rows": lambda x: x[torch.tensor([1, 2])],
    "mask": lambda x: x[x.full_tensor() > 0 if isinstance(x, DTensor) else x > 0],
    "row": lambda x: x[-1],
    "new": lambda x: x[None, :, 1:3],
    "vectors": lambda x: x[0] @ x[1],
    "vector": lambda x: x @ x[0],
    "where": lambda x: torch.where(x > 0, x, 0.0),
    "clamp": lambda x: x.clamp(min=0),
    "relu": lambda x: F.relu(x),
    "squeeze": lambda x: x[None].squeeze(0),
    "stack": lambda x: torch.stack([x, x], 1),
    "cat": lambda x: torch.cat([x, x], 1),
    "cat axis": lambda x: torch.cat([x, x * 2], axis=0),
    "tril": lambda x: x.tril(),
    "repeat": lambda x: x.repeat(2, 1),
    "reshape": lambda x: x.reshape(-1),
    "unflatten": lambda x: x.unflatten(0, (2, -1)),
    "expand": lambda x: x[:, None].expand(-1, 3, -1),
    "chunk": lambda x: x.chunk(2, dim=1)[1],
    "split": lambda x: torch.split(x, [1, 3])[1],
    "layer_norm": lambda x: F.layer_norm(normalized_shape=(4,), weight=x[0], input=x),
    "rms_norm": lambda x: F.rms_norm(x, (4,)),
    "linear by name": lambda x: F.linear(weight=x.T, bias=x[0], input=x),
    "dropout 0": lambda x: F.dropout(x, 0.0),
    "float": lambda x: float(x.sum()),
    "equal": lambda x: bool(torch.equal(x, x)),
}
x = torch.tensor(rng.normal(size=(4, 4)))
for name, func in ONE.items():
    check(name, func, x)
check("softmax of three", lambda x: F.softmax(x), torch.tensor(rng.normal(size=(2, 3, 4))))
TWO = {
    "add": torch.add,
    "add alpha": lambda a, b: torch.add(a, b, alpha=2),
    "sub by name": lambda a, b: torch.sub(other=b, input=a),
    "mul": torch.mul,
    "div by name": lambda a, b: torch.div(other=b, input=a),
    "matmul": torch.matmul,
    "matmul by name": lambda a, b: torch.matmul(other=b, input=a),
    "linear": F.linear,
    "max": torch.maximum,
    "cat": lambda a, b: torch.cat((a, b)),
    "row": lambda a, b: a * b[:1],
    "column": lambda a, b: a - b[:, :1],
    "lerp": lambda a, b: torch.lerp(a, b, 0.3),
    "addmm": lambda a, b: torch.addmm(a, b, a),
    "addmm beta": lambda a, b: torch.addmm(a, b, a, beta=2),
    "where": lambda a, b: torch.where(a > b, a, b),
    "mse": F.mse_loss,
    "view as": lambda a, b: a.reshape(2, 8).view_as(b),
}
y = torch.tensor(rng.normal(size=(4, 4)))
for name, func in TWO.items():
    check(name, func, x, y)

# Embedding: the last row takes a gradient unless it is the one without; names; frequencies.
ids = torch.tensor([[0, 3, 3], [1, 3, 2]])
for named in ({}, {"padding_idx": 3}, {"padding_idx": -4}, {"scale_grad_by_freq": True}):
    check(f"embedding {named}", lambda t, named=named: F.embedding(
        distribute_tensor(ids, mesh, [Replicate()]) if isinstance(t, DTensor) else ids, t, **named
    ), x)  # fmt: skip
table = distribute_tensor(x, mesh, [Shard(0)])
for wrong in (4, -1):
    try:
        F.embedding(distribute_tensor(torch.tensor([wrong]), mesh), table)
    except IndexError:
        continue
    raise AssertionError(wrong)

# Attention whose heads are not those of its keys, and with a mask.
q, k = (torch.tensor(rng.normal(size=(2, h, 3, 4))) for h in (4, 2))
check("grouped", lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True), q, k)
check("itself", lambda q: F.scaled_dot_product_attention(q, q, value=q, is_causal=True), q)
mask = torch.tensor(rng.normal(size=(3, 3)))
check("masked", lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m), q, mask)

# Numbers drawn are those of one process, also where some rows are another's; else it says so.
for way in WAYS[:3]:
    torch.manual_seed(3)
    want = F.dropout(torch.ones(4, 4), 0.5)
    torch.manual_seed(3)
    assert F.dropout(distribute_tensor(torch.ones(4, 4), mesh, [way])).full_tensor().equal(want)
    torch.manual_seed(3)
    inside = distribute_tensor(torch.ones(4, 4), mesh, [way])
    assert F.dropout(inside, inplace=True) is inside and inside.full_tensor().equal(want)
    # So they are of what is transposed, in the order of memory.
    for draw in (
        lambda t: F.dropout(t.transpose(0, 2), 0.5),
        lambda t: F.dropout(t.transpose(0, 1), 0.5, inplace=True),
        lambda t: t.transpose(1, 2).normal_(),
    ):
        cube = torch.ones(4, 7, 6)  # a part of one row, where three cut it
        torch.manual_seed(3)
        want = draw(cube.clone())
        torch.manual_seed(3)
        assert draw(distribute_tensor(cube, mesh, [way])).full_tensor().equal(want)
assert F.dropout(DTensor.from_local(x, mesh, [Partial()]), 0.0).placements == (Partial(),)
torch.manual_seed(r)
for draw in (lambda d: F.dropout(d), lambda d: d.normal_(), lambda d: torch.nn.init.zeros_(d)):
    try:
        draw(distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)]))
    except RuntimeError as e:
        assert "different states" in str(e)
    else:
        assert draw(torch.ones(1))[0] == 0  # zeros_ draws nothing
torch.manual_seed(0)

# What cannot be done says so.
half = distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)])
part = DTensor.from_local(torch.ones(4, 4), mesh, [Partial()])
for wrong, kind in [
    (lambda: torch.add(half, half, out=half), NotImplementedError),
    (lambda: F.relu(part, inplace=True), NotImplementedError),
    (lambda: part.mul_(part), NotImplementedError),
    (lambda: part.add_(1), NotImplementedError),
    (lambda: half.bernoulli_(half), NotImplementedError),
    (lambda: half + torch.ones(4, 4), RuntimeError),
    (lambda: half.long().mean(), RuntimeError),
]:
    try:
        wrong()
    except kind as e:
        assert "DTensor" in str(e) or "mean" in str(e), e
    else:
        raise AssertionError(wrong)
twice = DTensor.from_local(torch.ones(4, 4), mesh, [Partial()])
twice.mul_(distribute_tensor(torch.full((4, 4), 2.0), mesh, [Shard(0)]))
assert (twice.full_tensor() == 2 * n).all()

# Factories: an argument works or raises.
import torch.distributed.tensor as spread_tensors  # noqa: E402

made = spread_tensors.full((4, 3), 2.0, dtype=torch.float64, layout=torch.strided, device_mesh=mesh,
                           placements=[Shard(0)], requires_grad=True)  # fmt: skip
assert made.dtype == torch.float64 and made.requires_grad and made.placements == (Shard(0),)
assert (made.full_tensor() == 2).all() and tuple(spread_tensors.zeros(2, 5).shape) == (2, 5)
for options, kind in (({"layout": torch.sparse_coo}, NotImplementedError), ({"out": x}, TypeError)):
    try:
        spread_tensors.ones(4, 3, **options)
    except kind as e:
        assert "distributed.tensor.ones" in str(e), e
    else:
        raise AssertionError(options)

# In place is recorded.
for way in WAYS[:3]:
    for change in (
        lambda t: F.relu(t, inplace=True),
        lambda t: F.leaky_relu(t, 0.1, True),
        lambda t: t.mul_(t.detach()).add_(t),
        lambda t: t.clamp_(min=0.5),
    ):
        leaf, d = x.clone().requires_grad_(), spread(x, way).requires_grad_()
        for start in (leaf, d):
            t = start * 2
            change(t)
            total = (t * t).sum()
            (total.full_tensor() if isinstance(total, DTensor) else total).backward()
        assert torch.allclose(d.grad.full_tensor(), leaf.grad), (way, d.grad, leaf.grad)

dist.barrier()
print(f"rank {r} is through")
