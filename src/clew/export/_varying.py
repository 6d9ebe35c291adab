"""Which sizes of a result may vary although the runs that are recorded agree in them.

A size that data decides is the same in both runs where the data happen to decide alike. It is told
from a constant by what gave it: a size is known as the pair of what it is in either run, and
`loose` are the pairs that vary. Of two sizes of a tensor that are the same pair both then vary:
rather too many than one too few.
"""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor
from clew.export._symbols import SYMS

__all__ = ["COUNTED", "RESHAPING", "flat", "loose_sizes"]

# Results whose sizes depend on values.
_DATA_SIZED = {
    *("Tensor.nonzero", "nonzero", "argwhere", "masked_select", "bincount", "Tensor.unique"),
    *("Tensor.unique_consecutive", "ops._unique", "ops._unique_consecutive", "ops._unique_dim"),
    *("repeat_interleave", "ops._index", "ops.repeat_interleave"),
}
# Results whose sizes are made of numbers that are given.
_RESIZING = {
    *("reshape", "ops.reshape", "ops.view", "view", "flatten", "cat", "nn.functional.pad"),
    *("unflatten", "arange", "zeros", "ones", "full", "empty", "ops.repeat", "concat", "ops._cat"),
}
_SIZED_BY_NUMBERS = {
    *_RESIZING,
    *("rand", "randn", "randint", "randperm", "linspace", "logspace", "eye", "expand", "repeat"),
    *("ops.expand", "broadcast_to", "tile", "ops.tile", "narrow", "ops.narrow", "topk", "split"),
    *("ops.split", "split_with_sizes", "chunk", "tensor_split", "Tensor.new_zeros", "unfold"),
    *("Tensor.new_ones", "Tensor.new_empty", "Tensor.new_full", "ops.unfold", "diagonal", "diag"),
    *("diag_embed", "as_strided", "nn.functional.interpolate", "nn.functional.one_hot", "one_hot"),
    *("tril_indices", "triu_indices", "slice_copy", "narrow_copy", "Tensor.narrow_copy"),
    *("nn.functional.affine_grid", "nn.functional.fold", "nn.functional.unfold", "bincount"),
    *("pixel_shuffle", "pixel_unshuffle", "movedim", "roll", "vander", "combinations", "trace"),
}
# Results that are as many as a size says, and the arguments behind the tensor.
COUNTED = {
    "unbind": ("dim",),
    "chunk": ("chunks", "dim"),
    "split": ("split_size_or_sections", "dim"),
    "ops.split": ("split_size", "dim"),
}
# Views that may be of the sizes that the tensor has.
RESHAPING = {
    "reshape",
    "ops.reshape",
    "ops.view",
    "view",
    "expand",
    "ops.expand",
    "narrow",
    "ops.narrow",
}
_WINDOWS = ("pool", "conv", "interpolate", "fold", "pad")


def flat(tree: Any) -> list[Any]:
    """What nested tuples, lists, dicts and slices hold."""
    if isinstance(tree, slice) and type(tree) is slice:
        return [tree.start, tree.stop, tree.step]
    if isinstance(tree, dict):
        return [x for t in tree.values() for x in flat(t)]
    if isinstance(tree, (tuple, list)):
        return [x for t in tree for x in flat(t)]
    return [tree]


def loose_sizes(
    rec: Any, op: str, args: Any, kwargs: Any, parts: list[list[Tensor]], sized: bool
) -> frozenset[Any]:
    """The pairs that vary among the sizes of what a call gives.

    Args:
        rec: the recorder.
        op: what is called, with ``args`` and ``kwargs``.
        parts: its results, in either run.
        sized: all sizes may depend on values, for all that is known.
    """
    shape = rec.plain_shape
    given = flat([*args, kwargs])
    tensors = [a for a in given if isinstance(a, Tensor)]
    loose: set[Any] = set()
    fixed: set[Any] = set()
    for t in tensors:
        known = rec.held(t)
        loose |= known.loose
        fixed |= set(zip(*(shape(r) for r in known.runs)))
    results = [list(zip(*(shape(t) for t in p))) for p in zip(*parts)]
    columns = {c for r in results for c in r}
    syms = [a for a in given if type(a) in SYMS]
    carried = loose & columns
    if op == "getitem":
        carried |= _taken(rec, args[0], args[1], results[0])
    if sized:
        carried |= columns
    if op in _DATA_SIZED or (op == "where" and len(args) + len(kwargs) == 1):
        found = _of_values(op, args, kwargs, tensors, results[0])
        carried |= found
        rec.by_data |= found
    plain = {(a,) * rec.runs for a in given if type(a) is int}
    if syms and op in ("tril_indices", "triu_indices"):  # of two rows, whatever the sizes are
        carried.add(results[0][1])
    elif syms and op in _SIZED_BY_NUMBERS:
        agreeing = {tuple(s.vals) for s in syms if len(set(s.vals)) == 1}
        carried |= {c for c in columns if c not in plain and (agreeing or c not in fixed)}
        carried |= agreeing & columns
    if tensors and any(w in op for w in _WINDOWS):
        carried |= _windows(rec, tensors[0], results)
    elif loose:
        carried |= _made(op, args, kwargs, loose, fixed, plain, results)
    return frozenset(c for c in carried if len(set(c)) == 1)


