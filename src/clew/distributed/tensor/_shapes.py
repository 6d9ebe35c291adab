"""Rules for operations that give the same elements another shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from clew.distributed.tensor._redistribute import local_sizes
from clew.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

R = Replicate()


def _moved(where: Callable[[Any, int], int | None]) -> Callable[[Any], Any]:
    """A rule for an operation that puts whole dims elsewhere.

    Args:
        where: takes the call and a dim; gives its place in the result, None if it must be whole.
    """

    def run(c: Any) -> Any:
        x = c.operands[0]

        def rule(i: int) -> tuple[list[Placement], Placement]:
            p = x._placements[i]
            if not isinstance(p, Shard):
                return [p], p
            to = where(c, p.dim)
            return ([R], R) if to is None else ([p], Shard(to))

        return c.each(rule)

    return run


def _transposed(c: Any, d: int) -> int:
    n = c.operands[0].ndim
    a, b = c.argument(1, "dim0"), c.argument(2, "dim1")
    if a is None:
        a, b = c.argument(1, "axis0"), c.argument(2, "axis1")
    a, b = a % n, b % n
    return b if d == a else a if d == b else d


def _last_two(c: Any, d: int) -> int:
    n = c.operands[0].ndim
    return {n - 1: n - 2, n - 2: n - 1}.get(d, d) if n > 1 else d


def _permuted(c: Any, d: int) -> int:
    n = c.operands[0].ndim
    dims = c.args[1:] if len(c.args) > 2 else c.argument(1, "dims")
    dims = (dims,) if isinstance(dims, int) else dims
    return [k % n for k in dims].index(d)


def _behind_new(c: Any, d: int) -> int:
    n = c.operands[0].ndim + 1
    return d + (d >= c.argument(1, "dim") % n)


def _squeezed(c: Any) -> Any:
    x = c.operands[0]
    n, dim = x.ndim, c.argument(1, "dim")
    dims = range(n) if dim is None else [k % n for k in ((dim,) if isinstance(dim, int) else dim)]
    gone = tuple(k for k in dims if x._sizes[k] == 1)
    # A part may have one row where the whole has several.
    c.args, c.kwargs = (c.args[0] if c.args else c.kwargs["input"], gone), {}
    return _moved(lambda c, d: None if d in gone else d - sum(k < d for k in gone))(c)


def _apart(c: Any, d: int) -> int | None:
    """chunk, split and the like: that dim must be whole."""
    n = c.operands[0].ndim
    at = 1 if c.name in ("narrow", "select", "unbind", "unflatten") else 2
    dim = c.argument(at, "dim", 0) % n
    if c.name in ("select", "unbind"):
        return None if d == dim else d - (d > dim)
    return None if d == dim else d


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Dims of two shapes that hold the same elements, group by group."""
    made, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        left, right = [], []
        a = b = 1
        if i < len(old):
            a *= old[i]
            left.append(i)
            i += 1
        if j < len(new):
            b *= new[j]
            right.append(j)
            j += 1
        while a != b:
            if a < b and i < len(old):
                a *= old[i]
                left.append(i)
                i += 1
            elif j < len(new):
                b *= new[j]
                right.append(j)
                j += 1
            else:
                return [(list(range(len(old))), list(range(len(new))))]
        made.append((left, right))
    return made


def _viewed(c: Any) -> Any:
    """view, reshape, flatten, unflatten: a cut dim must be the first of what it is joined with, and
    what it is split into must begin with a dim that can be cut as evenly.
    """
    x = c.operands[0]
    whole = c.whole()
    sizes = tuple(whole.shape)
    if whole.dtype != x.dtype:  # other bits of the same memory
        sums = any(isinstance(p, Partial) for p in x._placements)
        return c.replicated() if sums or sizes != x._sizes else _moved(lambda c, d: d)(c)
    groups = _groups(x._sizes, sizes) if 0 not in x._sizes else []
    parts = [1] * x.ndim  # into which dims of the mesh before have cut

    def rule(i: int) -> tuple[list[Placement], Placement]:
        p = x._placements[i]
        if not isinstance(p, Shard):
            return [p], p
        for left, right in groups:
            if p.dim not in left:
                continue
            left = [d for d in left if x._sizes[d] > 1 or d == p.dim]
            right = [d for d in right if sizes[d] > 1]
            count = parts[p.dim] * c.mesh.size(i)
            if not right or left[0] != p.dim:
                break
            even = x._sizes[p.dim] % count == 0 and sizes[right[0]] % count == 0
            if even or (len(left) == 1 and len(right) == 1):
                parts[p.dim] = count
                return [p], Shard(right[0])
            break
        return [R], R

    columns = [rule(i) for i in range(c.mesh.ndim)]
    out = tuple(column[1] for column in columns)
    wanted = [tuple(column[0][0] for column in columns)]
    mine = local_sizes(sizes, c.mesh, out, c.mesh.get_coordinate())[0]
    return c.wrapped(c.parts(wanted, out)[0].reshape(mine), whole, out)


