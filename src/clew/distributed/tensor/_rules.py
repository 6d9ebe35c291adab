"""What each operation does with distributed tensors: how operands must lie, and how results do.

A rule is asked for each dim of the mesh by itself. Where an operand is replicated and the result is
not, processes compute different things with it, so its gradient is summed over them. A rule that
does not know an argument leaves the call to `replicated`, which is right for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import clew
from clew._base.overriding import DisableTorchFunctionSubclass
from clew.autograd._backward import _tensor_backward
from clew.distributed.tensor import _random, _shapes, _writes
from clew.distributed.tensor._api import DTensor, part_of, rules
from clew.distributed.tensor._call import Call, name_of
from clew.distributed.tensor._redistribute import alike, local_sizes, new_summand
from clew.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

R = Replicate()

# ---- element by element ----

_SAME = set("clone detach contiguous to cpu positive alias data double float".split())
_LINEAR = _SAME | {"neg", "negative"}
# The native operations of this kind, and those that are written with others.
_NATIVE = {
    name.rpartition(".")[2]
    for name, kind in clew._C._operation_kinds.items()
    if kind == "elementwise"
}
_POINTWISE = (
    _LINEAR
    | {name for name in _NATIVE if not name.startswith("_")}
    | set(
        """
    truediv true_divide floordiv floor_divide mod relu6 gelu elu celu selu leaky_relu clip isreal
    clamp clamp_min clamp_max nan_to_num where masked_fill bfloat16 half int long bool type
    zeros_like ones_like empty_like full_like rtruediv rpow rfloordiv rmod type_as threshold
    hardshrink softshrink invert and or xor lshift rshift rand ror rxor conj conj_physical
    resolve_conj resolve_neg igamma igammac gammainc gammaincc polygamma mvlgamma multigammaln
    logit ldexp swish softsign tanhshrink rsub
    """.split()
    )
)


def _pointwise(c: Call) -> Any:
    x = c.operands[0]
    if c.name == "where" and len(c.args) + len(c.kwargs) < 3:
        return replicated(c)
    if c.kwargs.get("inplace") or any(a is True for a in c.args[1:]):
        c.refuse_copy()
        if any(isinstance(p, Partial) for p in x._placements):
            raise NotImplementedError(
                f"DTensor: {c.name} in place of what is partial; redistribute() first"
            )
    sizes = clew.broadcast_shapes(*(x._sizes for x in c.operands))
    ndim = len(sizes)

    def rule(i: int) -> tuple[list[Placement], Placement]:
        ways = [x._placements[i] for x in c.operands]
        for x, way in zip(c.operands, ways):
            back = x.ndim - way.dim if isinstance(way, Shard) else 0  # counted from the end
            if not isinstance(way, Shard) or x._sizes[way.dim] != sizes[ndim - back]:
                continue
            wanted = [
                way._at(y.ndim - back)
                if back <= y.ndim and y._sizes[y.ndim - back] == sizes[ndim - back]
                else R
                for y in c.operands
            ]
            return [*wanted], way._at(ndim - back)
        ways = [w if isinstance(w, Partial) else R for w in ways]
        if any(isinstance(w, Partial) for w in ways) and _keeps_sums(c, ways):
            return ways, ways[0] if isinstance(ways[0], Partial) else ways[1]
        return [R] * len(ways), R

    return c.each(rule, sizes=sizes)


def _keeps_sums(c: Call, ways: list[Placement]) -> bool:
    if any(isinstance(w, Partial) and not w._linear for w in ways) and c.name not in _SAME:
        return False
    if c.name in _LINEAR:
        return not c.kwargs and all(not isinstance(a, clew.dtype) for a in c.args)
    if c.name in ("add", "sub"):
        return len(ways) == 2 and ways[0] == ways[1]
    if c.name == "mul":
        fits = len(ways) == 1 or not all(isinstance(w, Partial) for w in ways)
    else:
        fits = (
            c.name in ("div", "truediv", "true_divide")
            and not c.kwargs
            and c.args[0] is c.operands[0]
            and isinstance(ways[0], Partial)
            and (len(ways) == 1 or isinstance(ways[1], Replicate))
        )
    return fits and c.fixed(*(x for x, w in zip(c.operands, ways) if not isinstance(w, Partial)))


def _in_place(c: Call) -> Any:
    """The first operand keeps lying as it does."""
    x = c.operands[0]
    if not c.args or x is not c.args[0]:
        raise NotImplementedError(f"DTensor: {c.name} of a plain tensor with a distributed one")
    c.refuse_plain()
    c.refuse_copy()
    wanted = []
    for y in c.operands:
        way = list(x._placements)
        for i, p in enumerate(way):
            if isinstance(p, Shard):
                own = y.ndim - (x.ndim - p.dim)
                way[i] = p._at(own) if own >= 0 and y._sizes[own] == x._sizes[p.dim] else R
            elif y is not x:
                way[i] = R
        wanted.append(tuple(way))
    sums = [p for p in x._placements if isinstance(p, Partial)]
    fits = ("zero_", "mul_", "div_") if all(p._linear for p in sums) else ()
    if sums and (c.name not in fits or c.kwargs or any(y is x for y in c.operands[1:])):
        raise NotImplementedError(f"DTensor: {c.name} of what is partial; redistribute() first")
    if sums and not c.fixed(*c.operands[1:]):
        raise NotImplementedError(
            f"DTensor: {c.name} of what is partial with what takes a gradient; redistribute() first"
        )
    c.with_operands([x, *c.parts(wanted, x._placements)[1:]])
    return x


def _dropout(c: Call) -> Any:
    if not c.argument(2, "training", True) or not c.argument(1, "p", 0.5):
        x = c.operands[0]
        return x if c.argument(3, "inplace", False) else c.run([x._placements], x._placements)
    return _random.dropout(c)


# ---- products ----


def _product(c: Call) -> Any:
    if len(c.operands) != 2 or min(x.ndim for x in c.operands) < 2:
        return replicated(c)
    a, b = c.operands
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
        return _sums_pass(c, p, q)

    return c.each(rule)


def _sums_pass(c: Call, p: Placement, q: Placement) -> tuple[list[Placement], Placement]:
    a, b = c.operands[:2]
    if isinstance(p, Partial) and p._linear and not isinstance(q, Partial) and c.fixed(b):
        return [p, R], p
    if isinstance(q, Partial) and q._linear and not isinstance(p, Partial) and c.fixed(a):
        return [R, q], q
    return [R, R], R


def _linear(c: Call) -> Any:
    c.refuse_plain()
    x, w = c.operands[:2]
    if x is not c.args[0] or w is not c.args[1] or w.ndim != 2:
        return replicated(c)
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
            wanted, out = _sums_pass(c, p, q)
            bias = out
        return [*wanted, bias] if biased else wanted, out

    columns = [rule(i) for i in range(c.mesh.ndim)]
    ways = [tuple(column[0][k] for column in columns) for k in range(len(c.operands))]
    out = tuple(column[1] for column in columns)
    parts, groups = c.parts(ways, out), c.summing(ways, out)
    if biased:
        parts[2] = alike(parts[2], groups)
    made = new_summand(c.with_operands(parts), groups)
    return c.wrapped(made, None, out, [*x._sizes[:-1], w._sizes[0]])


def _addmm(c: Call) -> Any:
    if c.kwargs or len(c.args) != 3 or len(c.operands) != 3:
        return replicated(c)
    bias, x, w = c.args
    return x @ w + bias


def _embedding(c: Call) -> Any:
    """Of the table, the rows' numbers, the row without gradient (-1 for none), and by frequency."""
    c.refuse_plain()
    if len(c.operands) != 2 or c.argument(3, "scale_grad_by_freq", False):
        return replicated(c)
    weight, ids = c.operands
    if not any(q.is_shard(0) for q in weight._placements):

        def rule(i: int) -> tuple[list[Placement], Placement]:
            p, q = ids._placements[i], weight._placements[i]
            if isinstance(q, Shard):
                return [q, R], Shard(ids.ndim)
            return ([R, p], p) if isinstance(p, Shard) else ([R, R], R)

        return c.each(rule)
    # Rows that lie elsewhere give zeros; the sum has them all.
    rows, columns = weight._sizes
    out = tuple(
        Partial() if q.is_shard(0) else Shard(ids.ndim) if isinstance(q, Shard) else R
        for q in weight._placements
    )
    ways = tuple(q if isinstance(q, Shard) else R for q in weight._placements)
    table, at = c.parts([ways, (R,) * c.mesh.ndim], out)
    if at.numel() and not 0 <= int(at.min()) <= int(at.max()) < rows:
        raise IndexError(
            f"embedding: indices must be in [0, {rows}); got {int(at.min())} to {int(at.max())}"
        )
    begin = local_sizes(weight._sizes, c.mesh, weight._placements, c.mesh.get_coordinate())[1][0]
    at = at - begin
    inside = (at >= 0) & (at < table.shape[0])
    padding = c.argument(2, "padding_idx", -1) - begin
    padding = padding if padding < table.shape[0] else -1
    if table.shape[0]:
        found = c.func(table, at.where(inside, 0), padding if padding >= 0 else -1)
        made = found * inside.unsqueeze(-1).to(found.dtype)
    else:
        made = (table.sum() * 0).expand(*at.shape, table.shape[1])
    made = new_summand(made, c.summing([ways], out))
    return c.wrapped(made, None, out, [*ids._sizes, columns])


