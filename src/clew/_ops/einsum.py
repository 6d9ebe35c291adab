"""Products over named dimensions and chains of products, written with other ops."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from clew import _C
from clew._base.out import write_out
from clew._base.overriding import asks_classes

__all__ = ["chain_matmul", "einsum", "tensordot"]

Tensor = _C.Tensor
_ops: Any = _C.ops

# A label is a letter, or a negative number for a dimension that "..." stands for.
Label = Any


def _singly(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands that came as one list, as those who take einsum over expect them."""
    if len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], list | tuple):
        return (args[0], *args[1])
    return args


@functools.partial(asks_classes, spread=_singly)
def einsum(*args: Any) -> Tensor:
    """Sums products of tensors along dimensions that an equation names.

    Args:
        args: the equation ("ij,jk->ik", "...ii->...i"; without "->" the labels that appear once
            are kept, in alphabetical order) and the operands, singly or as one list; or the
            operands each followed by a list of its labels as numbers from 0 to 51, and last, if
            wanted, the list of the result's labels.

    Returns:
        The tensor whose dimensions the equation's right side names.

    >>> a = clew.tensor([[1., 2.], [3., 4.]])
    >>> clew.einsum("ij,j->i", a, clew.tensor([1., 1.]))
    tensor([3., 7.])
    """
    if len(args) < 2:
        raise ValueError("einsum: must specify the equation string and at least one operand")
    if isinstance(args[0], Tensor):
        equation, operands = _from_sublists(args)
    else:
        equation = args[0]
        operands = list(args[1:])
        if len(operands) == 1 and isinstance(operands[0], list | tuple):
            operands = list(operands[0])
    if not isinstance(equation, str):
        raise TypeError(f"einsum: the equation must be a str; got {type(equation).__name__}")
    for x in operands:
        if not isinstance(x, Tensor):
            raise TypeError(f"einsum: operands must be Tensors; got {type(x).__name__}")
    if len(operands) == 2:
        plan = _plan_pair(equation, tuple(operands[0].shape), tuple(operands[1].shape))
        if plan is not None:
            return _run_plan(plan, *operands)
    inputs, output = _parse(equation, tuple(x.dim() for x in operands))
    terms = [_take_diagonals(x, labels) for x, labels in zip(operands, inputs, strict=True)]
    _check_sizes(terms, equation)
    while len(terms) > 1:
        i, j = (0, 1) if len(terms) == 2 else _best_pair(terms, output)
        second, first = terms.pop(j), terms.pop(i)
        needed = set(output).union(*(labels for _, labels in terms))
        # The pair's result takes the first one's place: equal equations always run in one order.
        terms.insert(i, _contract(first, second, needed))
    x, labels = _sum_out(terms[0], set(output))
    order = [labels.index(label) for label in output]
    return x if order == list(range(len(order))) else x.permute(order)


def _from_sublists(args: tuple[Any, ...]) -> tuple[str, list[Any]]:
    def text(sublist: Any) -> str:
        out = ""
        for s in sublist:
            if s is Ellipsis:
                out += "..."
            elif isinstance(s, int) and 0 <= s < 52:
                out += chr(ord("A") + s) if s < 26 else chr(ord("a") + s - 26)
            else:
                raise ValueError(
                    f"einsum: labels must be numbers from 0 to 51 or Ellipsis; got {s!r}"
                )
        return out

    pairs = len(args) // 2
    terms = [text(args[2 * i + 1]) for i in range(pairs)]
    equation = ",".join(terms)
    if len(args) % 2:
        equation += "->" + text(args[-1])
    return equation, [args[2 * i] for i in range(pairs)]