def _expanded(c: Any) -> Any:
    x = c.operands[0]
    whole = c.whole()
    more = whole.ndim - x.ndim

    def rule(i: int) -> tuple[list[Placement], Placement]:
        p = x._placements[i]
        if isinstance(p, Shard):
            fits = x._sizes[p.dim] == whole.shape[p.dim + more]
            return ([p], Shard(p.dim + more)) if fits else ([R], R)
        return [p], p

    columns = [rule(i) for i in range(c.mesh.ndim)]
    out = tuple(column[1] for column in columns)
    parts = c.parts([tuple(column[0][0] for column in columns)], out)
    mine = local_sizes(whole.shape, c.mesh, out, c.mesh.get_coordinate())[0]
    return c.wrapped(parts[0].expand(mine), whole, out)


def _joined(c: Any) -> Any:
    """cat: all lie as the first, whole along the dim."""
    first = c.operands[0]
    if "axis" in c.kwargs or any(x.ndim != first.ndim for x in c.operands):
        return c.replicated()
    dim = c.argument(1, "dim", 0) % first.ndim

    def rule(i: int) -> tuple[list[Placement], Placement]:
        p = first._placements[i]
        ok = isinstance(p, Shard) and p.dim != dim
        way = p if ok else R
        return [way] * len(c.operands), way

    return c.each(rule)


def kept_dims(index: Any, ndim: int) -> dict[int, int] | None:
    """The dims that an index takes whole, with their places in the result; None where tensors or
    lists choose.
    """
    items = index if isinstance(index, tuple) else (index,)
    if not all(
        k is None or k is Ellipsis or (isinstance(k, (int, slice)) and not isinstance(k, bool))
        for k in items
    ):
        return None
    used = sum(k is not None and k is not Ellipsis for k in items)
    at = next((n for n, k in enumerate(items) if k is Ellipsis), len(items))
    to: dict[int, int] = {}
    dim = out = 0
    for k in [*items[:at], *[slice(None)] * (ndim - used), *items[at + 1 :]]:
        if k is None:
            out += 1
        elif isinstance(k, slice):
            if k == slice(None):
                to[dim] = out
            dim, out = dim + 1, out + 1
        else:
            dim += 1
    return to


def _indexed(c: Any) -> Any:
    """Slices, numbers, None and ...; a cut dim must be taken whole."""
    x = c.args[0]
    to = kept_dims(c.args[1], x.ndim)
    if to is None or x is not c.operands[0]:
        made = c.replicated()
        c.moved = False  # what is chosen by tensors is no view
        return made

    def rule(i: int) -> tuple[list[Placement], Placement]:
        p = x._placements[i]
        if not isinstance(p, Shard):
            return [p], p
        return ([p], Shard(to[p.dim])) if p.dim in to else ([R], R)

    return c.each(rule)


# Operations whose results share memory with the whole.
VIEWS = set(
    """
    transpose swapaxes swapdims t T mT H mH mt h mh permute unsqueeze squeeze chunk split
    tensor_split narrow select unbind view unflatten view_as expand expand_as getitem adjoint
    broadcast_to diagonal hsplit vsplit dsplit split_with_sizes moveaxis movedim real imag unfold
    view_as_complex view_as_real detach alias
    """.split()
)
RULES: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys("transpose swapaxes swapdims".split(), _moved(_transposed)),
    **dict.fromkeys("t T mT H mH mt h mh".split(), _moved(_last_two)),
    "permute": _moved(_permuted),
    "unsqueeze": _moved(_behind_new),
    "squeeze": _squeezed,
    **dict.fromkeys("chunk split tensor_split narrow select unbind".split(), _moved(_apart)),
    **dict.fromkeys("view reshape flatten unflatten view_as reshape_as".split(), _viewed),
    **dict.fromkeys("expand expand_as".split(), _expanded),
    **dict.fromkeys("cat concat concatenate".split(), _joined),
    "getitem": _indexed,
}
