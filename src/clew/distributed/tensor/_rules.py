"""What each operation does with distributed tensors: how operands must lie, and how results do.

A rule is asked for each dim of the mesh by itself. Where an operand is replicated and the result is
not, processes compute different things with it, so its gradient is summed over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import clew
from clew._C import Tensor
from clew.distributed.tensor import _shapes
from clew.distributed.tensor._redistribute import local_sizes, redistribute_local, sum_gradients
from clew.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from clew.overrides import DisableTorchFunctionSubclass

R = Replicate()
Way = tuple[Placement, ...]  # along the dims of the mesh


class Call:
    """One call: its operands, and what is needed to run it on parts.

    Args:
        func: the function.
        args: its arguments.
        kwargs: its named arguments.
    """

    def __init__(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> None:
        from clew.distributed.tensor._api import DTensor

        self.func, self.args, self.kwargs = func, args, kwargs
        self.name = name_of(func)
        self.operands: list[Any] = []
        self.plain = False

        def look(x: Any) -> None:
            if isinstance(x, DTensor):
                self.operands.append(x)
            elif isinstance(x, Tensor):
                self.plain = self.plain or x.ndim > 0
            elif isinstance(x, (list, tuple)):
                for one in x:
                    look(one)

        look(args)
        look(tuple(kwargs.values()))
        self.mesh = self.operands[0]._mesh
        for x in self.operands[1:]:
            if x._mesh != self.mesh:
                raise NotImplementedError(f"DTensor: {self.name} of tensors on two meshes")

    def refuse_plain(self) -> None:
        """Raises where a plain tensor stands beside distributed ones."""
        if self.plain:
            raise RuntimeError(
                f"DTensor: {self.name}: got plain tensors beside distributed ones; make them "
                "distributed by distribute_tensor() or DTensor.from_local()"
            )

    def argument(self, at: int, name: str, default: Any = None) -> Any:
        """An argument that may be given by place or by name."""
        return self.args[at] if at < len(self.args) else self.kwargs.get(name, default)

    def mapped(self, change: Callable[[Any], Any], args: Any = None) -> Any:
        """func's result with every distributed operand changed."""
        from clew.distributed.tensor._api import DTensor

        def replaced(x: Any) -> Any:
            if isinstance(x, DTensor):
                return change(x)
            if isinstance(x, (list, tuple)) and any(isinstance(v, Tensor) for v in x):
                return type(x)(replaced(v) for v in x)
            return x

        given = self.args if args is None else args
        with DisableTorchFunctionSubclass():
            return self.func(
                *(replaced(a) for a in given), **{k: replaced(v) for k, v in self.kwargs.items()}
            )

    def whole(self) -> Any:
        """The result for the wholes, without elements."""

        def empty(x: Any) -> Any:
            return clew.empty(x._sizes, dtype=x.dtype, device="meta")

        with clew.no_grad():
            return self.mapped(empty)

    def parts(self, wanted: Sequence[Way], out: Way) -> dict[int, Any]:
        """Each operand's part, lying as wanted, by the operand's id."""
        from clew.distributed.tensor._api import part_of

        made: dict[int, Any] = {}
        for x, way in zip(self.operands, wanted):
            if id(x) in made:
                continue
            local = redistribute_local(part_of(x), x._sizes, self.mesh, x._placements, way)
            groups = [
                self.mesh.get_group(i)
                for i in range(self.mesh.ndim)
                if isinstance(way[i], Replicate) and not isinstance(out[i], Replicate)
            ]
            made[id(x)] = sum_gradients(local, groups)
        return made

    def run(self, wanted: Sequence[Way], out: Way, args: Any = None, sizes: Any = None) -> Any:
        """Runs it on parts.

        Args:
            wanted: how each operand must lie.
            out: how results lie.
            args: other arguments for the parts.
            sizes: of the whole result; found out if None.
        """
        whole = self.whole() if sizes is None else None
        parts = self.parts(wanted, out)
        made = self.mapped(lambda x: parts[id(x)], args)
        return self.wrapped(made, whole, out, sizes)

    def wrapped(self, made: Any, whole: Any, out: Way, sizes: Any = None) -> Any:
        """Results as distributed tensors."""
        from clew.distributed.tensor._api import wrap

        if isinstance(made, Tensor):
            return wrap(made, self.mesh, out, whole.shape if sizes is None else sizes)
        if isinstance(made, tuple) and hasattr(made, "_fields"):
            return type(made)(*(self.wrapped(m, w, out) for m, w in zip(made, whole)))
        if isinstance(made, (list, tuple)):
            return type(made)(self.wrapped(m, w, out) for m, w in zip(made, whole))
        return made

    def each(self, rule: Callable[[int], tuple[list[Placement], Placement]], **how: Any) -> Any:
        """Runs it with what a rule says for each dim of the mesh."""
        self.refuse_plain()
        columns = [rule(i) for i in range(self.mesh.ndim)]
        wanted = [tuple(c[0][k] for c in columns) for k in range(len(self.operands))]
        return self.run(wanted, tuple(c[1] for c in columns), **how)


