"""Products, embeddings, norms and losses of ragged tensors."""

from __future__ import annotations

from typing import Any

import clew
from clew import _C
from clew._base.autocast import autocasting, lower
from clew._C import Tensor
from clew.nested._pointwise import function, on_values
from clew.nested._strided import of_rows
from clew.nested._tensor import NestedTensor, is_ragged, need_same_rows, ragged

__all__ = ["RULES"]


def _refuse_last(name: str, x: NestedTensor) -> None:
    raise RuntimeError(
        f"{name}: the last dim must not be the ragged one; got shape {list(x.shape)}; move it with "
        ".transpose()"
    )


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    if not is_ragged(x) or is_ragged(weight) or is_ragged(bias):
        return NotImplemented
    if x._at == len(x._sizes()) - 1:
        _refuse_last("linear", x)
    return ragged(x._rows, clew.nn.functional.linear(x._elements, weight, bias), x._at)


def matmul(x: Any, y: Any) -> Any:
    if is_ragged(x) and is_ragged(y):
        return _of_both(x, y)
    if not is_ragged(x):
        if x.dim() < 2 or y._at == len(y._sizes()) - 2 or len(y._sizes()) < 3:
            return NotImplemented
        if x.dim() == 2:
            return ragged(y._rows, x @ y._elements, y._at)
        return NotImplemented
    n = len(x._sizes())
    if x._at == n - 1 or y.dim() < 1:
        _refuse_last("matmul", x)
    if y.dim() <= 2:
        made = x._elements @ y
        return ragged(x._rows, made, x._at)
    if n == 3 and y.dim() == 3 and y.shape[0] == len(x._rows.counts):
        x = x.packed()
        parts = [row @ one for row, one in zip(x.row_values(), y.unbind(0))]
        return ragged(x._rows, clew.cat(parts) if parts else x._elements, x._at)
    return NotImplemented


def _of_both(x: NestedTensor, y: NestedTensor) -> Any:
    """(..., m, ragged) times (..., ragged, k) is dense; (..., ragged, m) times (..., m, ragged) is
    a batch of matrices that differ in two sizes.
    """
    n = len(x._sizes())
    if len(y._sizes()) != n:
        return NotImplemented
    if x._at == n - 1 and y._at == n - 2:
        if not x._rows.is_like(y._rows):
            raise RuntimeError(
                "matmul: the rows of both ragged tensors must be of the same lengths"
            )
        made = [p @ q for p, q in zip(x.row_values(), y.row_values())]
        return clew.stack(made) if made else NotImplemented
    if x._at == n - 2 and y._at == n - 1 and len(x._rows.counts) == len(y._rows.counts):
        return of_rows([p @ q for p, q in zip(x.row_values(), y.row_values())])
    return NotImplemented


def bmm(x: Any, y: Any) -> Any:
    sizes = [len(t._sizes()) if is_ragged(t) else t.dim() for t in (x, y)]
    if sizes != [3, 3]:
        raise RuntimeError(f"bmm: both must have three dims; got {sizes}")
    return matmul(x, y)


def _embedding(table: Any, indices: Any, *args: Any) -> Any:
    if is_ragged(table) or not is_ragged(indices):
        return NotImplemented
    return ragged(indices._rows, _C.ops._embedding(table, indices._elements, *args), indices._at)


def _normed(name: str) -> Any:
    """layer_norm and rms_norm: over the last dims, among which the ragged one is not."""

    def rule(x: Any, normalized_shape: Any, *args: Any, **kwargs: Any) -> Any:
        given = normalized_shape
        shape = (given,) if isinstance(given, int) else tuple(given)
        if not is_ragged(x):
            return NotImplemented
        if x._at >= len(x._sizes()) - len(shape):
            _refuse_last(name, x)
        made = function(name)(x._elements, shape, *args, **kwargs)
        return ragged(x._rows, made, x._at)

    return rule


