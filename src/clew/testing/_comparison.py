"""Assertions about values, with messages that say where they differ."""

from __future__ import annotations

import cmath
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew._base.dtypes import PYTHON_TYPES
from clew._base.provenance import user_level

__all__ = ["assert_allclose", "assert_close"]

_Message = str | Callable[[str], str] | None

# Relative and absolute tolerance by dtype; everything else has to be equal.
_TOLERANCES: dict[Any, tuple[float, float]] = {
    clew.float16: (1e-3, 1e-5),
    clew.bfloat16: (1.6e-2, 1e-5),
    clew.float32: (1.3e-6, 1e-5),
    clew.float64: (1e-7, 1e-7),
    clew.complex64: (1.3e-6, 1e-5),
    clew.complex128: (1e-7, 1e-7),
}


class _Options:
    """How two leaves are compared."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def tolerances(self, *dtypes: clew.dtype) -> tuple[float, float]:
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        found = [_TOLERANCES.get(d, (0.0, 0.0)) for d in dtypes]
        return max(f[0] for f in found), max(f[1] for f in found)

    rtol: float | None
    atol: float | None
    allow_subclasses: bool
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: _Message = None,
) -> None:
    """Asserts |actual - expected| <= atol + rtol * |expected|, element by element.

    Args:
        actual: a tensor, an array, a number, None, or sequences and mappings of them.
        expected: what it should be, of the same structure.
        allow_subclasses: accept types related by inheritance; else types must be the same.
        rtol: relative tolerance; with atol, or neither: then both depend on the dtype.
        atol: absolute tolerance.
        equal_nan: NaN equals NaN.
        check_device: devices must agree.
        check_dtype: dtypes must agree; else values are promoted first.
        check_layout: layouts must agree.
        check_stride: strides must agree.
        msg: the error's text, or a function from the generated text to it.

    >>> clew.testing.assert_close(clew.ones(2), clew.ones(2) + 1e-7)
    >>> clew.testing.assert_close([1.0, clew.ones(1)], [1.0, clew.zeros(1)])
    Traceback (most recent call last):
      ...
    AssertionError: Tensor-likes are not close!
    <BLANKLINE>
    Mismatched elements: 1 / 1 (100.0%)
    Greatest absolute difference: 1.0 at index (0,) (up to 1e-05 allowed)
    Greatest relative difference: inf at index (0,) (up to 1.3e-06 allowed)
    <BLANKLINE>
    The failure occurred for item [1]
    """
    if (rtol is None) != (atol is None):
        lacking = "atol" if atol is None else "rtol"
        raise ValueError(f"assert_close: give both rtol and atol, or neither; got no {lacking}")
    options = _Options(
        rtol=rtol,
        atol=atol,
        allow_subclasses=allow_subclasses,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
    )
    found: list[str] = []
    _compare(actual, expected, options, (), found)
    if found:
        text = "\n\n".join(found)
        raise AssertionError(msg(text) if callable(msg) else text if msg is None else msg)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The old form of :func:`assert_close`: makes tensors of both, and ignores dtypes.

    Args:
        actual: a tensor or what makes one.
        expected: the same.
        rtol: the relative tolerance; by dtype when None.
        atol: the absolute tolerance; by dtype when None.
        equal_nan: whether NaN equals NaN.
        msg: the message of the error.

    >>> clew.testing.assert_allclose([1, 2], clew.tensor([1.0, 2.0]))
    """
    warnings.warn(
        "assert_allclose is deprecated; use assert_close", FutureWarning, stacklevel=user_level()
    )
    actual = actual if isinstance(actual, Tensor) else clew.tensor(actual)
    expected = expected if isinstance(expected, Tensor) else clew.tensor(expected)
    if rtol is None and atol is None:
        known = {clew.float16: 1e-3, clew.float32: 1e-4, clew.float64: 1e-5}
        rtol = max(known.get(t.dtype, 0.0) for t in (actual, expected))
        atol = 1e-5 if rtol else 0.0
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_dtype=False,
        msg=msg or None,
    )


def _place(path: tuple[Any, ...]) -> str:
    where = "".join(f"[{p!r}]" for p in path)
    return f"\n\nThe failure occurred for item {where}" if path else ""


def _like_tensor(x: Any) -> bool:
    return isinstance(x, (Tensor, np.ndarray))


def _number(x: Any) -> bool:
    return isinstance(x, (int, float, complex, np.number, np.bool_))


def _compare(a: Any, b: Any, o: _Options, path: tuple[Any, ...], found: list[str]) -> None:
    related = isinstance(a, type(b)) or isinstance(b, type(a))
    strings = isinstance(a, str) or isinstance(b, str)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        missing, extra = sorted(set(b) - set(a), key=str), sorted(set(a) - set(b), key=str)
        if missing or extra:
            found.append(
                "The keys of the mappings do not match:"
                + (f"\nMissing keys in the actual mapping: {missing}" if missing else "")
                + (f"\nAdditional keys in the actual mapping: {extra}" if extra else "")
                + _place(path)
            )
            return
        for key in a:
            _compare(a[key], b[key], o, (*path, key), found)
    elif isinstance(a, Sequence) and isinstance(b, Sequence) and not strings:
        if len(a) != len(b):
            found.append(
                f"The length of the sequences mismatch: {len(a)} != {len(b)}{_place(path)}"
            )
            return
        for i, (x, y) in enumerate(zip(a, b)):
            _compare(x, y, o, (*path, i), found)
    elif a is None or b is None:
        if a is not b:
            found.append(f"None mismatch: {a} is not {b}{_place(path)}")
    elif _like_tensor(a) and _like_tensor(b):
        if not (related if o.allow_subclasses else type(a) is type(b)):
            raise TypeError(_cannot(a, b, path))
        text = _tensors(a, b, o)
        if text:
            found.append(text + _place(path))
    elif _number(a) and _number(b):
        text = _numbers(a, b, o)
        if text:
            found.append(text + _place(path))
    else:
        raise TypeError(_cannot(a, b, path))