def name_of(func: Any) -> str:
    """A function's plain name: `add` of `Tensor.add`, `__add__` and `Tensor.add_`'s `add_`."""
    name = getattr(func, "__name__", "")
    if name == "apply":
        return getattr(getattr(func, "__self__", None), "__name__", name)
    if name == "__get__":
        owner = getattr(func, "__self__", None)
        name = getattr(getattr(owner, "fget", owner), "__name__", name)
        return name.removeprefix("_").removesuffix("_property")
    if name in ("__bool__", "__float__", "__int__", "__index__", "__contains__", "__array__"):
        return name
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
        if name in ("radd", "rsub", "rmul"):
            name = name[1:]
        elif name[:1] == "i" and name[1:] in _BINARY:
            name = name[1:] + "_"
    return name.removeprefix("_")


# ---- element by element ----

_LINEAR = set("neg clone detach contiguous to positive alias data double float".split())
_BINARY = set("add sub mul truediv matmul pow floordiv mod div".split())
_POINTWISE = _LINEAR | set(
    """
    add sub mul div truediv true_divide floordiv floor_divide mod remainder fmod pow abs square sqrt
    rsqrt exp exp2 expm1 log log2 log1p sin cos tan tanh sigmoid relu relu6 gelu silu mish elu celu
    selu leaky_relu hardtanh hardswish hardsigmoid softplus logsigmoid tanhshrink softsign erf erfc
    reciprocal sign floor ceil round trunc clamp clamp_min clamp_max maximum minimum where lerp
    addcmul addcdiv eq ne lt le gt ge logical_not logical_and logical_or logical_xor isnan isinf
    isfinite nan_to_num masked_fill bfloat16 half int long bool type zeros_like ones_like empty_like
    full_like rtruediv rpow rfloordiv rmod atan2 logaddexp type_as threshold hardshrink softshrink
    invert and or xor
    """.split()
)


def _pointwise(c: Call) -> Any:
    ndim = max(x.ndim for x in c.operands)

    def rule(i: int) -> tuple[list[Placement], Placement]:
        ways = [x._placements[i] for x in c.operands]
        for x, way in zip(c.operands, ways):
            if not isinstance(way, Shard) or x._sizes[way.dim] == 1:
                continue
            back = x.ndim - way.dim  # counted from the end
            wanted = [
                Shard(y.ndim - back) if back <= y.ndim and y._sizes[y.ndim - back] > 1 else R
                for y in c.operands
            ]
            return [*wanted], Shard(ndim - back)
        if any(isinstance(w, Partial) for w in ways) and _keeps_sums(c, ways):
            return ways, ways[0] if isinstance(ways[0], Partial) else ways[1]
        return [R] * len(ways), R

    return c.each(rule, sizes=clew.broadcast_shapes(*(x._sizes for x in c.operands)))


def _keeps_sums(c: Call, ways: list[Placement]) -> bool:
    if c.name in _LINEAR:
        return not c.kwargs and all(not isinstance(a, clew.dtype) for a in c.args)
    if c.name in ("add", "sub"):
        return len(ways) == 2 and ways[0] == ways[1]
    if c.name == "mul":
        return len(ways) == 1 or not all(isinstance(w, Partial) for w in ways)
    return (
        c.name in ("div", "truediv", "true_divide")
        and isinstance(ways[0], Partial)
        and (len(ways) == 1 or isinstance(ways[1], Replicate))
    )


