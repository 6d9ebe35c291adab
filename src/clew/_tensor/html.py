"""What notebooks show of tensors, modules and tables: HTML that needs nothing else."""

from __future__ import annotations

import base64
import struct
import zlib
from html import escape
from typing import Any

import numpy as np

from clew._C import Tensor

__all__ = ["as_printed", "module", "png", "table", "tensor"]

_SIDE = 128  # most points of a picture along a side
_SHOWN = 64  # elements that are text alone
_CELL = "padding:1px 10px 1px 0;text-align:left;border:none"


def png(pixels: Any) -> bytes:
    """A picture in the PNG format (ISO/IEC 15948).

    Args:
        pixels: uint8, (height, width, 3).
    """
    height, width, _ = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # each begins with its filter: none
    rows[:, 1:] = pixels.reshape(height, 3 * width)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", head),
            chunk(b"IDAT", zlib.compress(rows.tobytes())),
            chunk(b"IEND", b""),
        )
    )


def _colours(values: Any) -> Any:
    """Blue below 0, white, red above where there are both signs; dark to light otherwise."""
    finite = np.isfinite(values)
    known = values[finite]
    low, high = (known.min(), known.max()) if known.size else (0.0, 0.0)
    safe = np.where(finite, values, 0.0)
    if low < 0 < high:
        share = safe / max(-low, high)
        fade = 1 - np.abs(share)
        rgb = [np.where(share > 0, 1.0, fade), fade, np.where(share < 0, 1.0, fade)]
    else:
        share = (safe - low) / (high - low) if high > low else np.zeros_like(safe)
        rgb = [share, share, share]
    pixels = (np.stack(rgb, -1) * 255).astype(np.uint8)
    pixels[~finite] = (255, 160, 0)  # what is no number, or infinite
    return pixels


def _picture(values: Any) -> str:
    steps = [-(-n // _SIDE) for n in values.shape]
    part = values[:: steps[0], :: steps[1]]
    height, width = part.shape
    zoom = max(1, _SIDE // max(height, width))
    data = base64.b64encode(png(_colours(part))).decode()
    return (
        f'<img alt="" src="data:image/png;base64,{data}" style="image-rendering:pixelated;'
        f'width:{width * zoom}px;height:{max(height * zoom, 8)}px;border:1px solid #8886">'
    )


def _numbers(t: Tensor) -> list[tuple[str, str]]:
    """What is worth knowing of all elements."""
    a = t.detach().float().numpy() if t.dtype.name in ("float16", "bfloat16") else None
    a = t.detach().numpy() if a is None else a
    if a.dtype == bool:
        return [("true", f"{int(a.sum())} of {a.size}")]
    finite = a[np.isfinite(a)] if a.dtype.kind == "f" else a
    rows = []
    if finite.size:
        facts = {
            "min": finite.min(),
            "mean": finite.mean(dtype=float),
            "max": finite.max(),
            "std": finite.std(dtype=float, ddof=min(1, finite.size - 1)),  # as Tensor.std()
        }
        rows = [(name, f"{value:.6g}") for name, value in facts.items()]
    if finite.size < a.size:
        rows.append(("nan", str(int(np.isnan(a).sum()))))
        rows.append(("inf", str(int(np.isinf(a).sum()))))
    return rows


def tensor(t: Tensor) -> str | None:
    """A tensor: shape and dtype, statistics, a picture of its last two dims, its text.

    None where the text says all: few elements, no memory, a class with a text of its own.

    >>> "mean" in clew.ones(100)._repr_html_()
    True
    """
    from clew.nn.parameter import Parameter

    plain = type(t) in (Tensor, Parameter)
    if not plain or t.is_meta or t.is_complex() or t.numel() <= _SHOWN or t.dim() == 0:
        return None
    shape = ", ".join(map(str, t.shape))
    facts = [f"{t.dtype.name}[{shape}]"]
    if t.requires_grad:
        facts.append("leaf" if t.grad_fn is None else f"made by {t.grad_fn.name()}")
    values = t.detach().double()
    last = values.reshape(-1, *t.shape[-2:])[0] if t.dim() > 1 else values.reshape(1, -1)
    shown = "" if t.dim() <= 2 else f"{'[' + '0, ' * (t.dim() - 2)}:, :]"
    cells = "".join(
        f'<tr><td style="{_CELL}">{name}</td><td style="{_CELL}">{value}</td></tr>'
        for name, value in _numbers(t)
    )
    return (
        f"<div><b>{escape(', '.join(facts))}</b>"
        f'<div style="display:flex;gap:16px;align-items:flex-start;margin:4px 0">'
        f"<table>{cells}</table><div>{_picture(last.numpy())}<div>{shown}</div></div></div>"
        f"<details><summary>values</summary><pre>{escape(repr(t))}</pre></details></div>"
    )


def _waits(t: Any) -> bool:
    """Whether a lazy module has not seen yet how large it is to be."""
    from clew.nn.parameter import UninitializedTensorMixin

    return isinstance(t, UninitializedTensorMixin)


def _count(module: Any) -> str:
    parameters = [p for p in module.parameters() if not _waits(p)]
    n = sum(p.numel() for p in parameters)
    nbytes = sum(p.numel() * p.element_size() for p in parameters)
    frozen = sum(p.numel() for p in parameters if not p.requires_grad)
    if n == 0:
        return ""
    size = f"{nbytes} B" if nbytes < 1e3 else f"{nbytes / 1e3:.3g} kB"
    text = f"{n:,} parameters, {size if nbytes < 1e6 else f'{nbytes / 1e6:.3g} MB'}"
    return text + (f", {frozen:,} of them frozen" if frozen else "")


def module(m: Any, name: str = "", depth: int = 0) -> str:
    """A module as a tree to open: its parameters and buffers with their shapes, what it contains.

    >>> "weight" in clew.nn.Linear(2, 3)._repr_html_()
    True
    """
    title = f"{escape(name)}: " if name else ""
    title += f"<b>{escape(m._get_name())}</b>({escape(m.extra_repr())})"
    title += f' <span style="opacity:.65">{_count(m)}</span>'
    rows = [
        f'<tr><td style="{_CELL}">{escape(own)}</td>'
        f'<td style="{_CELL}">{t.dtype.name}{"[?]" if _waits(t) else list(t.shape)}</td>'
        f'<td style="{_CELL}">{what}{"" if t.requires_grad or what != "parameter" else ", frozen"}'
        "</td></tr>"
        for what, named in (("parameter", m._parameters), ("buffer", m._buffers))
        for own, t in named.items()
        if t is not None
    ]
    inner = f"<table>{''.join(rows)}</table>" if rows else ""
    inner += "".join(
        module(child, own, depth + 1) for own, child in m._modules.items() if child is not None
    )
    if not inner:
        return f'<div style="margin-left:16px">{title}</div>'
    margin = 16 if depth else 0
    opened = ' open=""' if depth == 0 else ""
    return (
        f'<details{opened} style="margin-left:{margin}px"><summary>{title}</summary>'
        f'<div style="margin-left:16px">{inner}</div></details>'
    )


def as_printed(value: Any) -> str:
    """A `_repr_html_` for what prints as a table: its text, the lines kept whole.

    >>> from clew._tensor.html import as_printed
    >>> class Table(list):
    ...     _repr_html_ = as_printed
    >>> "<pre" in Table()._repr_html_()
    True
    """
    return table(str(value))


def table(text: str) -> str:
    """A table that was made for a terminal, its lines kept whole."""
    return f'<pre style="overflow-x:auto;white-space:pre">{escape(text)}</pre>'