def _attention(c: Call) -> Any:
    q = c.operands[0]
    leading = q._sizes[:-2]
    masked = len(c.operands) != 3 or c.argument(3, "attn_mask") is not None
    fits = not masked and all(x._sizes[:-2] == leading for x in c.operands)
    if c.argument(4, "dropout_p", 0.0):
        _random.agreed(c)
        fits = False

    def rule(i: int) -> tuple[list[Placement], Placement]:
        p = q._placements[i]
        cut = fits and isinstance(p, Shard) and p.dim < q.ndim - 2
        return ([p] * len(c.operands), p) if cut else ([R] * len(c.operands), R)

    return c.each(rule)


# ---- along some dims ----


def replicated(c: Call) -> Any:
    """Every process computes the whole."""
    c.refuse_plain()
    return c.replicated()


def _drawn(c: Call) -> Any:
    """Every process draws the whole, and what is like an operand keeps its part."""
    _random.agreed(c)
    made, x = replicated(c), c.operands[0]
    if not c.name.endswith("_like"):
        return made
    ways = [R if isinstance(p, Partial) else p for p in x._placements]
    return made.redistribute(placements=ways)


def _fresh(c: Call) -> Any:
    """Of the tensor asked only its dtype counts; what it is to hold is whole."""
    same = (R,) * c.mesh.ndim
    wanted = [same] * len(c.operands)
    if c.args and c.operands[0] is c.args[0]:
        wanted[0] = c.operands[0]._placements
    made = c.with_operands(c.parts(wanted, same))
    return c.wrapped(made, made, same)


