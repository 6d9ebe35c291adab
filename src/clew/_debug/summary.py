"""One line that tells what a tensor is, holds and comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clew import _C
from clew._C import Tensor

__all__ = ["summary"]

FEW = 6  # elements that are shown as they are


def summary(value: Any) -> str:
    """What a tensor is, holds and comes from, in one line.

    Args:
        value: a tensor; or a list, tuple or mapping of such, which gives one line each.

    Returns:
        dtype, shape, range, mean and standard deviation of the finite elements, counts of NaN and
        infinities, whether it requires grad, and the line that made it.

    >>> clew.debug.summary(clew.tensor([1.0, float("nan"), 3.0, float("-inf"), 0, 0, 0]))
    'float32[7] in [0, 3], mean 0.8, std 1.304, 1 NaN, 1 inf'
    """
    if isinstance(value, Tensor):
        return ", ".join(p for p in (_head(value), *_graph(value)) if p)
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {summary(v)}" for key, v in value.items())
    if isinstance(value, (list, tuple)):
        return "\n".join(f"{i}: {summary(v)}" for i, v in enumerate(value))
    if hasattr(value, "state_dict"):
        return summary(value.state_dict())
    return repr(value)


def _number(x: float) -> str:
    return f"{x:.4g}"


def _head(t: Tensor) -> str:
    kind = f"{t.dtype.name}{list(t.shape)}"
    if t.is_meta:
        return f"{kind} on meta, without values"
    if t.numel() == 0:
        return f"{kind}, empty"
    if _C._vmap_depth() and _C._levels(t):
        return f"{kind}, one sample of a vmap"
    t = t.detach()
    with _Plain():
        if t.numel() <= FEW:
            return f"{kind} {_values(t)}"
        if t.dtype.name == "bool":
            return f"{kind}, {int(t.sum())} of {t.numel()} True"
        if not (t.is_floating_point() or t.is_complex()):
            low, high = t.min().item(), t.max().item()
            return f"{kind} in [{low}, {high}], mean {_number(t.double().mean().item())}"
        return f"{kind}{_statistics(t)}"


def _values(t: Tensor) -> str:
    def text(v: Any) -> str:
        if isinstance(v, list):
            return "[" + ", ".join(map(text, v)) + "]"
        return _number(v) if isinstance(v, float) else str(v)

    return text(t.tolist())


def _statistics(t: Tensor) -> str:
    size = t.abs() if t.is_complex() else t
    nans = int(size.isnan().sum())
    infinities = int(size.isinf().sum())
    parts = []
    if nans + infinities:
        size = size[size.isfinite()]
    if size.numel():
        of = " |.|" if t.is_complex() else ""
        low, high = size.min().item(), size.max().item()
        parts.append(f"{of} in [{_number(low)}, {_number(high)}]")
        wide = size.double()
        parts.append(f"mean {_number(wide.mean().item())}")
        if size.numel() > 1:
            parts.append(f"std {_number(wide.std().item())}")
    if nans:
        parts.append(f"{nans} NaN")
    if infinities:
        parts.append(f"{infinities} inf")
    text = ", ".join(parts)
    return text if text.startswith(" ") else f", {text}"


def _graph(t: Tensor) -> list[str]:
    node = t.grad_fn
    if node is None:
        return ["requires_grad"] if t.requires_grad else []
    made = f"made by {node.name()}"
    if node.location is not None:
        made += f" at {node.location.short}"
    if node.module is not None:
        made += f" (module {node.module or node.module_type})"
    return ["requires_grad", made]


class _Plain:
    """Nothing that is computed for a summary is recorded, cast or watched."""

    def __enter__(self) -> None:
        self._grad = _C._set_grad_enabled(False)
        self._modes = _C._set_intercept(0)

    def __exit__(self, *exc: object) -> None:
        _C._set_intercept(self._modes)
        _C._set_grad_enabled(self._grad)