@lru_cache(maxsize=512)
def _parse(equation: str, ranks: tuple[int, ...]) -> tuple[list[list[Label]], list[Label]]:
    """Labels of the operands' dimensions and of the result's; "..." becomes numbers up to -1."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise RuntimeError(
            f"einsum: the equation names {len(terms)} operands but {len(ranks)} were given; "
            f"got '{equation}'"
        )
    widest = 0
    inputs = []
    for term, rank in zip(terms, ranks, strict=True):
        labels = _labels(term, equation, rank)
        if Ellipsis not in labels and len(labels) != rank:
            raise RuntimeError(
                f"einsum: '{term}' names {len(labels)} dimensions but its operand has {rank}; "
                f"got '{equation}'"
            )
        if Ellipsis in labels:
            spread = rank - len(labels) + 1
            widest = max(widest, spread)
            at = labels.index(Ellipsis)
            labels[at : at + 1] = range(-spread, 0)
        inputs.append(labels)
    dots: list[Label] = list(range(-widest, 0))
    if arrow:
        output = _labels(right, equation, None)
        if Ellipsis in output:
            at = output.index(Ellipsis)
            output[at : at + 1] = dots
        for label in output:
            if output.count(label) > 1:
                raise RuntimeError(f"einsum: the result names '{label}' twice; got '{equation}'")
            if not any(label in labels for labels in inputs):
                raise RuntimeError(
                    f"einsum: the result names '{label}', which no operand has; got '{equation}'"
                )
    else:
        named = [label for labels in inputs for label in labels if isinstance(label, str)]
        output = dots + sorted(label for label in set(named) if named.count(label) == 1)
    return inputs, output


def _labels(term: str, equation: str, rank: int | None) -> list[Label]:
    before, dots, after = term.partition("...")
    for c in before + after:
        if not (c.isascii() and c.isalpha()):
            raise RuntimeError(f"einsum: labels must be letters; got {c!r} in '{equation}'")
    labels: list[Label] = [*before, *([Ellipsis] if dots else []), *after]
    if rank is not None and dots and len(labels) - 1 > rank:
        raise RuntimeError(
            f"einsum: '{term}' names {len(labels) - 1} dimensions but its operand has {rank}; "
            f"got '{equation}'"
        )
    return labels


def _take_diagonals(x: Any, labels: list[Label]) -> tuple[Any, list[Label]]:
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if x.shape[first] != x.shape[second]:
                raise RuntimeError(
                    f"einsum: '{label}' is repeated for dimensions of sizes {x.shape[first]} "
                    f"and {x.shape[second]}"
                )
            x = x.diagonal(0, first, second)  # the diagonal comes last
            labels = [v for k, v in enumerate(labels) if k not in (first, second)] + [label]
    return x, labels


def _check_sizes(terms: list[tuple[Any, list[Label]]], equation: str) -> None:
    sizes: dict[Label, int] = {}
    for x, labels in terms:
        for label, size in zip(labels, x.shape, strict=True):
            known = sizes.setdefault(label, size)
            # Equality first: whether a size is 1 is a question that an export would keep.
            if known == size:
                continue
            if known == 1:
                sizes[label] = size
            elif size != 1:
                shown = label if isinstance(label, str) else "..."
                raise RuntimeError(
                    f"einsum: '{shown}' has sizes {known} and {size}; got '{equation}'"
                )


def _sum_out(term: tuple[Any, list[Label]], needed: set[Label]) -> tuple[Any, list[Label]]:
    x, labels = term
    gone = [k for k, label in enumerate(labels) if label not in needed]
    if not gone:
        return term
    return x.sum(gone), [label for label in labels if label in needed]


def _known(size: Any) -> int:
    """A size; the example's where an exported program has many: it only picks an order."""
    vals = getattr(size, "vals", None)
    return int(size) if vals is None else int(vals[0])


def _best_pair(terms: list[tuple[Any, list[Label]]], output: list[Label]) -> tuple[int, int]:
    """The pair whose product shrinks the terms most, and among equals needs the least work."""
    best: tuple[Any, int, int] | None = None
    shapes = [list(map(_known, x.shape)) for x, _ in terms]
    for i in range(len(terms)):
        for j in range(i + 1, len(terms)):
            sizes: dict[Label, int] = {}
            for k in (i, j):
                for label, size in zip(terms[k][1], shapes[k], strict=True):
                    sizes[label] = max(size, sizes.get(label, 1))
            needed = set(output)
            for k, (_, labels) in enumerate(terms):
                if k not in (i, j):
                    needed.update(labels)
            result = math.prod(s for label, s in sizes.items() if label in needed)
            saved = math.prod(shapes[i]) + math.prod(shapes[j])
            cost = (result - saved, math.prod(sizes.values()))
            if best is None or cost < best[0]:
                best = (cost, i, j)
    assert best is not None
    return best[1], best[2]


