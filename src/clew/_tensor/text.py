"""How tensors are written out, and the options that govern it.

The layout (column widths, scientific notation, summaries of long tensors, suffixes) is PyTorch's.
Elements are read through NumPy, so printing never records or computes with clew's own operations.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from clew import _C
from clew._C import Tensor

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]


class _Options:
    def __init__(self) -> None:
        self.precision = 4
        self.threshold: float = 1000
        self.edgeitems = 3
        self.linewidth = 80
        self.sci_mode: bool | None = None


_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}
_options = _Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors are printed; what is not given keeps its value.

    Args:
        precision: digits after the decimal point (4 at first).
        threshold: tensors with more elements than this are summarised (1000).
        edgeitems: how many elements a summary keeps at each end of a dimension (3).
        linewidth: characters after which a row is broken (80).
        profile: "default", "short" or "full": starting values for the four above.
        sci_mode: True or False forces or forbids scientific notation; None lets the values decide.

    Example:
        >>> clew.set_printoptions(precision=2)
        >>> clew.tensor([1.12345])
        tensor([1.12])
        >>> clew.set_printoptions(profile="default")
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(
                f"set_printoptions: profile must be one of {', '.join(_PROFILES)}; got {profile!r}"
            )
        for name, value in _PROFILES[profile].items():
            setattr(_options, name, value)
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    for name, value in given.items():
        if value is not None:
            setattr(_options, name, value)
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """Returns the current print options by name.

    Example:
        >>> clew.get_printoptions()["precision"]
        4
    """
    return dict(vars(_options))


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Sets print options inside a `with` block only; takes what `set_printoptions` takes.

    Example:
        >>> with clew._tensor.text.printoptions(precision=1):
        ...     print(clew.tensor([0.123]))
        tensor([0.1])
    """
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


class _Formatter:
    """Writes numbers of one array to a common width."""

    def __init__(self, data: np.ndarray) -> None:
        self.style = "g"  # as it is: integers and bool
        self.width = 1
        if data.dtype.kind != "f":
            self.width = max((len(str(v)) for v in data.ravel().tolist()), default=1)
            return
        values = data.ravel().astype(np.float64)
        values = values[np.isfinite(values) & (values != 0)]
        self.style = "."
        if values.size:
            largest, smallest = np.abs(values).max(), np.abs(values).min()
            whole = bool((values == np.ceil(values)).all())
            with np.errstate(over="ignore"):
                wide = largest / smallest > 1000.0 or largest > 1.0e8
            if wide or (not whole and smallest < 1.0e-4):
                self.style = "e"
            elif not whole:
                self.style = "f"
            if _options.sci_mode is True:
                self.style = "e"
            elif _options.sci_mode is False and self.style == "e":
                self.style = "." if whole else "f"
            self.width = max(len(self._plain(v)) for v in values.tolist())

    def _plain(self, value: Any) -> str:
        if self.style == "e":
            return f"{value:.{_options.precision}e}"
        if self.style == "f":
            return f"{value:.{_options.precision}f}"
        if self.style == ".":
            return f"{value:.0f}" + ("." if math.isfinite(value) else "")
        return str(value)

    def __call__(self, value: Any) -> str:
        return self._plain(value).rjust(self.width)


