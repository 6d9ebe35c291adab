"""einsum over ragged tensors: the batch's label names rows, which are multiplied one by one, or
all at once where nothing else names them.
"""

from __future__ import annotations

from typing import Any

import clew
from clew._C import Tensor
from clew._ops import einsum as _einsum
from clew.nested._tensor import Rows, is_ragged, ragged

__all__ = ["einsum"]


def einsum(*args: Any) -> Any:
    """The rule: arguments as for the dense function."""
    if isinstance(args[0], Tensor):
        equation, operands = _einsum._from_sublists(args)
    else:
        equation, operands = args[0], list(args[1:])
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
    ranks = tuple(len(x._sizes()) if is_ragged(x) else x.dim() for x in operands)
    inputs, output = _einsum._parse(equation, ranks)
    inputs, output = [list(labels) for labels in inputs], list(output)
    found = [(x, labels) for x, labels in zip(operands, inputs) if is_ragged(x)]
    batch = found[0][1][0]
    lengths = {labels[x._at] for x, labels in found}
    size = len(found[0][0]._rows.counts)
    for x, labels in found:
        if labels[0] != batch or labels.count(batch) > 1 or len(x._rows.counts) != size:
            raise RuntimeError(
                "einsum: ragged operands must have the same label and number of rows in dim 0, "
                f"the batch's; got '{equation}' for {[list(x.shape) for x, _ in found]}"
            )
    kept = [label for label in output if label in lengths]
    if (batch in output and output[0] != batch) or len(kept) > 1 or (kept and batch not in output):
        raise RuntimeError(
            "einsum: the result must have the batch in dim 0, or not at all, and at most one "
            f"ragged dim with it; got '{equation}' for {[list(x.shape) for x, _ in found]}"
        )
    wanted = [label for label in output if label != batch]
    dense = [labels for x, labels in zip(operands, inputs) if not is_ragged(x)]
    alike = len(lengths) == 1 and all(x._rows.is_like(found[0][0]._rows) for x, _ in found)
    free = not any(batch in labels or lengths & set(labels) for labels in dense)
    if alike and free and bool(kept) == (batch in output):  # all rows at once
        given = [x.packed()._elements if is_ragged(x) else x for x in operands]
        made = _run(given, [[p for p in labels if p != batch] for labels in inputs], wanted)
        if not kept:
            return made
        return ragged(found[0][0].packed()._rows, made, 1 + wanted.index(kept[0]))
    columns = [_rows_of(x, labels, batch, size) for x, labels in zip(operands, inputs)]
    terms = [[p for p in labels if p != batch] for labels in inputs]
    rows = [_run(list(row), terms, wanted) for row in zip(*columns)]
    if not rows:
        return NotImplemented
    if kept:
        at = wanted.index(kept[0])
        counts = [row.shape[at] for row in rows]
        return ragged(Rows.of_counts(counts), clew.cat(rows, at), at + 1)
    made = clew.stack(rows)
    return made if batch in output else made.sum(0)


def _rows_of(x: Any, labels: list[Any], batch: Any, size: int) -> list[Tensor]:
    """Of each operand what belongs to each row."""
    if is_ragged(x):
        rows: list[Tensor] = x.row_values()
        return rows
    if batch not in labels:
        return [x] * size
    at = labels.index(batch)
    if labels.count(batch) > 1 or x.shape[at] not in (1, size):
        raise RuntimeError(
            f"einsum: a dense operand must have {size} rows in the batch's dim; got shape "
            f"{list(x.shape)}"
        )
    return list(x.expand(*(size if d == at else -1 for d in range(x.dim()))).unbind(at))


def _run(operands: list[Tensor], inputs: list[list[Any]], output: list[Any]) -> Tensor:
    """The dense function, with numbers for labels."""
    numbers: dict[Any, int] = {}
    for labels in inputs:
        for label in labels:
            numbers.setdefault(label, len(numbers))
    args: list[Any] = []
    for x, labels in zip(operands, inputs):
        args += [x, [numbers[p] for p in labels]]
    return clew.einsum(*args, [numbers[p] for p in output])