def _contract(
    first: tuple[Any, list[Label]], second: tuple[Any, list[Label]], needed: set[Label]
) -> tuple[Any, list[Label]]:
    (x, a), (y, b) = first, second
    shared = [label for label in a if label in b]
    # A size of one stands for any size: the other operand alone carries the label.
    for label in shared:
        p, q = x.shape[a.index(label)], y.shape[b.index(label)]
        if p != q and p == 1:
            x, a = x.squeeze(a.index(label)), [v for v in a if v != label]
        elif p != q:
            y, b = y.squeeze(b.index(label)), [v for v in b if v != label]
    x, a = _sum_out((x, a), needed | set(b))
    y, b = _sum_out((y, b), needed | set(a))
    batch = [label for label in a if label in b and label in needed]
    summed = [label for label in a if label in b and label not in needed]
    left = [label for label in a if label not in b]
    right = [label for label in b if label not in a]
    if not summed:  # a broadcast product
        order = batch + left + right
        return _aligned(x, a, order) * _aligned(y, b, order), order
    x = x.permute([a.index(v) for v in batch + left + summed])
    y = y.permute([b.index(v) for v in batch + summed + right])
    nb, nl, ns, nr = len(batch), len(left), len(summed), len(right)
    lead = list(x.shape[:nb])
    m, k, n = x.shape[nb : nb + nl], x.shape[nb + nl :], y.shape[nb + ns :]
    depth = math.prod(k)
    out = _ops.matmul(
        x if nl == ns == 1 else x.reshape([*lead, math.prod(m), depth]),
        y if ns == nr == 1 else y.reshape([*lead, depth, math.prod(n)]),
    )
    if nl != 1 or nr != 1:
        out = out.reshape([*lead, *m, *n])
    return out, batch + left + right


@lru_cache(maxsize=512)
def _plan_pair(equation: str, first: tuple[int, ...], second: tuple[int, ...]) -> Any:
    """The orders and shapes of one matrix product that does it all; None when it takes more."""
    (a, b), output = _parse(equation, (len(first), len(second)))
    p, q = dict(zip(a, first, strict=True)), dict(zip(b, second, strict=True))
    if len(p) < len(a) or len(q) < len(b) or any(p[v] != q[v] for v in a if v in q):
        return None
    kept = set(output)
    summed = [v for v in a if v in q and v not in kept]
    if not summed or any(v not in q and v not in kept for v in a):
        return None
    if any(v not in p and v not in kept for v in b):
        return None
    batch = [v for v in a if v in q and v in kept]
    left, right = [v for v in a if v not in q], [v for v in b if v not in p]
    lead, depth = [p[v] for v in batch], math.prod(p[v] for v in summed)
    m, n = [p[v] for v in left], [q[v] for v in right]
    order = batch + left + right

    def unless_same(dims: list[int]) -> list[int] | None:
        return None if dims == list(range(len(dims))) else dims

    flat = len(left) == len(right) == len(summed) == 1
    return (
        unless_same([a.index(v) for v in batch + left + summed]),
        None if flat else [*lead, math.prod(m), depth],
        unless_same([b.index(v) for v in batch + summed + right]),
        None if flat else [*lead, depth, math.prod(n)],
        None if flat else [*lead, *m, *n],
        unless_same([order.index(v) for v in output]),
    )


def _run_plan(plan: Any, x: Any, y: Any) -> Any:
    x_order, x_shape, y_order, y_shape, shape, order = plan
    if x_order is not None:
        x = x.permute(x_order)
    if x_shape is not None:
        x = x.reshape(x_shape)
    if y_order is not None:
        y = y.permute(y_order)
    if y_shape is not None:
        y = y.reshape(y_shape)
    out = _ops.matmul(x, y)
    if shape is not None:
        out = out.reshape(shape)
    return out if order is None else out.permute(order)


def _aligned(x: Any, labels: list[Label], order: list[Label]) -> Any:
    kept = [label for label in order if label in labels]
    x = x.permute([labels.index(label) for label in kept])
    for k, label in enumerate(order):
        if label not in labels:
            x = x.unsqueeze(k)
    return x


@asks_classes
def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Tensor:
    """Sums products over pairs of dimensions.

    Args:
        a: the left operand.
        b: the right operand.
        dims: a number n pairs the last n dimensions of a with the first n of b; or two lists of
            dimensions.
        out: a tensor that receives the result.

    Returns:
        The unpaired dimensions of a, then those of b.

    >>> clew.tensordot(clew.ones(2, 3), clew.ones(3, 4), dims=1).shape
    clew.Size([2, 4])
    """
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot: dims must be at least 0; got {dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot: dims must be at most the operands' number of dimensions; got {dims} "
                f"for shapes {tuple(a.shape)} and {tuple(b.shape)}"
            )
        dims_a = list(range(-dims, 0))
        dims_b = list(range(dims))
    else:
        first, second = dims
        dims_a = [first] if isinstance(first, int) else list(first)
        dims_b = [second] if isinstance(second, int) else list(second)
    made = _ops._tensordot(a, b, dims_a, dims_b)
    if out is None:
        return made
    return write_out("tensordot", made, out, records=True)


