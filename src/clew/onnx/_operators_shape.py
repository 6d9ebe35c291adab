"""ONNX's operators that move, pick and make elements."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor
from clew.onnx._errors import OnnxExporterError
from clew.onnx._operators import dtype_of, ints, operator


@operator("Constant")
def _constant(a: Any, env: Any) -> Tensor:
    if "value" in a:
        made: Tensor = a["value"]
        return made
    for key, dtype in (("value_float", clew.float32), ("value_floats", clew.float32),
                       ("value_int", clew.int64), ("value_ints", clew.int64)):  # fmt: skip
        if key in a:
            return clew.tensor(a[key], dtype=dtype)
    raise OnnxExporterError("onnx.load: a Constant has a value that is not read")


@operator("ConstantOfShape")
def _constant_of_shape(a: Any, env: Any, shape: Tensor) -> Tensor:
    value = a.get("value")
    if value is None:
        return clew.zeros(ints(shape))
    return clew.full(ints(shape), value.reshape(()).item(), dtype=value.dtype)


@operator("Shape")
def _shape(a: Any, env: Any, x: Tensor) -> Tensor:
    return clew.tensor(list(x.shape)[a.get("start", 0) : a.get("end")], dtype=clew.int64)


@operator("Size")
def _size(a: Any, env: Any, x: Tensor) -> Tensor:
    return clew.tensor(x.numel(), dtype=clew.int64)


@operator("Reshape")
def _reshape(a: Any, env: Any, x: Tensor, shape: Tensor) -> Tensor:
    sizes = ints(shape)
    if not a.get("allowzero"):
        sizes = [x.shape[d] if n == 0 else n for d, n in enumerate(sizes)]
    return x.reshape(sizes)


@operator("Flatten")
def _flatten(a: Any, env: Any, x: Tensor) -> Tensor:
    axis = a.get("axis", 1)
    lead = 1
    for n in x.shape[: axis if axis >= 0 else x.dim() + axis]:
        lead *= n
    return x.reshape(lead, -1)


@operator("Transpose")
def _transpose(a: Any, env: Any, x: Tensor) -> Tensor:
    return x.permute(a.get("perm") or list(range(x.dim()))[::-1])


@operator("Squeeze")
def _squeeze(a: Any, env: Any, x: Tensor, axes: Any = None) -> Tensor:
    dims = ints(axes) if axes is not None else a.get("axes")
    return x.squeeze() if dims is None else x.squeeze(dims) if dims else x


@operator("Unsqueeze")
def _unsqueeze(a: Any, env: Any, x: Tensor, axes: Any = None) -> Tensor:
    dims = ints(axes) if axes is not None else a["axes"]
    n = x.dim() + len(dims)
    for d in sorted(d % n for d in dims):
        x = x.unsqueeze(d)
    return x


@operator("Concat")
def _concat(a: Any, env: Any, *x: Tensor) -> Tensor:
    return clew.cat(list(x), a["axis"])


@operator("Split")
def _split(a: Any, env: Any, x: Tensor, sizes: Any = None) -> Any:
    d = a.get("axis", 0)
    lengths = ints(sizes) if sizes is not None else a.get("split")
    if lengths is None:
        count = a.get("num_outputs", a["_outputs"])
        each = -(-x.shape[d] // count)
        lengths = [each] * (count - 1) + [x.shape[d] - each * (count - 1)]
    return x.split(lengths, d)


@operator("Slice")
def _slice(a: Any, env: Any, x: Tensor, starts: Any = None, ends: Any = None, axes: Any = None,
           steps: Any = None) -> Tensor:  # fmt: skip
    first = ints(starts) if starts is not None else a["starts"]
    last = ints(ends) if ends is not None else a["ends"]
    dims = ints(axes) if axes is not None else a.get("axes") or list(range(len(first)))
    by = ints(steps) if steps is not None else [1] * len(first)
    for s, e, d, k in zip(first, last, dims, by):
        n = x.shape[d]
        if k > 0:
            index: list[Any] = [slice(None)] * x.dim()
            index[d] = slice(max(s + n, 0) if s < 0 else min(s, n), max(e + n, 0) if e < 0 else min(
                e, n), k)  # fmt: skip
            x = x[tuple(index)]
        else:
            places = list(range(n))[slice(s, None if e < -n else e, k)]
            x = x.index_select(d, clew.tensor(places, dtype=clew.int64))
    return x


@operator("Expand")
def _expand(a: Any, env: Any, x: Tensor, shape: Tensor) -> Tensor:
    return x.expand(clew.broadcast_shapes(tuple(x.shape), tuple(ints(shape))))


@operator("Tile")
def _tile(a: Any, env: Any, x: Tensor, times: Tensor) -> Tensor:
    return x.repeat(ints(times))


@operator("Range")
def _range(a: Any, env: Any, start: Tensor, end: Tensor, step: Tensor) -> Tensor:
    return clew.arange(start.item(), end.item(), step.item(), dtype=start.dtype)


def _wrapped(index: Tensor, size: int) -> Tensor:
    index = index.long()
    return clew.where(index < 0, index + size, index)


@operator("Gather")
def _gather(a: Any, env: Any, x: Tensor, index: Tensor) -> Tensor:
    d = a.get("axis", 0) % x.dim()
    if not index.dim():
        return x.select(d, int(index))
    places = _wrapped(index, x.shape[d])
    if d == 0 and x.dim() == 2 and x.is_floating_point():
        return clew.nn.functional.embedding(places, x)
    found = x.index_select(d, places.reshape(-1))
    return found.reshape((*x.shape[:d], *index.shape, *x.shape[d + 1 :]))


@operator("GatherElements")
def _gather_elements(a: Any, env: Any, x: Tensor, index: Tensor) -> Tensor:
    d = a.get("axis", 0) % x.dim()
    return x.gather(d, _wrapped(index, x.shape[d]))


@operator("GatherND")
def _gather_nd(a: Any, env: Any, x: Tensor, index: Tensor) -> Tensor:
    if a.get("batch_dims"):
        raise OnnxExporterError("onnx.load: GatherND with batch_dims is not read")
    return x[tuple(c.long() for c in index.unbind(-1))]


@operator("ScatterElements", "Scatter")
def _scatter_elements(a: Any, env: Any, x: Tensor, index: Tensor, part: Tensor) -> Tensor:
    d = a.get("axis", 0) % max(x.dim(), 1)
    index = _wrapped(index, x.shape[d])
    how = a.get("reduction", "none")
    if how == "none":
        return x.scatter(d, index, part)
    if how == "add":
        return x.scatter_add(d, index, part)
    names = {"mul": "prod", "max": "amax", "min": "amin"}
    return x.scatter_reduce(d, index, part, names[how])


@operator("ScatterND")
def _scatter_nd(a: Any, env: Any, x: Tensor, index: Tensor, part: Tensor) -> Tensor:
    how = a.get("reduction", "none")
    if how not in ("none", "add"):
        raise OnnxExporterError(f"onnx.load: ScatterND with reduction {how!r} is not read")
    places = tuple(c.long() for c in index.unbind(-1))
    return x.index_put(places, part, accumulate=how == "add")


@operator("NonZero")
def _nonzero(a: Any, env: Any, x: Tensor) -> Tensor:
    return x.nonzero().t()


@operator("Compress")
def _compress(a: Any, env: Any, x: Tensor, mask: Tensor) -> Tensor:
    axis = a.get("axis")
    if axis is None:
        x, axis = x.reshape(-1), 0
    places = mask.nonzero().reshape(-1)
    return x.index_select(axis, places)


@operator("OneHot")
def _one_hot(a: Any, env: Any, x: Tensor, depth: Tensor, values: Tensor) -> Tensor:
    n = int(depth)
    axis = a.get("axis", -1)
    found = _wrapped(x, n).unsqueeze(-1) == clew.arange(n)
    made = clew.where(found, values[1], values[0])
    return made if axis == -1 else made.movedim(-1, axis)


@operator("Trilu")
def _trilu(a: Any, env: Any, x: Tensor, k: Any = None) -> Tensor:
    diagonal = 0 if k is None else int(k)
    return x.triu(diagonal) if a.get("upper", 1) else x.tril(diagonal)


@operator("Pad")
def _pad(a: Any, env: Any, x: Tensor, pads: Any = None, value: Any = None,
         axes: Any = None) -> Tensor:  # fmt: skip
    amounts = ints(pads) if pads is not None else a["pads"]
    n = x.dim()
    dims = [d % n for d in ints(axes)] if axes is not None else list(range(n))
    half = len(amounts) // 2
    both = {d: (amounts[k], amounts[half + k]) for k, d in enumerate(dims)}
    flat: list[int] = []
    for d in reversed(range(n)):
        flat += both.get(d, (0, 0))
    mode = a.get("mode", "constant")
    if mode == "constant":
        fill = a.get("value", 0.0) if value is None else value.item()
        if x.dtype == clew.bool:
            return clew.nn.functional.pad(x.int(), flat, value=int(fill)).bool()
        return clew.nn.functional.pad(x, flat, value=fill)
    names = {"edge": "replicate", "reflect": "reflect", "wrap": "circular"}
    while len(flat) > 2 and flat[-2:] == [0, 0]:
        flat = flat[:-2]
    lead = n - len(flat) // 2
    if lead in (1, 2) or len(flat) > 6:
        return clew.nn.functional.pad(x, flat, names[mode])
    folded = x.reshape(1, -1, *x.shape[lead:]) if lead else x[None, None]
    done = clew.nn.functional.pad(folded, flat, names[mode])
    return done.reshape((*x.shape[:lead], *done.shape[2:]))


@operator("DepthToSpace")
def _depth_to_space(a: Any, env: Any, x: Tensor) -> Tensor:
    k = a["blocksize"]
    if a.get("mode", "DCR") == "CRD":
        return clew.nn.functional.pixel_shuffle(x, k)
    b, c, h, w = x.shape
    y = x.reshape(b, k, k, c // k**2, h, w).permute(0, 3, 4, 1, 5, 2)
    return y.reshape(b, c // k**2, h * k, w * k)


@operator("EyeLike")
def _eye_like(a: Any, env: Any, x: Tensor) -> Tensor:
    dtype = dtype_of(a["dtype"]) if "dtype" in a else x.dtype
    rows, columns = clew.arange(x.shape[0]), clew.arange(x.shape[1])
    return (rows[:, None] + a.get("k", 0) == columns).to(dtype)


def _random(function: Any, like: bool) -> Any:
    def run(a: Any, env: Any, *x: Tensor) -> Tensor:
        shape = list(x[0].shape) if like else a["shape"]
        default = x[0].dtype if like else clew.float32
        dtype = dtype_of(a["dtype"]) if "dtype" in a else default
        made = function(shape, dtype=dtype)
        if function is clew.rand:
            low, high = a.get("low", 0.0), a.get("high", 1.0)
            return made * (high - low) + low
        return made * a.get("scale", 1.0) + a.get("mean", 0.0)

    return run


for _like, _end in ((False, ""), (True, "Like")):
    operator(f"RandomNormal{_end}")(_random(clew.randn, _like))
    operator(f"RandomUniform{_end}")(_random(clew.rand, _like))