def _value(c: Call) -> Any:
    """What is no tensor, of the whole."""
    same = (R,) * c.mesh.ndim
    return c.with_operands(c.parts([same] * len(c.operands), same))


def _whole_along(dims: Callable[[Call], list[int] | None]) -> Callable[[Call], Any]:
    """Parts of the first operand are enough, but for these dims; the others are replicated."""

    def run(c: Call) -> Any:
        x, needed = c.operands[0], dims(c)
        if needed is None:
            return replicated(c)
        rest: list[Placement] = [R] * (len(c.operands) - 1)

        def rule(i: int) -> tuple[list[Placement], Placement]:
            p = x._placements[i]
            ok = isinstance(p, Shard) and p.dim not in needed
            return ([p, *rest], p) if ok else ([R, *rest], R)

        return c.each(rule)

    return run


def _one_dim(c: Call) -> list[int] | None:
    dim = c.argument(1, "dim", None if c.name in ("softmax", "log_softmax") else -1)
    known = c.only("input", "dim", "dtype", "descending", "stable", "_stacklevel")
    if not known or not isinstance(dim, int) or isinstance(dim, bool):
        return None
    return [dim % max(c.operands[0].ndim, 1)]


def _last_dims(c: Call) -> list[int] | None:
    n = c.operands[0].ndim
    shape = c.argument(1, "normalized_shape")
    if not c.args or c.args[0] is not c.operands[0]:
        return None
    count = 1 if isinstance(shape, int) else len(shape)
    return list(range(n - count, n))


