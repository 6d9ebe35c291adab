"""summary: describes a tensor in one line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from clew import _C
from clew._base import provenance as _provenance
from clew._C import Tensor
from clew._tensor.html import as_printed
from clew._tensor.text import widen

__all__ = ["Summary", "summary"]

FEW = 8  # elements that are shown themselves
CHUNK = 1 << 16  # elements looked at together: they stay in the processor's cache
WIDTH = 80  # characters of a value that is no tensor


class Summary(str):
    """A str that shows itself without quotes; `summary` returns one.

    Example:
        >>> clew.debug.Summary("float32[2]")
        float32[2]
    """

    __slots__ = ()

    _repr_html_ = as_printed

    def __repr__(self) -> str:
        return str(self)


def summary(value: Any) -> Summary:
    """Describes a tensor in one line: dtype, shape, range, NaN and infinities, where it was made.

    Range, mean and standard deviation are those of the finite elements. A tensor of at most 8
    elements shows them instead. Nothing is recorded or changed; the elements are read once.

    Args:
        value: a tensor, an array, a module, or dicts, lists and tuples of them: one line for each.

    Returns:
        the text, a str.

    >>> clew.debug.summary(clew.arange(12.0).view(3, 4))
    float32[3, 4] in [0, 11], mean 5.5, std 3.606
    >>> clew.debug.summary({"step": 3, "loss": clew.tensor(0.5, requires_grad=True)})
    step: 3
    loss: float32[] = 0.5, requires_grad
    """
    if isinstance(value, (Tensor, np.ndarray)):
        return Summary(_line(value))
    rows = list(_rows("", value))
    return Summary("\n".join(f"{name}: {text}" if name else text for name, text in rows))


def _parts(value: Any) -> list[tuple[str, Any]] | None:
    """What a value holds, with the names; None where it is to be shown as a whole."""
    if isinstance(value, _C.ModuleBase):
        module: Any = value
        return [*module.named_parameters(), *module.named_buffers()]
    if isinstance(value, Mapping):
        parts = [(str(key), part) for key, part in value.items()]
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = list(zip(value._fields, value))
    elif isinstance(value, (list, tuple)):
        parts = [(f"[{i}]", part) for i, part in enumerate(value)]
    else:
        return None
    return parts if isinstance(value, Mapping) or any(_shown(p) for _, p in parts) else None


def _shown(value: Any) -> bool:
    return isinstance(value, (Tensor, np.ndarray)) or bool(_parts(value))


def _rows(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Names and texts of what a value holds."""
    if isinstance(value, (Tensor, np.ndarray)):
        yield name, _line(value)
        return
    parts = _parts(value)
    if not parts:
        text = " ".join(repr(value).split()) if parts is None else f"empty {type(value).__name__}"
        yield name, text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."
        return
    for key, part in parts:
        if isinstance(value, _C.ModuleBase):
            yield f"{name}.{key}" if name else key, _line(part, named=True)
        else:
            yield from _rows(
                f"{name}.{key}" if name and not key.startswith("[") else f"{name}{key}", part
            )


def _line(t: Tensor | np.ndarray, named: bool = False) -> str:
    if isinstance(t, np.ndarray):
        return f"numpy {t.dtype}{list(t.shape)}{_values(t, t.dtype.name == 'bool')}"
    levels = _C._levels(t)
    kind = "" if type(t).__name__ in ("Tensor", "Parameter") else f"{type(t).__name__} "
    text = f"{kind}{t.dtype.name}{list(t.shape)}"
    whole = t
    if levels:
        try:
            whole = _C._show_levels(t, levels)
        except RuntimeError:
            return f"{text}, of a vmap that is over"
        samples = math.prod(whole.shape[: whole.dim() - t.dim()])
        text += f" for each of {samples} samples"
    if t.device.type == "meta":
        text += ", on meta: no values"
    else:
        array = whole._array_view()
        text += _values(array, t.dtype.name == "bool", t.dtype.name == "bfloat16")
    return ", ".join([text, *_facts(t, named)])


# ---- elements ----