def _in_place(c: Call) -> Any:
    """The first operand keeps lying as it does."""
    x = c.operands[0]
    if x is not c.args[0]:
        raise NotImplementedError(f"DTensor: {c.name} of a plain tensor with a distributed one")
    c.refuse_plain()
    wanted = []
    for y in c.operands:
        way = list(x._placements)
        for i, p in enumerate(way):
            if isinstance(p, Shard):
                own = y.ndim - (x.ndim - p.dim)
                way[i] = Shard(own) if own >= 0 and y._sizes[own] > 1 else R
        wanted.append(tuple(way))
    if any(isinstance(p, Partial) for p in x._placements) and c.name not in (
        "zero_",
        "mul_",
        "div_",
    ):
        raise NotImplementedError(f"DTensor: {c.name} of what is partial; redistribute() first")
    parts = c.parts(wanted, x._placements)
    parts[id(x)] = x
    c.mapped(lambda y: parts[id(y)])
    return x


def _random_in_place(c: Call) -> Any:
    """Draws the whole, so that the numbers are those of one process, and keeps the part."""
    x = c.operands[0]
    if all(isinstance(p, Replicate) for p in x._placements):
        c.mapped(lambda y: y)
        return x
    whole = clew.empty(x._sizes, dtype=x.dtype)
    with clew.no_grad():
        c.mapped(lambda y: whole)
        same = [R] * c.mesh.ndim
        part = redistribute_local(whole, x._sizes, c.mesh, same, x._placements)
        with DisableTorchFunctionSubclass():
            x.copy_(part)
    return x


def _dropout(c: Call) -> Any:
    if not c.argument(2, "training", True) or not c.argument(1, "p", 0.5):
        return _pointwise(c)
    x = c.operands[0]
    mask = c.mapped(lambda y: clew.ones(y._sizes, dtype=y.dtype))
    from clew.distributed.tensor._api import wrap

    way = tuple(R if isinstance(p, Partial) else p for p in x._placements)
    same = [R] * c.mesh.ndim
    part = redistribute_local(mask, x._sizes, c.mesh, same, way)
    return x * wrap(part, c.mesh, way, x._sizes)


# ---- products ----


def _product(c: Call) -> Any:
    a, b = c.operands[:2]
    if len(c.operands) != 2 or a.ndim < 2 or b.ndim < 2:
        return _replicated(c)
    ndim = max(a.ndim, b.ndim)

    def rule(i: int) -> tuple[list[Placement], Placement]:
        p, q = a._placements[i], b._placements[i]
        if isinstance(q, Shard) and q.dim == b.ndim - 1:
            return [R, q], Shard(ndim - 1)
        if isinstance(q, Shard) and q.dim == b.ndim - 2:
            return [Shard(a.ndim - 1), q], Partial()
        if isinstance(p, Shard) and p.dim == a.ndim - 1:
            return [p, Shard(b.ndim - 2)], Partial()
        if isinstance(p, Shard) and p.dim == a.ndim - 2:
            return [p, R], Shard(ndim - 2)
        for x, y, way in ((a, b, p), (b, a, q)):
            if isinstance(way, Shard) and x._sizes[way.dim] > 1:
                back = x.ndim - way.dim
                other: Placement = R
                if back <= y.ndim and y._sizes[y.ndim - back] > 1:
                    other = Shard(y.ndim - back)
                wanted = [way, other] if x is a else [other, way]
                return wanted, Shard(ndim - back)
        return _sums_pass(p, q)

    return c.each(rule)


def _sums_pass(p: Placement, q: Placement) -> tuple[list[Placement], Placement]:
    if isinstance(p, Partial) and not isinstance(q, Partial):
        return [p, R], p
    if isinstance(q, Partial) and not isinstance(p, Partial):
        return [R, q], q
    return [R, R], R