def _reduced_dims(c: Call) -> tuple[list[int], bool] | None:
    n = c.operands[0].ndim
    dim, keep = c.argument(1, "dim"), c.argument(2, "keepdim", False)
    if not c.only("input", "dim", "keepdim", "dtype") or isinstance(dim, clew.dtype):
        return None
    if dim is None:
        return list(range(n)), bool(keep)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    return ([d % max(n, 1) for d in dims], bool(keep)) if dims else None


def _reduction(linear: bool) -> Callable[[Call], Any]:
    def run(c: Call) -> Any:
        x, how = c.operands[0], _reduced_dims(c)
        if how is None:
            return replicated(c)
        dims, keep = how

        def rule(i: int) -> tuple[list[Placement], Placement]:
            p = x._placements[i]
            if isinstance(p, Partial):
                return ([p], p) if linear and p._linear else ([R], R)
            if isinstance(p, Shard) and p.dim not in dims:
                return [p], Shard(p.dim if keep else p.dim - sum(d < p.dim for d in dims))
            if isinstance(p, Shard) and linear:
                return [p], Partial()
            return [R], R

        return c.each(rule)

    return run


def _mean(c: Call) -> Any:
    """A sum, divided; of half types in float32, whose range sums do not leave."""
    x, how = c.operands[0], _reduced_dims(c)
    dtype = c.whole().dtype
    if how is None or not (dtype.is_floating_point or dtype.is_complex):
        return replicated(c)
    dims, keep = how
    count = math.prod(x._sizes[d] for d in dims)
    wide = clew.float32 if dtype in (clew.float16, clew.bfloat16) else dtype
    total = x.sum(dims, keepdim=keep, dtype=wide) if dims else x.to(wide)
    made = total / count
    return made if wide == dtype else made.to(dtype)


def _stride(c: Call) -> Any:
    """The steps that the whole would have in memory, its dims in the order of the part's."""
    x, dim = c.operands[0], c.argument(1, "dim")
    local, steps, step = part_of(x), [0] * x.ndim, 1
    for d in sorted(range(x.ndim), key=lambda d: (local.stride(d), -d)):
        steps[d] = step
        step *= max(x._sizes[d], 1)
    return tuple(steps) if dim is None else steps[dim]