def _chain_split(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where each run of a chain of products is best split (the textbook dynamic programme)."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split: dict[tuple[int, int], int] = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            ends = sizes[i] * sizes[j + 1]
            least = -1
            for k in range(i, j):
                here = cost[i][k] + cost[k + 1][j] + ends * sizes[k + 1]
                if least < 0 or here < least:
                    least, split[i, j] = here, k
            cost[i][j] = least
    return split


def _multiply_chain(tensors: Sequence[Any]) -> Any:
    if len(tensors) == 2:
        return _ops.mm(*tensors)
    if len(tensors) == 3:  # the only choice there is, without the tables
        first, second, third = tensors
        (m, k), (n, p) = first.shape, third.shape
        if m * n * (k + p) <= k * p * (m + n):  # from the left where neither order is cheaper
            return _ops.mm(_ops.mm(first, second), third)
        return _ops.mm(first, _ops.mm(second, third))
    split = _chain_split([t.shape[0] for t in tensors] + [tensors[-1].shape[1]])

    def product(i: int, j: int) -> Any:
        if i == j:
            return tensors[i]
        k = split[i, j]
        return _ops.mm(product(i, k), product(k + 1, j))

    return product(0, len(tensors) - 1)


@asks_classes
def chain_matmul(*matrices: Any, out: Any = None) -> Tensor:
    """Product of several matrices, multiplied in the order that needs the fewest operations.

    Args:
        matrices: two-dimensional tensors whose sizes fit one after another.
        out: a tensor that receives the result.

    Returns:
        Their product.

    >>> clew.chain_matmul(clew.ones(2, 3), clew.ones(3, 1), clew.ones(1, 2))
    tensor([[3., 3.],
            [3., 3.]])
    """
    if len(matrices) == 1 and isinstance(matrices[0], list | tuple):
        matrices = tuple(matrices[0])
    if not matrices:
        raise RuntimeError("chain_matmul: expected at least one matrix; got none")
    _check_tensors("chain_matmul", matrices)
    _check_chain("chain_matmul", matrices)
    return _into(
        "chain_matmul", out, matrices[0] if len(matrices) == 1 else _multiply_chain(matrices)
    )


@asks_classes
def multi_dot(tensors: Sequence[Any], *, out: Any = None) -> Any:
    """Product of several matrices, of which the first and the last may be vectors.

    Args:
        tensors: at least two tensors whose sizes fit one after another.
        out: a tensor that receives the result.

    Returns:
        Their product, multiplied in the order that needs the fewest operations.

    >>> clew.linalg.multi_dot([clew.ones(2), clew.ones(2, 3), clew.ones(3)])
    tensor(6.)
    """
    chain = list(tensors)
    if len(chain) < 2:
        raise RuntimeError(f"multi_dot: expected at least 2 tensors; got {len(chain)}")
    _check_tensors("multi_dot", chain)
    row, column = chain[0].dim() == 1, chain[-1].dim() == 1
    if row:
        chain[0] = chain[0].unsqueeze(0)
    if column:
        chain[-1] = chain[-1].unsqueeze(1)
    _check_chain("multi_dot", chain)
    result = _multiply_chain(chain)
    if column:
        result = result.squeeze(1)
    if row:
        result = result.squeeze(0)
    return _into("multi_dot", out, result)


def _check_tensors(name: str, tensors: Sequence[Any]) -> None:
    for t in tensors:
        if not isinstance(t, Tensor):
            raise TypeError(f"{name}(): expected Tensors; got {type(t).__name__}")


def _check_chain(name: str, tensors: Sequence[Any]) -> None:
    for t in tensors:
        if t.dim() != 2:
            raise RuntimeError(f"{name}: expected matrices; got a tensor of shape {tuple(t.shape)}")
    for a, b in pairwise(tensors):
        if a.shape[1] != b.shape[0]:
            raise RuntimeError(
                f"{name}: neighbours must fit; got shapes {tuple(a.shape)} and {tuple(b.shape)}"
            )


def _into(name: str, out: Any, result: Any) -> Any:
    return write_out(name, result, out)