def _linear(c: Call) -> Any:
    x, w = c.operands[:2]
    biased = len(c.operands) == 3

    def rule(i: int) -> tuple[list[Placement], Placement]:
        p, q = x._placements[i], w._placements[i]
        wanted: list[Placement]
        out: Placement
        bias: Placement
        if isinstance(q, Shard) and q.dim == 0:
            wanted, out, bias = [R, q], Shard(x.ndim - 1), Shard(0)
        elif isinstance(q, Shard) or (isinstance(p, Shard) and p.dim == x.ndim - 1):
            wanted, out, bias = [Shard(x.ndim - 1), Shard(1)], Partial(), Partial()
        elif isinstance(p, Shard):
            wanted, out, bias = [p, R], p, R
        else:
            wanted, out = _sums_pass(p, q)
            bias = out
        return [*wanted, bias] if biased else wanted, out

    return c.each(rule)


def _addmm(c: Call) -> Any:
    if c.kwargs or len(c.args) != 3:
        return _replicated(c)
    bias, x, w = c.args
    return x @ w + bias


def _embedding(c: Call) -> Any:
    c.refuse_plain()
    weight, ids = c.args[:2]
    ways = [q for q in weight._placements if isinstance(q, Shard) and q.dim == 0]
    if not ways:

        def rule(i: int) -> tuple[list[Placement], Placement]:
            p, q = ids._placements[i], weight._placements[i]
            if isinstance(q, Shard):
                return [q, R], Shard(ids.ndim)
            return ([R, p], p) if isinstance(p, Shard) else ([R, R], R)

        return c.each(rule)
    # Rows that lie elsewhere give zeros; the sum has them all.
    out: list[Placement] = []
    want: list[Placement] = []
    for q in weight._placements:
        rows = isinstance(q, Shard) and q.dim == 0
        out.append(Partial() if rows else Shard(ids.ndim) if isinstance(q, Shard) else R)
        want.append(R)
    parts = c.parts([weight._placements, tuple(want)], tuple(out))
    place = c.mesh.get_coordinate()
    _, begin = local_sizes(weight._sizes, c.mesh, weight._placements, place)
    table, at = parts[id(weight)], parts[id(ids)] - begin[0]
    inside = (at >= 0) & (at < table.shape[0])
    padding = c.argument(2, "padding_idx")
    if padding is not None:
        padding = padding % weight._sizes[0] - begin[0]
        padding = padding if 0 <= padding < table.shape[0] else None
    if table.shape[0]:
        rows_ = clew.nn.functional.embedding(at.where(inside, clew.zeros_like(at)), table, padding)
    else:
        rows_ = clew.zeros(*at.shape, table.shape[1], dtype=table.dtype)
    made = rows_ * inside.unsqueeze(-1).to(rows_.dtype)
    return c.wrapped(made, None, tuple(out), [*ids._sizes, weight._sizes[1]])


def _attention(c: Call) -> Any:
    q = c.operands[0]

    def rule(i: int) -> tuple[list[Placement], Placement]:
        p = q._placements[i]
        fits = isinstance(p, Shard) and p.dim < q.ndim - 2
        return ([p] * len(c.operands), p) if fits else ([R] * len(c.operands), R)

    return c.each(rule)


# ---- along some dims ----


def _replicated(c: Call) -> Any:
    """Every process computes the whole."""
    same = (R,) * c.mesh.ndim
    return c.run([same] * len(c.operands), same)


def _value(c: Call) -> Any:
    """What is no tensor, of the whole."""
    same = (R,) * c.mesh.ndim
    parts = c.parts([same] * len(c.operands), same)
    return c.mapped(lambda x: parts[id(x)])


def _whole_along(dims: Callable[[Call], list[int]]) -> Callable[[Call], Any]:
    """Parts of the first operand are enough, but for these dims; the others are replicated."""

    def run(c: Call) -> Any:
        x, needed = c.operands[0], dims(c)
        rest: list[Placement] = [R] * (len(c.operands) - 1)

        def rule(i: int) -> tuple[list[Placement], Placement]:
            p = x._placements[i]
            ok = isinstance(p, Shard) and p.dim not in needed
            return ([p, *rest], p) if ok else ([R, *rest], R)

        return c.each(rule)

    return run


def _one_dim(c: Call) -> list[int]:
    dim = c.argument(1, "dim", -1)
    return list(range(c.operands[0].ndim)) if dim is None else [dim % max(c.operands[0].ndim, 1)]


def _last_dims(c: Call) -> list[int]:
    n = c.operands[0].ndim
    shape = c.argument(1, "normalized_shape")
    count = 1 if isinstance(shape, int) else len(shape)
    return list(range(n - count, n))