def _rms(x: Any, *args: Any) -> Any:
    if not is_ragged(x) or x._at == len(x._sizes()) - 1:
        return NotImplemented
    return ragged(x._rows, _C.ops._rms_norm(x._elements, *args), x._at)


def _distance(name: str) -> Any:
    """Losses between the elements of two tensors."""
    fn = getattr(_C.ops, name)

    def rule(x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
        if not (is_ragged(x) and is_ragged(y)) or any(map(is_ragged, args)):
            return NotImplemented
        need_same_rows(name[1:], (x, y))
        x, y = x.packed(), y.packed()
        made = fn(x._elements, y._elements, *args, **kwargs)
        return made if made.dim() < x._elements.dim() else ragged(x._rows, made, x._at)

    return rule


def _curve(x: Any, y: Any, *curve: Any) -> Any:
    """A loss of the distance at each element, which nothing reduces."""
    return on_values("loss", _C.ops._distance, (x, y, *curve), {})


def _prelu(x: Any, weight: Any) -> Any:
    """One slope for all elements, or one for each place of dim 1."""
    if not is_ragged(x) or is_ragged(weight):
        return NotImplemented
    if autocasting():
        x, weight = lower(x, weight)
    if weight.numel() != 1:
        if x._at == 1 or tuple(weight.shape) != (x._sizes()[1],):
            raise RuntimeError(
                f"prelu: weight must have one element, or one for each place of dim 1 where that "
                f"is not the ragged one; got shape {list(weight.shape)} for {list(x.shape)}"
            )
        weight = weight.reshape((-1,) + (1,) * (len(x._sizes()) - 2))
    values = x._elements
    return ragged(x._rows, clew.where(values > 0, values, weight * values), x._at)


def _one_hot(x: Any, num_classes: int = -1) -> Any:
    made = clew.nn.functional.one_hot(x.packed()._elements, num_classes)
    return ragged(x.packed()._rows, made, x._at)


def _classes(name: str) -> Any:
    """Losses of classes, which are dim 1."""
    fn = getattr(_C.ops, name)

    def rule(x: Any, target: Any, weight: Any, *args: Any) -> Any:
        if not (is_ragged(x) and is_ragged(target)):
            return NotImplemented
        if x._at == 1:
            raise RuntimeError(
                f"{name[1:]}: the classes must be dim 1, as for dense tensors; got shape "
                f"{list(x.shape)}; use .transpose(1, 2)"
            )
        if target._at != x._at - 1 or not x._rows.is_like(target._rows):
            raise RuntimeError(
                f"{name[1:]}: target must have input's rows, without the class dim; got shapes "
                f"{list(x.shape)} and {list(target.shape)}"
            )
        x, target = x.packed(), target.packed()
        made = fn(x._elements.movedim(0, 1), target._elements, weight, *args)
        loss = made[0]
        if loss.dim():
            loss = ragged(target._rows, loss, target._at)
        return (loss, *made[1:])

    return rule


def _masked(x: Any, mask: Any) -> Tensor:
    """The elements that a mask names, as one vector."""
    if not (is_ragged(x) and is_ragged(mask)):
        return NotImplemented
    need_same_rows("masked_select", (x, mask))
    return x.packed()._elements.masked_select(mask.packed()._elements)


RULES: dict[str, Any] = {
    "linear": linear,
    "matmul": matmul,
    "__rmatmul__": lambda x, y: matmul(y, x),
    "bmm": bmm,
    "_embedding": _embedding,
    "layer_norm": _normed("layer_norm"),
    "rms_norm": _normed("rms_norm"),
    "_rms_norm": _rms,
    **{n: _distance(n) for n in ("_mse_loss", "_smooth_l1_loss", "_huber_loss")},
    **{n: _distance(n) for n in ("_binary_cross_entropy", "_binary_cross_entropy_with_logits")},
    **{n: _classes(n) for n in ("_nll_loss", "_cross_entropy")},
    "_distance": _curve,
    "prelu": _prelu,
    "one_hot": _one_hot,
    "masked_select": _masked,
}