def _cannot(a: Any, b: Any, path: tuple[Any, ...]) -> str:
    return (
        f"assert_close: there is no way to compare {type(a)} with {type(b)}; tensors, arrays, "
        f"numbers, None, sequences and mappings can be{_place(path)}"
    )


def _numbers(a: Any, b: Any, o: _Options) -> str | None:
    a, b = (x.item() if isinstance(x, (np.number, np.bool_)) else x for x in (a, b))
    if o.check_dtype and type(a) is not type(b):
        return f"The (d)types do not match: {type(a)} != {type(b)}."
    rtol, atol = o.tolerances(PYTHON_TYPES[type(a)], PYTHON_TYPES[type(b)])
    if a == b or (o.equal_nan and cmath.isnan(a) and cmath.isnan(b)):
        return None
    off = abs(a - b)
    if cmath.isfinite(complex(a)) and cmath.isfinite(complex(b)) and off <= atol + rtol * abs(b):
        return None
    return _scalar_text(a, b, rtol, atol)


def _scalar_text(a: Any, b: Any, rtol: float, atol: float) -> str:
    off = abs(a - b)
    relative = off / abs(b) if b != 0 else math.inf
    equal = rtol == 0 and atol == 0
    return (
        f"Scalars are not {'equal' if equal else 'close'}!\n\nExpected {b} but got {a}.\n"
        f"Absolute difference: {off}" + ("" if equal else f" (up to {atol} allowed)") + "\n"
        f"Relative difference: {relative}" + ("" if equal else f" (up to {rtol} allowed)")
    )


def _tensors(a: Any, b: Any, o: _Options) -> str | None:
    a, b = (t.detach() if isinstance(t, Tensor) else clew.from_numpy(np.array(t)) for t in (a, b))

    def mismatch(attribute: str, x: Any, y: Any) -> str:
        return f"The values for attribute '{attribute}' do not match: {x} != {y}."

    if a.shape != b.shape:
        return mismatch("shape", a.shape, b.shape)
    if o.check_device and a.device != b.device:
        return mismatch("device", a.device, b.device)
    if o.check_dtype and a.dtype is not b.dtype:
        return mismatch("dtype", a.dtype, b.dtype)
    if o.check_layout and a.layout is not b.layout:
        return mismatch("layout", a.layout, b.layout)
    if o.check_stride and a.stride() != b.stride():
        return mismatch("stride()", a.stride(), b.stride())
    rtol, atol = o.tolerances(a.dtype, b.dtype)
    if a.is_meta or b.is_meta:
        return None  # there are no values
    if a.dtype is not b.dtype:
        common = clew.promote_types(a.dtype, b.dtype)
        a, b = a.to(common), b.to(common)
    if any(t.layout is not clew.strided or t.is_nested for t in (a, b)):
        parts = _elements(a, b)
        if parts is None:
            return "The places of the elements do not match."
        a, b = parts
    close = clew.isclose(a, b, rtol=rtol, atol=atol, equal_nan=o.equal_nan)
    if bool(close.all()):
        return None
    return _explain(a, b, close, rtol, atol)


def _elements(a: Any, b: Any) -> tuple[Tensor, Tensor] | None:
    """The elements of two sparse or ragged tensors; None where these are in other places."""
    if a.layout is not b.layout:
        return a.to_dense(), b.to_dense()
    if a.layout is clew.jagged:
        a, b = a.packed(), b.packed()
    elif a.is_sparse:
        a, b = a.coalesce(), b.coalesce()
    return (a._elements, b._elements) if a._has_places_of(b) else None


def _explain(a: Tensor, b: Tensor, close: Tensor, rtol: float, atol: float) -> str:
    equal = rtol == 0 and atol == 0
    if a.ndim == 0:
        return _scalar_text(a.item(), b.item(), rtol, atol)
    bad = int((~close).sum())
    exact = not (a.dtype.is_floating_point or a.dtype.is_complex)
    x, y = (_wide(t) for t in (a, b))
    off = np.abs(x - y)
    off[close.numpy()] = 0
    with np.errstate(all="ignore"):
        relative = np.asarray(off / np.abs(y), dtype=float)
    relative[close.numpy()] = 0
    head = f"Tensor-likes are not {'equal' if equal else 'close'}!\n\n"

    def line(name: str, d: np.ndarray, allowed: float, whole: bool) -> str:
        flat = np.nan_to_num(np.asarray(d, dtype=float), nan=np.inf)
        at = np.unravel_index(int(np.argmax(flat)), d.shape)
        index = tuple(int(i) for i in at)
        text = f"Greatest {name} difference: {_plain(d[at], whole)} at index {index}"
        return text + ("" if equal else f" (up to {allowed} allowed)")

    return (
        f"{head}Mismatched elements: {bad} / {a.numel()} ({100 * bad / a.numel():.1f}%)\n"
        f"{line('absolute', off, atol, exact)}\n{line('relative', relative, rtol, False)}"
    )


def _plain(value: Any, exact: bool) -> Any:
    return int(value) if exact else float(value)


def _wide(t: Tensor) -> np.ndarray:
    """The values where differences do not overflow: Python integers, float64, complex128."""
    if t.dtype.is_complex:
        return t.to(clew.complex128).numpy()
    if t.dtype.is_floating_point:
        return t.to(clew.float64).numpy()
    return t.numpy().astype(object) if t.dtype is not clew.bool else t.numpy().astype(int)