def _made(
    op: str, args: Any, kwargs: Any, loose: set[Any], fixed: set[Any], plain: set[Any], results: Any
) -> set[Any]:
    """Sizes that are computed from sizes that vary."""
    columns = {c for r in results for c in r}
    if op in ("cat", "concat", "ops._cat", "ops.cat"):
        dim = kwargs.get("dim", args[1] if len(args) > 1 else 0)
        return {results[0][dim]} if type(dim) is int and results[0] else columns
    if op in _RESIZING:
        return {c for c in columns if c not in plain}
    return {c for c in columns if c not in fixed and c not in plain and set(c) != {1}}


def _windows(rec: Any, x: Tensor, results: Any) -> set[Any]:
    """Sizes of what a pooling or a convolution leaves: different sizes may leave equal ones."""
    sizes = rec.held(x).value.sizes
    found: set[Any] = set()
    for r in results:
        if len(r) == len(sizes):
            found |= {c for c, n in zip(r, sizes) if n is None}
        elif None in sizes:
            found |= set(r)
    return found


def _of_values(op: str, args: Any, kwargs: Any, tensors: Any, result: list[Any]) -> set[Any]:
    """The sizes of an operation whose result is as long as values say."""
    if not result:
        return set()
    if "repeat_interleave" in op:
        if len(tensors) < 2 and isinstance(args[0], Tensor) and len(args) > 1:
            return set()  # by a number
        dim = kwargs.get("dim", args[2] if len(args) > 2 else None)
        return {result[dim if type(dim) is int else 0]}
    if op in ("nonzero", "argwhere", "Tensor.nonzero", "where"):
        return {result[0]}
    return set(result) if len(result) == 1 or "unique" in op else {result[0]}


def _taken(rec: Any, x: Tensor, index: Any, result: list[Any]) -> set[Any]:
    """Sizes that masks, and slices of sizes or with bounds that vary, leave: ``x[:5]`` has 5 rows
    in both runs, and fewer where x has fewer."""
    known = rec.held(x)
    sizes = known.value.sizes
    items = list(index) if isinstance(index, tuple) else [index]
    used = sum(_dims(i) for i in items)
    found: set[Any] = set()
    block: list[int] = []  # the dims of the result that index tensors give
    masked = False
    at = d = 0  # in the result, in x
    for i in items:
        if i is None:
            at += 1
        elif i is Ellipsis:
            at, d = at + len(sizes) - used, d + len(sizes) - used
        elif isinstance(i, slice):
            if at >= 0 and (sizes[d] is None or any(type(b) in SYMS for b in flat(i))):
                lengths = [
                    len(range(*rec.in_run(i, run).indices(rec.plain_shape(t)[d])))
                    for run, t in enumerate(known.runs)
                ]
                whole = i.start is None and i.stop is None and i.step is None
                if any(type(b) in SYMS and b.value.data for b in flat(i)):
                    rec.by_data.add(tuple(lengths))
                if len(set(lengths)) == 1 and not (whole and sizes[d] is not None):
                    found.add(tuple(lengths))
            at, d = at + 1, d + 1
        elif isinstance(i, (Tensor, list)):
            kind = i.dtype if isinstance(i, Tensor) else None
            masked |= kind in (clew.bool, clew.uint8) or bool(_bools(i))
            block.append(at)
            d += _dims(i)
        else:
            d += 1
    if masked:
        start = block[0] if block == [block[0]] * len(block) else 0
        found |= set(result[start : start + 1])
        rec.by_data |= set(result[start : start + 1])
    return found & set(result)


def _bools(i: Any) -> bool:
    return isinstance(i, list) and any(type(x) is bool for x in flat(i))


def _dims(i: Any) -> int:
    """How many dims an element of an index uses."""
    if i is None or i is Ellipsis:
        return 0
    if isinstance(i, Tensor) and i.dtype in (clew.bool, clew.uint8):
        return i.dim()
    return 1