def _reduced_dims(c: Call) -> tuple[list[int], bool]:
    n = c.operands[0].ndim
    dim = c.argument(1, "dim")
    if dim is None or dim == ():
        return list(range(n)), bool(c.kwargs.get("keepdim"))
    keep = bool(c.argument(2, "keepdim", False))
    return [d % max(n, 1) for d in ((dim,) if isinstance(dim, int) else dim)], keep


def _reduction(linear: bool) -> Callable[[Call], Any]:
    def run(c: Call) -> Any:
        x = c.operands[0]
        dims, keep = _reduced_dims(c)

        def rule(i: int) -> tuple[list[Placement], Placement]:
            p = x._placements[i]
            if isinstance(p, Partial):
                return ([p], p) if linear else ([R], R)
            if isinstance(p, Shard) and p.dim not in dims:
                return [p], Shard(p.dim if keep else p.dim - sum(d < p.dim for d in dims))
            if isinstance(p, Shard) and linear:
                return [p], Partial()
            return [R], R

        return c.each(rule)

    return run


def _mean(c: Call) -> Any:
    x = c.operands[0]
    dims, keep = _reduced_dims(c)
    count = 1
    for d in dims:
        count *= x._sizes[d]
    dtype = c.kwargs.get("dtype")
    total = x.sum(dims, keepdim=keep, **({} if dtype is None else {"dtype": dtype}))
    return total / count


def _backward(c: Call) -> Any:
    return c.mapped(lambda x: x)


_PLAIN = set(
    """
    backward requires_grad_ register_hook register_post_accumulate_grad_hook retain_grad dim
    is_floating_point is_complex is_inference data_ptr element_size grad grad_fn requires_grad
    is_leaf dtype device ndim layout itemsize hash names untyped_storage storage_offset _version
    is_contiguous get_device is_sparse is_meta
    """.split()
)
RULES: dict[str, Callable[[Call], Any]] = {
    **dict.fromkeys(_POINTWISE, _pointwise),
    **dict.fromkeys("add_ sub_ mul_ div_ copy_ zero_ fill_ clamp_ addcmul_ addcdiv_ lerp_ sqrt_ "
                    "neg_ abs_ pow_ relu_ masked_fill_".split(), _in_place),
    **dict.fromkeys("normal_ uniform_ trunc_normal_ exponential_ bernoulli_ random_ log_normal_ "
                    "cauchy_ geometric_".split(), _random_in_place),
    "dropout": _dropout,
    **dict.fromkeys("matmul mm bmm".split(), _product),
    "linear": _linear,
    "addmm": _addmm,
    "embedding": _embedding,
    "scaled_dot_product_attention": _attention,
    **dict.fromkeys("softmax log_softmax cumsum cumprod sort argsort normalize logcumsumexp flip "
                    "roll".split(), _whole_along(_one_dim)),
    **dict.fromkeys("layer_norm rms_norm".split(), _whole_along(_last_dims)),
    "sum": _reduction(True),
    "mean": _mean,
    **dict.fromkeys("amax amin prod all any logsumexp var std norm".split(), _reduction(False)),
    **dict.fromkeys("max min argmax argmin topk median cross_entropy nll_loss mse_loss l1_loss "
                    "smooth_l1_loss huber_loss binary_cross_entropy kl_div isclose repeat "
                    "binary_cross_entropy_with_logits gather scatter stack index_select "
                    "masked_select tril triu vector_norm float_power outer conv1d conv2d".split(),
                    _replicated),
    **dict.fromkeys("allclose equal item tolist numpy is_nonzero __bool__ __float__ __int__ "
                    "__index__ __contains__ __array__".split(), _value),
    **_shapes.RULES,
}  # fmt: skip


def call(func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """The result of a function of distributed tensors."""
    name = name_of(func)
    if name in _PLAIN:
        with DisableTorchFunctionSubclass():
            return func(*args, **kwargs)
    rule = RULES.get(name)
    if rule is None:
        raise NotImplementedError(
            f"DTensor: there is no rule for {name}; use full_tensor(), which every process has, or "
            "to_local(), this process's part"
        )
    return rule(Call(func, args, kwargs))
