"""Statistics written in Python: quantiles, covariances, membership, norms of parts."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import (
    need_bools,
    need_int,
    need_number,
    need_tensors,
    numpy_names,
    wrapped_dim,
)
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes
from clew._base.provenance import user_level
from clew._C import Tensor
from clew._ops.primitive import loops_in_vmap, write_out

__all__ = [
    "corrcoef",
    "cov",
    "isin",
    "nanquantile",
    "quantile",
    "renorm",
]

_ops = _C.ops
_f = _C.functions


# ---- quantiles -----------------------------------------------------------------------------------

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(
    function: str,
    input: Tensor,
    q: Any,
    dim: int | None,
    keepdim: bool,
    interpolation: str,
    ignore_nan: bool,
) -> Tensor:
    need_tensors(function, input=input)
    if input.dtype not in (_dtypes.float32, _dtypes.float64):
        raise RuntimeError(
            f"{function}() input tensor must be either float or double dtype; got {input.dtype}"
        )
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{function}() interpolation must be one of linear, lower, higher, midpoint or "
            f"nearest, but got {interpolation}"
        )
    if not isinstance(q, Tensor):
        if isinstance(q, bool) or not isinstance(q, (int, float, np.number)):
            raise TypeError(
                f"{function}(): argument 'q' must be float or Tensor, not {type(q).__name__}"
            )
        if not 0 <= q <= 1:
            raise RuntimeError(f"{function}() q must be in the range [0, 1] but got {q}")
        q = _C.full((), float(q), dtype=input.dtype, device=input.device)
    if q.ndim > 1:
        raise RuntimeError(f"{function}() q must be a scalar or 1D tensor; got {list(q.shape)}")
    if q.dtype is not input.dtype:
        raise RuntimeError(
            f"{function}() q tensor must be same dtype as the input tensor; got {q.dtype} and "
            f"{input.dtype}"
        )
    if not q.is_meta and q.numel() and not bool(((q >= 0) & (q <= 1)).all()):
        raise RuntimeError(f"{function}() q values must be in the range [0, 1]")
    at = None if dim is None else wrapped_dim(function, dim, input.ndim)
    if input.numel() == 0:
        raise RuntimeError(f"{function}() input tensor must be non-empty; got {list(input.shape)}")
    # The reduced dimension last; the quantiles first.
    if at is None or input.ndim == 0:
        rows, kept = input.reshape(-1), [1] * input.ndim
    else:
        rows = input.movedim(at, -1)
        kept = [1 if d == at else n for d, n in enumerate(input.shape)]
    ordered = rows.sort(-1)[0]
    last = ordered.shape[-1] - 1
    fractions = q.reshape(-1)
    nan = ordered.isnan()
    if ignore_nan:
        # NaNs sort behind everything; a row of NaNs alone keeps rank 0 and gives NaN.
        top = (last - nan.sum(-1, keepdim=True)).clamp(min=0).to(q.dtype)
        ranks = fractions * top
    else:
        ranks = _ops.where(nan.any(-1, keepdim=True), float(last), fractions * float(last))
    if interpolation in ("lower", "higher", "nearest"):
        ranks = {"lower": ranks.floor, "higher": ranks.ceil, "nearest": ranks.round}[
            interpolation
        ]()
    below = ranks.detach().long()
    values = ordered.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        above = ordered.gather(-1, ranks.detach().ceil().long())
        share = ranks - below if interpolation == "linear" else _C.full_like(values, 0.5)
        values = _ops.lerp(values, above, share)
    if q.ndim == 0:
        values = values.squeeze(-1)
        return values.reshape(kept) if keepdim else values
    values = values.movedim(-1, 0)
    return values.reshape([q.shape[0], *kept]) if keepdim else values


@asks_classes
@in_float32
@loops_in_vmap
@numpy_names
def quantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """The values below which fractions q of the elements lie; NaN where a row has one.

    Args:
        input: float32 or float64.
        q: a fraction between 0 and 1, or a vector of them of the input's dtype.
        dim: the dimension to reduce; all when None.
        keepdim: keep reduced dimensions, of size 1.
        interpolation: what to take between two elements: 'linear', 'lower', 'higher', 'midpoint' or
            'nearest'.
        out: receives the result.

    Returns:
        the quantiles, those of a vector q along a new first dimension.

    >>> clew.quantile(clew.tensor([0.0, 1.0, 2.0, 4.0]), clew.tensor([0.5, 1.0]))
    tensor([1.5000, 4.0000])
    """
    need_bools("quantile", keepdim=keepdim)
    return write_out(
        "quantile",
        _quantile("quantile", input, q, dim, keepdim, interpolation, False),
        out,
        records=True,
    )


@asks_classes
@in_float32
@loops_in_vmap
@numpy_names
def nanquantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """The quantiles of the elements that are not NaN; NaN where all are.

    Args:
        input: float32 or float64.
        q: a fraction between 0 and 1, or a vector of them of the input's dtype.
        dim: the dimension to reduce; all when None.
        keepdim: keep reduced dimensions, of size 1.
        interpolation: as for :func:`quantile`.
        out: receives the result.

    >>> clew.nanquantile(clew.tensor([1.0, float("nan"), 3.0]), 0.5)
    tensor(2.)
    """
    need_bools("nanquantile", keepdim=keepdim)
    return write_out(
        "nanquantile",
        _quantile("nanquantile", input, q, dim, keepdim, interpolation, True),
        out,
        records=True,
    )


# ---- covariance ----------------------------------------------------------------------------------


def _observation_weights(name: str, weights: Any, count: int, integral: bool) -> Tensor | None:
    if weights is None:
        return None
    need_tensors("cov", **{name: weights})
    if weights.ndim > 1 or weights.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to be a vector with one number for each of the {count} "
            f"observations; got {list(weights.shape)}"
        )
    is_integral = not weights.dtype.is_floating_point and not weights.dtype.is_complex
    wrong = not is_integral or weights.dtype is _dtypes.bool if integral else is_integral
    if wrong or weights.dtype.is_complex:
        kind = "integral" if integral else "floating point"
        raise RuntimeError(f"cov(): expected {name} to have {kind} dtype; got {weights.dtype}")
    if not weights.is_meta and bool((weights < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative")
    return weights.reshape(-1)


@asks_classes
@loops_in_vmap
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariances of variables, one in each row, with observations in the columns.

    Args:
        input: at most two dimensions; a vector is one variable.
        correction: subtracted from the number of observations in the divisor.
        fweights: integers, how often each observation counts.
        aweights: floating point, how important each observation is.

    Returns:
        a symmetric matrix, or a tensor without dimensions for one variable.

    >>> clew.cov(clew.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    need_tensors("cov", input=input)
    correction = need_int("cov", "correction", correction)
    if input.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with "
            f"{input.ndim} dimensions"
        )
    if input.dtype is _dtypes.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input.reshape(1, -1) if input.ndim < 2 else input
    count = x.shape[1]
    w = _observation_weights("fweights", fweights, count, True)
    a = _observation_weights("aweights", aweights, count, False)
    both = a if w is None else w if a is None else w * a
    if both is None:
        total: Any = count
        mean = x.sum(1) / count if count else x.sum(1) * math.nan
        divisor: Any = count - correction
    else:
        total = both.sum()
        if not both.is_meta and float(total) == 0:
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = (x * both).sum(1) / total
        divisor = total - correction
        if a is not None and correction != 0:
            divisor = total - correction * (both * a).sum() / total
    if not isinstance(divisor, Tensor) or not divisor.is_meta:
        if float(divisor) <= 0:
            warnings.warn("cov(): degrees of freedom is <= 0", UserWarning, stacklevel=user_level())
            divisor = 0
    centred = x - mean.unsqueeze(1)
    scaled = centred if both is None else centred * both
    products = centred @ scaled.t().conj()
    return (
        products * math.nan
        if isinstance(divisor, int) and divisor == 0 and not count
        else products / divisor
    ).squeeze()


@asks_classes
@loops_in_vmap
def corrcoef(input: Tensor) -> Tensor:
    """The correlations of variables, one in each row, with observations in the columns.

    Args:
        input: at most two dimensions; a vector is one variable.

    Returns:
        a symmetric matrix of values between -1 and 1, or a tensor without dimensions for one
        variable.

    >>> clew.corrcoef(clew.tensor([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]])).round().tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    need_tensors("corrcoef", input=input)
    if input.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{input.ndim} dimensions"
        )
    c = cov(input)
    if c.ndim == 0:
        return c / c
    deviation = c.diagonal()
    deviation = (_f["real"](deviation) if c.is_complex() else deviation).sqrt()
    c = c / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    if c.is_complex():
        from clew._ops.creation import complex

        return complex(_f["real"](c).clamp(-1, 1), _f["imag"](c).clamp(-1, 1))
    return c.clamp(-1, 1)