def _values(array: np.ndarray, truth: bool, halves: bool = False) -> str:
    """What is told of the elements: themselves, or range and moments; NaN and infinities."""
    if array.size == 0:
        return ", empty"
    if not (truth or array.dtype.kind in "iufc"):
        return ""
    if array.size <= FEW:
        return f" = {_nested(widen(array, halves))}"
    if truth:
        return f", {np.count_nonzero(array)} of {array.size} true"
    found = _Moments()
    pieces: Any = np.nditer(array, ["external_loop", "buffered"], order="K", buffersize=CHUNK)
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers near the largest there are
        for piece in pieces:
            found.add(widen(piece, halves))
    return found.text("f" if halves else array.dtype.kind)


class _Moments:
    """Range, mean and spread of numbers that come in pieces."""

    def __init__(self) -> None:
        self.nan = self.infinite = self.count = 0
        self.low, self.high = math.inf, -math.inf
        self.mean: Any = 0.0
        self.squares = 0.0  # of the distances from the mean

    def add(self, chunk: np.ndarray) -> None:
        complex_ = chunk.dtype.kind == "c"
        sizes = np.abs(chunk) if complex_ else chunk
        low, high = sizes.min().item(), sizes.max().item()  # NaN where there is one
        if not (math.isfinite(low) and math.isfinite(high)):
            nan = int(np.isnan(chunk).sum())
            finite = chunk[np.isfinite(chunk)]
            self.nan += nan
            self.infinite += chunk.size - finite.size - nan
            if finite.size:
                self.add(finite)
            return
        self.low, self.high = min(self.low, low), max(self.high, high)
        wide = chunk.astype(np.complex128 if complex_ else np.float64)
        mean = wide.mean().item()
        wide -= mean
        squares = np.square(np.abs(wide) if complex_ else wide).sum().item()
        total = self.count + chunk.size
        step = mean - self.mean
        self.squares += squares + abs(step) ** 2 * self.count * (chunk.size / total)
        self.mean += step * (chunk.size / total)
        self.count = total

    def text(self, kind: str) -> str:
        text = ""
        if self.count and self.low == self.high and kind != "c":
            text = f", {'else ' if self.nan or self.infinite else ''}all {_number(self.low)}"
        elif self.count:
            size = " abs" if kind == "c" else ""
            text = f"{size} in [{_number(self.low)}, {_number(self.high)}]"
            text += f", mean {_number(self.mean)}"
            if self.count > 1 and kind != "c":
                text += f", std {_number(math.sqrt(self.squares / (self.count - 1)))}"
        counts = [(self.nan, "NaN"), (self.infinite, "inf")]
        return text + "".join(f", {count} {name}" for count, name in counts if count)


def _number(value: Any) -> str:
    if isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, complex):
        return f"{_number(value.real)}{value.imag:+.4g}j"
    return f"{value:.4g}"


def _nested(array: np.ndarray) -> str:
    if array.ndim == 0:
        return _number(array.item())
    return f"[{', '.join(_nested(part) for part in array)}]"


# ---- history ----


def _facts(t: Tensor, named: bool) -> Iterator[str]:
    if t.is_inference():
        yield "inference"
    if _C._levels(t):
        return
    node = t.grad_fn
    if node is not None:
        yield "requires_grad"
        place = node.location
        at = "" if place is None else f" at {place.short}"
        yield f"made by {_operation(node)}{at}{_module(node.module, node.module_type)}"
        return
    if t.requires_grad:
        yield "requires_grad"
    name = None if named else _provenance.parameter_name(t)
    if name is not None:
        yield f"{name[0]} of {name[1]}"
        return
    cut = _C._cut_of(t)
    if cut is not None and cut[0] != "made":
        kind, operation, place, _ = cut
        how = {"detach": "detached", "data": "taken as .data", "dtype": f"cut off by {operation}"}
        at = _provenance.Location(place[0], place[1]).short
        yield f"{how.get(kind, f'computed under {kind}')} at {at}{_module(place[2], place[3])}"


def _operation(node: Any) -> str:
    """``mul`` of MulBackward0; a custom Function's own name."""
    name = re.sub(r"Backward\d*$", "", node.name())
    if hasattr(node, "_function"):
        return name
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _module(path: str | None, kind: str | None) -> str:
    return "" if path is None else f" (module {path or kind})"