_PLAIN = set(
    """
    requires_grad_ register_hook register_post_accumulate_grad_hook retain_grad dim
    is_floating_point is_complex is_inference data_ptr element_size grad grad_fn requires_grad
    is_leaf dtype device ndim layout itemsize hash names untyped_storage storage_offset _version
    is_contiguous get_device is_sparse is_meta
    """.split()
)
# Functions written in Python that follow the rule of the operation they end in.
_BY_PARTS = frozenset(("embedding",))
RULES: dict[str, Callable[[Call], Any]] = {
    **dict.fromkeys(_POINTWISE, _pointwise),
    **dict.fromkeys((f"{name}_" for name in _POINTWISE - _LINEAR | {"neg", "negative"}), _in_place),
    **dict.fromkeys(["copy_", "zero_", "fill_"], _in_place),
    **dict.fromkeys("normal_ uniform_ trunc_normal_ exponential_ bernoulli_ random_ log_normal_ "
                    "cauchy_ geometric_".split(), _random.in_place),
    "dropout": _dropout,
    **dict.fromkeys("matmul mm bmm".split(), _product),
    "linear": _linear,
    "addmm": _addmm,
    "embedding": _embedding,
    "scaled_dot_product_attention": _attention,
    **dict.fromkeys("softmax log_softmax cumsum cumprod sort argsort logcumsumexp".split(),
                    _whole_along(_one_dim)),
    **dict.fromkeys("layer_norm rms_norm".split(), _whole_along(_last_dims)),
    "sum": _reduction(True),
    "mean": _mean,
    **dict.fromkeys("amax amin prod all any logsumexp".split(), _reduction(False)),
    **dict.fromkeys("norm std var flip roll max min argmax argmin topk median cross_entropy "
                    "nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy "
                    "binary_cross_entropy_with_logits kl_div isclose repeat gather scatter stack "
                    "index_select tril triu vector_norm float_power outer conv1d "
                    "conv2d".split(),
                    replicated),
    **dict.fromkeys("addbmm addmv addr adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d "
                    "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d adjoint aminmax "
                    "argwhere avg_pool1d avg_pool2d avg_pool3d baddbmm bilinear bincount "
                    "broadcast_to bucketize column_stack complex conv3d conv_transpose1d "
                    "conv_transpose2d conv_transpose3d cosine_similarity count_nonzero cummax "
                    "cummin diag diag_embed diagflat diagonal dot dsplit dstack fliplr flipud fold "
                    "ger glu group_norm hsplit hstack imag index_add index_copy index_fill inner "
                    "interpolate kron kthvalue masked_scatter masked_select max_pool1d max_pool2d "
                    "max_pool3d mode moveaxis movedim msort mv nanmean nanmedian nansum nonzero "
                    "one_hot pad polar prelu ravel real repeat_interleave rot90 row_stack "
                    "scatter_add scatter_reduce searchsorted softmin split_with_sizes std_mean "
                    "take take_along_dim tensordot tile trace unfold unique unique_consecutive "
                    "var_mean vdot view_as_complex view_as_real vsplit vstack meshgrid cdist "
                    "quantile nanquantile rmatmul grid_sample constant_pad fft_c2c fft_r2c fft_c2r "
                    # The rules that clew.linalg's functions end in.
                    "Cholesky CholeskyInverse CholeskySolve Det Eig Eigh Eigvals Eigvalsh Inverse "
                    "LdlFactor LdlSolve LuFactor MatrixExp Permutation Pinv Qr Slogdet Solve "
                    "SolveTriangular Svd Svdvals".split(),
                    replicated),
    **dict.fromkeys("bernoulli multinomial poisson rand_like randn_like randint_like".split(),
                    _drawn),
    **dict.fromkeys("new_empty new_full new_ones new_zeros new_tensor".split(), _fresh),
    **dict.fromkeys("allclose equal item tolist numpy is_nonzero __bool__ __float__ __int__ "
                    "__index__ __contains__ __array__".split(), _value),
    "stride": _stride,
    **_shapes.RULES,
    **_writes.RULES,
}  # fmt: skip

# Rules that do not ask in which order dims of the mesh cut; the others know the mesh's order.
_ANY_CUT = {
    _pointwise, _in_place, _random.in_place, replicated, _drawn, _fresh, _value, _stride,
    _writes.setitem, _writes.written_whole,
}  # fmt: skip


def call(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The result of a function of distributed tensors."""
    name = name_of(func)
    # Hooks, Functions and second runs within them are of distributed tensors again.
    if func.__name__ == "backward":
        return _tensor_backward(*args, **kwargs)
    if func.__name__ == "grad":  # the function; the attribute's is __get__
        return func.__wrapped__(*args, **kwargs)
    if name in _PLAIN:
        with DisableTorchFunctionSubclass():
            return func(*args, **kwargs)
    rule = RULES.get(name)
    parts = getattr(func, "__wrapped__", None)
    if parts is not None and (rule is None or func.__name__ in _BY_PARTS):
        return parts(*args, **kwargs)
    if rule is None:
        raise NotImplementedError(
            f"DTensor: there is no rule for {name}; use full_tensor(), which every process has, or "
            "to_local(), this process's part"
        )
    leaf = name.startswith("new_") or name.endswith("_like")
    leaf = leaf and kwargs.get("requires_grad") is True
    made = Call(func, args, {**kwargs, "requires_grad": False} if leaf else kwargs)
    if rule not in _ANY_CUT:
        made.cut_in_order()
    result = rule(made)
    if leaf:  # the distributed tensor, not the part of which it is made
        return result.requires_grad_()
    if name in _shapes.VIEWS and (made.moved or made.operands[0]._copied):
        for x in (result,) if isinstance(result, DTensor) else result:
            x._copied = True
    return result


rules["call"] = call