# ---- membership ----------------------------------------------------------------------------------


@asks_classes
def isin(
    elements: Any,
    test_elements: Any,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Whether each element is among the test elements.

    Args:
        elements: a tensor, or a number when `test_elements` is a tensor.
        test_elements: a tensor, or a number.
        assume_unique: whether both hold no element twice; the result does not depend on it.
        invert: tell what is not among them instead.
        out: receives the result.

    Returns:
        a bool tensor of the elements' shape.

    >>> clew.isin(clew.tensor([[1, 2], [3, 4]]), clew.tensor([2, 3])).tolist()
    [[False, True], [True, False]]
    """
    need_bools("isin", assume_unique=assume_unique, invert=invert)
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError(
            f"isin(): one of elements and test_elements must be a Tensor; got "
            f"{type(elements).__name__} and {type(test_elements).__name__}"
        )
    for t in (elements, test_elements):
        if not isinstance(t, (Tensor, int, float, np.number, np.bool_)):
            raise TypeError(f"isin(): expected Tensors or numbers; got {type(t).__name__}")
        if isinstance(t, Tensor) and (t.is_complex() or t.dtype is _dtypes.bool):
            raise RuntimeError(f"isin(): elements must be real numbers; got {t.dtype}")
    if isinstance(elements, Tensor) and isinstance(test_elements, Tensor):
        same = elements.dtype is test_elements.dtype
    else:
        same = False
        if not isinstance(elements, Tensor):
            elements = need_number("isin", "elements", elements)
        if not isinstance(test_elements, Tensor):
            test_elements = need_number("isin", "test_elements", test_elements)
    device = (elements if isinstance(elements, Tensor) else test_elements).device
    if same:
        a, b = elements.detach(), test_elements.detach()
    else:
        from clew._ops.functions import result_type

        dtype = result_type(elements, test_elements)
        a, b = (
            t.detach().to(dtype) if isinstance(t, Tensor) else _C.full((), t, dtype=dtype)
            for t in (elements, test_elements)
        )
    if device.type == "meta":
        return write_out("isin", _C.empty(a.shape, dtype=_dtypes.bool, device=device), out)
    b = b.reshape(-1)
    if a.numel() * b.numel() <= 4096:  # a table of comparisons
        found = (a.unsqueeze(-1) == b).any(-1)
    elif b.numel() < 8:
        found = _C.zeros(a.shape, dtype=_dtypes.bool)
        for t in b.unbind():
            found = found | (a == t)
    else:
        known = b.sort()[0]
        at = _f["searchsorted"](known, a.contiguous()).clamp_(max=known.numel() - 1)
        found = known[at] == a
    return write_out("isin", ~found if invert else found, out)


# ---- norms of parts ------------------------------------------------------------------------------


@asks_classes
@numpy_names
def renorm(
    input: Tensor, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None
) -> Tensor:
    """The input with every part along ``dim`` scaled down to a p-norm of at most maxnorm.

    Args:
        input: at least two dimensions.
        p: the power of the norm, positive.
        dim: the dimension whose parts are scaled.
        maxnorm: the largest norm that stays.
        out: receives the result.

    >>> clew.renorm(clew.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    factors = _renorm_factors(input, p, dim, maxnorm)
    return write_out("renorm", input * factors, out)


def _renorm_factors(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """What each part along `dim` is multiplied with."""
    if not isinstance(input, Tensor):
        need_tensors("renorm", input=input)
    p, maxnorm = need_number("renorm", "p", p), need_number("renorm", "maxnorm", maxnorm)
    ndim = input.ndim
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(f"renorm: input must be floating point or complex; got {input.dtype}")
    if p <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported; got p={p}")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {ndim} dimensions")
    at = wrapped_dim("renorm", dim, ndim)
    others = [*range(at), *range(at + 1, ndim)]
    half = input.dtype in (_dtypes.float16, _dtypes.bfloat16)
    norms = _f["linalg.vector_norm"](input.float() if half else input, p, others, True)
    large = norms > maxnorm
    # Where nothing is scaled the quotient is not looked at, so it must not divide by zero.
    factors = maxnorm / (_ops.where(large, norms, 1.0) + 1e-7)
    factors = _ops.where(large, factors, 1.0)
    return factors if factors.dtype is input.dtype else factors.to(input.dtype)


def renorm_(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """renorm in place."""
    # Backward of the norms wants the values before the write.
    recorded = _C.is_grad_enabled() and isinstance(self, Tensor) and self.requires_grad
    before = self.clone() if recorded else self
    return self.mul_(_renorm_factors(before, p, dim, maxnorm))
