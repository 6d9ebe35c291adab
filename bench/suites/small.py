"""Cost of one small call of the commonest operations: 8x8 float32 unless the row says otherwise,
one thread. What the same call costs in PyTorch is mostly its dispatch, so the ratio says what of
ours is dispatch, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.timer import nanoseconds

UNIT = "ns"
BETTER = "lower"
PARTS = 8

Calls = dict[str, Callable[[], object]]


def broadcasting(t: Any) -> Calls:
    """Two operands of unlike shapes, forward and backward."""
    a, b = t.randn(8, 8), t.rand(8, 8) + 0.5
    row, column = t.rand(8) + 0.5, t.rand(8, 1) + 0.5
    flat, one = t.rand(1, 8) + 0.5, t.rand(1, 1) + 0.5
    image, channels = t.randn(2, 4, 8, 8), t.rand(4, 1, 1) + 0.5
    out = t.empty(8, 8)
    w, bias = t.randn(8, 8, requires_grad=True), t.randn(8, requires_grad=True)
    mask = a > 0

    def backward(f: Callable[[], Any]) -> Callable[[], object]:
        seed = t.ones_like(f())

        def call() -> None:
            w.grad = bias.grad = None
            f().backward(seed)

        return call

    return {
        "mul by [8]": lambda: a * row,
        "mul by [8, 1]": lambda: a * column,
        "mul by [1, 8]": lambda: a * flat,
        "mul by [1, 1]": lambda: a * one,
        "[8] mul by [8, 8]": lambda: row * a,
        "[8, 1] by [8]": lambda: column * row,
        "image by channels": lambda: image * channels,
        "add of a row": lambda: a + row,
        "sub of a column": lambda: a - column,
        "div by a column": lambda: a / column,
        "div by a row": lambda: a / row,
        "maximum with a row": lambda: t.maximum(a, row),
        "pow of a row": lambda: b**row,
        "compare with a row": lambda: a > row,
        "equal to a column": lambda: a == column,
        "add_ of a row": lambda: out.add_(row),
        "where with a row": lambda: t.where(mask, a, row),
        "lerp with a row": lambda: t.lerp(a, b, row),
        "addcmul with a row": lambda: t.addcmul(a, b, row),
        "transposed operand": lambda: a * b.T,
        "mul by [8], backward": backward(lambda: w * row),
        "mul of [8] leaf, backward": backward(lambda: a * bias),
        "add of [8] leaf, backward": backward(lambda: w + bias),
        "sub of mean, backward": backward(lambda: w - w.mean(1, keepdim=True)),
    }


def reductions(t: Any) -> Calls:
    """Whole tensors and dims."""
    a, positive = t.randn(8, 8), t.rand(8, 8) + 0.5
    mask, whole = a > 0, t.arange(64).reshape(8, 8)
    image = t.randn(2, 4, 8, 8)
    return {
        "sum of dim 1": lambda: a.sum(1),
        "sum of dim 0": lambda: a.sum(0),
        "sum, keepdim": lambda: a.sum(dim=1, keepdim=True),
        "sum of two dims": lambda: image.sum((2, 3)),
        "mean": lambda: a.mean(),
        "mean of dim": lambda: a.mean(1),
        "mean, keepdim": lambda: a.mean(dim=-1, keepdim=True),
        "amax": lambda: a.amax(1),
        "amin": lambda: a.amin(dim=1, keepdim=True),
        "max": lambda: a.max(),
        "max of dim": lambda: a.max(1),
        "min of dim": lambda: a.min(dim=1),
        "argmax": lambda: a.argmax(),
        "argmax of dim": lambda: a.argmax(1),
        "argmin of dim": lambda: a.argmin(dim=1),
        "prod": lambda: a.prod(),
        "prod of dim": lambda: a.prod(1),
        "all": lambda: mask.all(),
        "any": lambda: mask.any(),
        "all of dim": lambda: mask.all(1),
        "any of dim": lambda: mask.any(dim=1),
        "var": lambda: a.var(),
        "var of dim": lambda: a.var(1),
        "std": lambda: a.std(),
        "std of dim": lambda: a.std(1),
        "norm": lambda: a.norm(),
        "norm of dim": lambda: a.norm(dim=1),
        "vector_norm": lambda: t.linalg.vector_norm(a),
        "logsumexp": lambda: a.logsumexp(1),
        "sum of integers": lambda: whole.sum(),
        "sum of a mask": lambda: mask.sum(),
        "count_nonzero": lambda: t.count_nonzero(mask),
        "aminmax": lambda: t.aminmax(a),
        "median": lambda: a.median(),
        "cumsum": lambda: a.cumsum(1),
        "cumprod": lambda: positive.cumprod(1),
        "cummax": lambda: a.cummax(1),
        "sort": lambda: a.sort(1),
        "argsort": lambda: a.argsort(1),
        "topk": lambda: a.topk(2),
        "equal": lambda: t.equal(a, a),
        "allclose": lambda: t.allclose(a, a),
    }


def indexing(t: Any) -> Calls:
    """Reading and writing at places, joining and splitting."""
    a, b = t.randn(8, 8), t.randn(8, 8)
    out = t.zeros(8, 8)
    idx, other = t.tensor([1, 3, 5, 7]), t.tensor([0, 2, 4, 6])
    rows, mask, row_mask = t.randint(0, 8, (8, 8)), a > 0, a[:, 0] > 0
    value, short, one = t.randn(4, 8), t.randn(4), t.tensor(1.5)
    f = t.nn.functional
    return {
        "cat": lambda: t.cat([a, b]),
        "cat along 1": lambda: t.cat((a, b), dim=1),
        "stack": lambda: t.stack([a, b]),
        "stack along 1": lambda: t.stack([a, b], dim=1),
        "hstack": lambda: t.hstack([a, b]),
        "vstack": lambda: t.vstack([a, b]),
        "chunk": lambda: a.chunk(2),
        "split": lambda: a.split(4),
        "unbind": lambda: a.unbind(0),
        "x[idx]": lambda: a[idx],
        "x[:, idx]": lambda: a[:, idx],
        "x[idx, idx]": lambda: a[idx, other],
        "x[mask]": lambda: a[mask],
        "x[row mask]": lambda: a[row_mask],
        "x[list]": lambda: a[[1, 3, 5]],
        "x[2, 1:5]": lambda: a[2, 1:5],
        "x[:, 1]": lambda: a[:, 1],
        "x[None]": lambda: a[None],
        "x[..., 0]": lambda: a[..., 0],
        "x[::2, ::2]": lambda: a[::2, ::2],
        "x[idx] = value": lambda: out.__setitem__(idx, value),
        "x[idx, idx] = value": lambda: out.__setitem__((idx, other), short),
        "x[mask] = number": lambda: out.__setitem__(mask, 0.0),
        "x[mask] = 0-d": lambda: out.__setitem__(mask, one),
        "x[1:3] = number": lambda: out.__setitem__(slice(1, 3), 1.0),
        "x[1, 2] = number": lambda: out.__setitem__((1, 2), 1.0),
        "gather": lambda: a.gather(1, rows),
        "scatter": lambda: a.scatter(1, rows, b),
        "scatter_add_": lambda: out.scatter_add_(1, rows, b),
        "index_select": lambda: a.index_select(0, idx),
        "index_add_": lambda: out.index_add_(0, idx, value),
        "index_fill": lambda: a.index_fill(0, idx, 0.0),
        "take": lambda: a.take(idx),
        "masked_fill": lambda: a.masked_fill(mask, 0.0),
        "masked_select": lambda: a.masked_select(mask),
        "nonzero": lambda: mask.nonzero(),
        "where": lambda: t.where(mask, a, b),
        "where with a number": lambda: t.where(mask, a, 0.0),
        "embedding": lambda: f.embedding(idx, a),
        "one_hot": lambda: f.one_hot(idx, 8),
    }


def layout(t: Any) -> Calls:
    """Shapes, copies, casts, fresh tensors."""
    a = t.randn(8, 8)
    row, image = t.randn(8), t.randn(1, 2, 8, 8)
    out, half, whole = t.empty(8, 8), a.bfloat16(), t.arange(64).reshape(8, 8)
    turned = a.T
    f = t.nn.functional
    return {
        "clone": lambda: a.clone(),
        "clone of a transpose": lambda: turned.clone(),
        "contiguous of a transpose": lambda: turned.contiguous(),
        "copy_": lambda: out.copy_(a),
        "to float64": lambda: a.to(t.float64),
        "double()": lambda: a.double(),
        "to bfloat16": lambda: a.to(t.bfloat16),
        "bfloat16 to float": lambda: half.float(),
        "integers to float": lambda: whole.float(),
        "float to long": lambda: a.long(),
        "reshape": lambda: a.reshape(4, 16),
        "reshape(-1)": lambda: a.reshape(-1),
        "flatten": lambda: a.flatten(),
        "permute": lambda: a.permute(1, 0),
        "transpose": lambda: a.transpose(0, 1),
        "unsqueeze": lambda: a.unsqueeze(0),
        "squeeze": lambda: image.squeeze(0),
        "expand": lambda: row.expand(8, 8),
        "expand, contiguous": lambda: row.expand(8, 8).contiguous(),
        "repeat": lambda: row.repeat(2, 2),
        "repeat_interleave": lambda: row.repeat_interleave(2),
        "pad": lambda: f.pad(a, (1, 1)),
        "flip": lambda: a.flip(0),
        "roll": lambda: a.roll(1, 0),
        "tril": lambda: a.tril(),
        "triu": lambda: a.triu(1),
        "diagonal": lambda: a.diagonal(),
        "narrow": lambda: a.narrow(0, 1, 2),
        "unfold": lambda: row.unfold(0, 4, 2),
        "zeros": lambda: t.zeros(8, 8),
        "ones": lambda: t.ones(8, 8),
        "full": lambda: t.full((8, 8), 2.0),
        "empty": lambda: t.empty(8, 8),
        "zeros_like": lambda: t.zeros_like(a),
        "full_like": lambda: t.full_like(a, 2.0),
        "new_zeros": lambda: a.new_zeros(8, 8),
        "arange": lambda: t.arange(8),
        "arange of floats": lambda: t.arange(0.0, 1.0, 0.125),
        "linspace": lambda: t.linspace(0, 1, 8),
        "eye": lambda: t.eye(8),
        "tensor of a number": lambda: t.tensor(1.5),
        "randn": lambda: t.randn(8, 8),
        "rand": lambda: t.rand(8, 8),
        "randint": lambda: t.randint(0, 8, (8, 8)),
        "randperm": lambda: t.randperm(8),
        "bernoulli": lambda: t.bernoulli(a.sigmoid()),
        "fill_": lambda: out.fill_(1.0),
        "zero_": lambda: out.zero_(),
        "clamp": lambda: a.clamp(-1, 1),
        "clamp_min": lambda: a.clamp(min=0.0),
        "numpy": lambda: a.numpy(),
        "tolist": lambda: row.tolist(),
        "float()": lambda: float(row[0]),
        "repr of shape": lambda: a.shape[0],
    }


def networks(t: Any) -> Calls:
    """Products, rows, losses, images."""
    a, b = t.randn(8, 8), t.randn(8, 8)
    row, bias = t.randn(8), t.randn(8)
    batch, other = t.randn(2, 8, 8), t.randn(2, 8, 8)
    image, kernel = t.randn(1, 2, 8, 8), t.randn(2, 2, 3, 3)
    mean, var = t.zeros(2), t.ones(2)
    labels, target = t.randint(0, 8, (8,)), t.rand(8, 8)
    heads = t.randn(1, 2, 8, 8)
    f = t.nn.functional
    return {
        "softmax": lambda: a.softmax(1),
        "softmax of columns": lambda: a.softmax(0),
        "log_softmax": lambda: a.log_softmax(1),
        "f.softmax": lambda: f.softmax(a, dim=-1),
        "f.log_softmax": lambda: f.log_softmax(a, dim=-1),
        "layer_norm": lambda: f.layer_norm(a, (8,)),
        "layer_norm with weight": lambda: f.layer_norm(a, (8,), row, bias),
        "rms_norm": lambda: f.rms_norm(a, (8,), row),
        "group_norm": lambda: f.group_norm(image, 2),
        "batch_norm": lambda: f.batch_norm(image, mean, var),
        "normalize": lambda: f.normalize(a, dim=1),
        "cross_entropy": lambda: f.cross_entropy(a, labels),
        "nll_loss": lambda: f.nll_loss(a, labels),
        "mse_loss": lambda: f.mse_loss(a, b),
        "l1_loss": lambda: f.l1_loss(a, b),
        "smooth_l1_loss": lambda: f.smooth_l1_loss(a, b),
        "bce_with_logits": lambda: f.binary_cross_entropy_with_logits(a, target),
        "gelu": lambda: f.gelu(a),
        "silu": lambda: f.silu(a),
        "leaky_relu": lambda: f.leaky_relu(a),
        "dropout": lambda: f.dropout(a, 0.5),
        "linear": lambda: f.linear(a, b, bias),
        "matmul": lambda: a @ b,
        "matrix by vector": lambda: a @ row,
        "dot": lambda: row.dot(bias),
        "bmm": lambda: t.bmm(batch, other),
        "batched matmul": lambda: batch @ other,
        "batch @ matrix": lambda: batch @ a,
        "addmm": lambda: t.addmm(bias, a, b),
        "outer": lambda: t.outer(row, bias),
        "einsum": lambda: t.einsum("ij,jk->ik", a, b),
        "einsum of a batch": lambda: t.einsum("bij,bjk->bik", batch, other),
        "conv2d": lambda: f.conv2d(image, kernel, padding=1),
        "max_pool2d": lambda: f.max_pool2d(image, 2),
        "avg_pool2d": lambda: f.avg_pool2d(image, 2),
        "adaptive_avg_pool2d": lambda: f.adaptive_avg_pool2d(image, 1),
        "interpolate": lambda: f.interpolate(image, scale_factor=2),
        "attention": lambda: f.scaled_dot_product_attention(heads, heads, heads),
        "one step of SGD by hand": lambda: a.sub_(b, alpha=1e-9),
        "lerp": lambda: t.lerp(a, b, 0.5),
        "addcmul": lambda: t.addcmul(a, b, b, value=0.5),
        "abs": lambda: a.abs(),
        "sqrt": lambda: target.sqrt(),
        "square": lambda: a.square(),
        "pow 2": lambda: a**2,
        "neg": lambda: -a,
        "1 - x": lambda: 1 - a,
        "logical_and": lambda: t.logical_and(a, b),
        "isnan": lambda: a.isnan(),
    }


def values(t: Any) -> Calls:
    """Numbers in and out, operands of one shape, writes in place."""
    a, b, s = t.randn(8, 8), t.randn(8, 8), t.tensor(1.5)
    positive, out = t.rand(8, 8) + 0.5, t.empty(8, 8)
    whole, other = t.arange(64).reshape(8, 8), t.arange(64).reshape(8, 8) + 1
    mask, flags = a > 0, b > 0
    f = t.nn.functional
    return {
        "item": lambda: s.item(),
        "tensor of a list": lambda: t.tensor([1.0, 2.0, 3.0]),
        "tensor of ints": lambda: t.tensor([1, 2, 3]),
        "detach": lambda: a.detach(),
        "size": lambda: a.size(0),
        "view": lambda: a.view(64),
        "add": lambda: a + b,
        "add, method": lambda: a.add(b),
        "add, function": lambda: t.add(a, b),
        "add with alpha": lambda: t.add(a, b, alpha=2.0),
        "add of a number": lambda: a + 1.0,
        "mul by a number": lambda: a * 2.0,
        "div": lambda: a / positive,
        "add of integers": lambda: whole + other,
        "floor_divide": lambda: whole // other,
        "remainder": lambda: whole % other,
        "greater": lambda: a > b,
        "greater than 0": lambda: a > 0,
        "equal to": lambda: a == b,
        "mask and mask": lambda: mask & flags,
        "not mask": lambda: ~mask,
        "maximum": lambda: t.maximum(a, b),
        "minimum": lambda: t.minimum(a, b),
        "exp": lambda: a.exp(),
        "log": lambda: positive.log(),
        "sin": lambda: a.sin(),
        "tanh": lambda: a.tanh(),
        "sigmoid": lambda: a.sigmoid(),
        "relu": lambda: a.relu(),
        "F.relu": lambda: f.relu(a),
        "sign": lambda: a.sign(),
        "round": lambda: a.round(),
        "isfinite": lambda: a.isfinite(),
        "sum": lambda: a.sum(),
        "add_": lambda: out.add_(b),
        "add_ of a number": lambda: out.add_(1.0),
        "mul_ by a number": lambda: out.mul_(0.5),
        "+=": lambda: out.__iadd__(b),
        "clamp_": lambda: out.clamp_(-1, 1),
        "relu_": lambda: out.relu_(),
        "exp into out": lambda: t.exp(a, out=out),
        "add into out": lambda: t.add(a, b, out=out),
        "masked_fill_": lambda: out.masked_fill_(mask, 0.0),
        "normal_": lambda: out.normal_(),
        "uniform_": lambda: out.uniform_(),
        "dropout, evaluation": lambda: f.dropout(a, 0.5, training=False),
    }


def recorded(t: Any) -> Calls:
    """The same with requires_grad, forward; modules."""
    w, bias = t.randn(8, 8, requires_grad=True), t.randn(8, requires_grad=True)
    a, idx, labels = t.randn(8, 8), t.tensor([1, 3, 5, 7]), t.randint(0, 8, (8,))
    f, nn = t.nn.functional, t.nn
    linear, table, norm = nn.Linear(8, 8), nn.Embedding(16, 8), nn.LayerNorm(8)
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))
    relu, drop = nn.ReLU(), nn.Dropout(0.5)
    conv, image = nn.Conv2d(2, 2, 3, padding=1), t.randn(1, 2, 8, 8)
    return {
        "add": lambda: w + a,
        "mul by a number": lambda: w * 2.0,
        "mul by [8]": lambda: w * bias,
        "matmul": lambda: w @ a,
        "sum": lambda: w.sum(),
        "sum of dim": lambda: w.sum(1),
        "mean": lambda: w.mean(),
        "max of dim": lambda: w.max(1),
        "softmax": lambda: w.softmax(1),
        "log_softmax": lambda: w.log_softmax(1),
        "view": lambda: w.view(64),
        "transpose": lambda: w.t(),
        "row": lambda: w[3],
        "slice": lambda: w[2:5],
        "x[idx]": lambda: w[idx],
        "cat": lambda: t.cat([w, a]),
        "stack": lambda: t.stack([w, a]),
        "unsqueeze": lambda: w.unsqueeze(0),
        "clone": lambda: w.clone(),
        "detach": lambda: w.detach(),
        "clamp": lambda: w.clamp(-1, 1),
        "relu": lambda: f.relu(w),
        "gelu": lambda: f.gelu(w),
        "F.linear": lambda: f.linear(a, w, bias),
        "embedding": lambda: f.embedding(idx, w),
        "layer_norm": lambda: f.layer_norm(a, (8,), bias, bias),
        "cross_entropy": lambda: f.cross_entropy(w, labels),
        "mse_loss": lambda: f.mse_loss(w, a),
        "Linear": lambda: linear(a),
        "Embedding": lambda: table(idx),
        "LayerNorm": lambda: norm(a),
        "ReLU": lambda: relu(w),
        "Dropout": lambda: drop(w),
        "Conv2d": lambda: conv(image),
        "Sequential of three": lambda: model(a),
    }


def backward(t: Any) -> Calls:
    """One operation forward and backward."""
    w, bias = t.randn(8, 8, requires_grad=True), t.randn(8, requires_grad=True)
    a, idx, labels = t.randn(8, 8), t.tensor([1, 3, 5, 7]), t.randint(0, 8, (8,))
    image = t.randn(1, 2, 8, 8)
    kernel = t.randn(2, 2, 3, 3, requires_grad=True)
    f = t.nn.functional

    def both(forward: Callable[[], Any]) -> Callable[[], object]:
        seed = t.ones_like(forward())

        def call() -> None:
            w.grad = bias.grad = kernel.grad = None
            forward().backward(seed)

        return call

    return {
        "add": both(lambda: w + a),
        "mul": both(lambda: w * a),
        "matmul": both(lambda: w @ a),
        "sum": both(lambda: w.sum()),
        "mean": both(lambda: w.mean()),
        "sum of dim": both(lambda: w.sum(1)),
        "max of dim": both(lambda: w.max(1)[0]),
        "softmax": both(lambda: w.softmax(1)),
        "log_softmax": both(lambda: w.log_softmax(1)),
        "view": both(lambda: w.view(64)),
        "transpose": both(lambda: w.t()),
        "slice": both(lambda: w[2:5]),
        "x[idx]": both(lambda: w[idx]),
        "cat": both(lambda: t.cat([w, a])),
        "stack": both(lambda: t.stack([w, a])),
        "clone": both(lambda: w.clone()),
        "relu": both(lambda: f.relu(w)),
        "gelu": both(lambda: f.gelu(w)),
        "F.linear": both(lambda: f.linear(a, w, bias)),
        "embedding": both(lambda: f.embedding(idx, w)),
        "layer_norm": both(lambda: f.layer_norm(w, (8,), bias, bias)),
        "cross_entropy": both(lambda: f.cross_entropy(w, labels)),
        "mse_loss": both(lambda: f.mse_loss(w, a)),
        "conv2d": both(lambda: f.conv2d(image, kernel, padding=1)),
    }


GROUPS = (
    broadcasting,
    reductions,
    indexing,
    layout,
    networks,
    values,
    recorded,
    backward,
)


def run(t: Any, part: int) -> dict[str, float]:
    """ns of the operations of a group."""
    t.set_num_threads(1)
    group = GROUPS[part]
    return {
        f"{group.__name__}: {name}": nanoseconds(call, repeats=5, seconds=0.004)
        for name, call in group(t).items()
    }