class _ComplexFormatter:
    """Writes complex numbers, the two parts each to a width of their own."""

    def __init__(self, data: np.ndarray) -> None:
        self.real = _Formatter(data.real)
        self.imag = _Formatter(data.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = (self.imag(value.imag) + "j").lstrip()
        sign = "" if imag[0] in "+-" else "+"
        return self.real(value.real) + sign + imag


def _edges(data: np.ndarray) -> np.ndarray:
    """The elements that a summary shows."""
    keep = _options.edgeitems
    for axis, size in enumerate(data.shape):
        if size > 2 * keep:
            ends = [*range(keep), *range(size - keep, size)]
            data = np.take(data, ends, axis=axis)
    return data


def _write(data: np.ndarray, indent: int, summarize: bool, form: Any) -> str:
    """The nested brackets of an array."""
    if data.ndim == 0:
        return form(data.item())
    keep = _options.edgeitems
    short = summarize and data.shape[0] > 2 * keep
    tail = data.shape[0] - keep
    if data.ndim > 1:
        if short:
            rows = [_write(data[i], indent + 1, summarize, form) for i in range(keep)]
            rows.append("...")
            rows += [
                _write(data[i], indent + 1, summarize, form) for i in range(tail, data.shape[0])
            ]
        else:
            rows = [_write(row, indent + 1, summarize, form) for row in data]
        return "[" + ("," + "\n" * (data.ndim - 1) + " " * (indent + 1)).join(rows) + "]"
    if short:
        items = [form(v) for v in data[:keep].tolist()]
        items.append(" ..." if keep else "...")
        items += [form(v) for v in data[tail:].tolist()]
    else:
        items = [form(v) for v in data.tolist()]
    per_line = max(1, (_options.linewidth - indent) // (form.width + 2))
    lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def widen(data: np.ndarray, bits: bool) -> np.ndarray:
    """Numbers as NumPy knows them: `bits` are those of bfloat16, which it has no type for."""
    return (data.astype(np.uint32) << 16).view(np.float32) if bits else data


def _contents(tensor: Tensor, indent: int) -> str:
    """The elements of a tensor that is neither empty nor on the meta device."""
    # Not through detach(), which would leave a mark on the tensor.
    data = widen(tensor._array_view(), tensor.dtype.name == "bfloat16")
    if data.dtype == np.float16:
        data = data.astype(np.float32)
    summarize = data.size > _options.threshold
    shown = _edges(data) if summarize else data
    form = _ComplexFormatter(shown) if data.dtype.kind == "c" else _Formatter(shown)
    return _write(data, indent, summarize, form)


def _of_samples(tensor: Tensor) -> str:
    """The text of a tensor that stands for one sample inside vmap: all samples, if they are known
    still.
    """
    levels = _C._levels(tensor)
    try:
        value = f", value=\n{_str(_C._show_levels(tensor, levels).detach())}"
    except RuntimeError:
        value = ", of a vmap that is over"
    numbers = [i for i in range(levels.bit_length()) if levels >> i & 1]
    return f"BatchedTensor(levels={numbers}, shape={list(tensor.shape)}{value})"


def _str(tensor: Tensor, *, tensor_contents: str | None = None) -> str:
    """The text of `repr(tensor)`; `tensor_contents` replaces the elements."""
    if _C._levels(tensor):
        return _of_samples(tensor)
    plain = type(tensor) is Tensor or type(tensor).__name__ == "Parameter"
    prefix = ("tensor" if plain else type(tensor).__name__) + "("
    indent = len(prefix)
    default = _C.get_default_dtype()
    default_complex = _C.complex128 if default is _C.float64 else _C.complex64
    shows_dtype = tensor.dtype not in (default, default_complex, _C.int64, _C.bool)
    suffixes = []
    if tensor.device.type == "meta":
        suffixes += ["device='meta'", f"size={tuple(tensor.shape)}"]
        if tensor.dtype is not default:
            suffixes.append(f"dtype={tensor.dtype}")
        text = "..."
    elif tensor.numel() == 0:
        if tensor.dim() != 1:
            suffixes.append(f"size={tuple(tensor.shape)}")
        if tensor.dtype is not default:
            suffixes.append(f"dtype={tensor.dtype}")
        text = "[]"
    else:
        if _options.edgeitems == 0:
            suffixes.append(f"size={tuple(tensor.shape)}")
        if shows_dtype:
            suffixes.append(f"dtype={tensor.dtype}")
        text = tensor_contents if tensor_contents is not None else _contents(tensor, indent)
    if tensor_contents is not None:
        text = tensor_contents
    if tensor.grad_fn is not None:
        suffixes.append(f"grad_fn=<{tensor.grad_fn.name()}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    text = prefix + text
    column = len(text) - text.rfind("\n") + 1
    parts = [text]
    for suffix in suffixes:
        if column + len(suffix) + 2 > _options.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            column = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            column += len(suffix) + 2
    return "".join(parts) + ")"


PRINT_OPTS = _options
_tensor_str = _contents
