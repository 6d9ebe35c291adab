"""Initialisation: fills tensors in place with the usual distributions, outside the graph."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import clew
from clew import _namespace
from clew._base.overriding import asks_classes
from clew._base.provenance import user_level

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_LINEAR = frozenset(
    ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
     "conv_transpose3d", "sigmoid")
)  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity's inputs should be scaled so that variances stay.

    1 for linear maps and sigmoid, 5/3 for tanh, sqrt(2) for relu, sqrt(2 / (1 + slope^2)) for
    leaky_relu, 3/4 for selu.

    Args:
        nonlinearity: the name of a function of nn.functional.
        param: leaky_relu's negative slope, 0.01 by default.

    Returns:
        the gain, a float.

    Raises:
        ValueError: for a nonlinearity that has no gain.

    Example:
        >>> round(clew.nn.init.calculate_gain("relu"), 4)
        1.4142
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 0.75
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, int | float) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"calculate_gain: negative slope {param} is not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    raise ValueError(f"calculate_gain: unsupported nonlinearity {nonlinearity}")


def _uniform(tensor: Any, a: float, b: float, generator: Any) -> clew.Tensor:
    with clew.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _normal(tensor: Any, mean: float, std: float, generator: Any) -> clew.Tensor:
    with clew.no_grad():
        return tensor.normal_(mean, std, generator=generator)


@asks_classes
def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> clew.Tensor:
    """Fills with values drawn evenly from [a, b).

    Args:
        tensor: what is filled, of any shape, floating point.
        a: lower bound.
        b: upper bound.
        generator: where random numbers come from.

    Returns:
        the same tensor.

    Example:
        >>> w = clew.nn.init.uniform_(clew.empty(3, 2), -0.5, 0.5)
        >>> bool((w.abs() <= 0.5).all())
        True
    """
    return _uniform(tensor, a, b, generator)


@asks_classes
def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> clew.Tensor:
    """Fills with normally distributed values.

    Args:
        tensor: what is filled, of any shape, floating point.
        mean: the mean.
        std: the standard deviation.
        generator: where random numbers come from.

    Returns:
        the same tensor.

    Example:
        >>> w = clew.nn.init.normal_(clew.empty(1000), mean=5.0, std=0.001)
        >>> round(w.mean().item(), 2)
        5.0
    """
    return _normal(tensor, mean, std, generator)


def trunc_normal_(
    tensor: Any,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> clew.Tensor:
    """Fills with normally distributed values that lie within [a, b].

    Args:
        tensor: what is filled, of any shape, floating point.
        mean: the mean of the distribution before it is cut.
        std: its standard deviation, above 0.
        a: least value.
        b: greatest value.
        generator: where random numbers come from.

    Returns:
        the same tensor.

    Example:
        >>> w = clew.nn.init.trunc_normal_(clew.empty(100), a=-1.0, b=1.0)
        >>> bool((w.abs() <= 1).all())
        True
    """
    if not (math.isfinite(mean) and math.isfinite(std) and std > 0 and a <= b):
        raise ValueError(
            "trunc_normal_: mean and std must be finite, std above 0, and a at most b; got mean "
            f"{mean}, std {std}, a {a} and b {b}"
        )
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "trunc_normal_: mean is more than two std from [a, b]; the distribution may be wrong",
            stacklevel=user_level(),
        )

    if tensor.is_meta:  # no values to draw, nor to look at
        return tensor

    def cdf(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    low, high = (a - mean) / std, (b - mean) / std
    # The bell around zero: drawing from it and rejecting is quick. Between narrow bounds evenly
    # drawn values are kept with the density's probability; a tail is little less than exponential.
    bell = cdf(high) - cdf(low) > 0.3
    peak = min(max(0.0, low), high)
    tail = abs(peak) > 0.5 and (high - low) * abs(peak) > 2

    def draw(out: Any) -> Any:
        if bell:
            out.normal_(mean, std, generator=generator)
            return (out >= a) & (out <= b)
        if tail:
            z = clew.empty_like(out).exponential_(abs(peak), generator=generator)
            good = z <= high - low
            chance = clew.empty_like(out).uniform_(generator=generator)
            good &= chance <= (z * z / -2).exp()
            out.copy_((z.neg() if peak < 0 else z).add(peak).mul(std).add(mean).clamp(a, b))
            return good
        out.uniform_(a, b, generator=generator)
        z = (out - mean) / std
        chance = clew.empty_like(out).uniform_(generator=generator)
        return chance <= ((peak * peak - z * z) / 2).exp()

    with clew.no_grad():
        done = draw(tensor)
        while not bool(done.all()):
            again = clew.empty_like(tensor, requires_grad=False)
            good = draw(again)
            tensor.copy_(clew.where(~done & good, again, tensor))
            done = done | good
    return tensor


@asks_classes
def constant_(tensor: Any, val: float) -> clew.Tensor:
    """Fills with one value.

    Args:
        tensor: what is filled, of any shape.
        val: the value.

    Returns:
        the same tensor.

    Example:
        >>> clew.nn.init.constant_(clew.empty(2), 0.5).tolist()
        [0.5, 0.5]
    """
    with clew.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Any) -> clew.Tensor:
    """Fills with ones.

    Args:
        tensor: what is filled, of any shape.

    Returns:
        the same tensor.

    Example:
        >>> clew.nn.init.ones_(clew.empty(2)).tolist()
        [1.0, 1.0]
    """
    with clew.no_grad():
        return tensor.fill_(1.0)


def zeros_(tensor: Any) -> clew.Tensor:
    """Fills with zeros.

    Args:
        tensor: what is filled, of any shape.

    Returns:
        the same tensor.

    Example:
        >>> clew.nn.init.zeros_(clew.empty(2)).tolist()
        [0.0, 0.0]
    """
    with clew.no_grad():
        return tensor.zero_()


def eye_(tensor: Any) -> clew.Tensor:
    """Fills a matrix with the identity.

    Args:
        tensor: a 2-d tensor.

    Returns:
        the same tensor.

    Raises:
        ValueError: if tensor is not 2-d.

    Example:
        >>> clew.nn.init.eye_(clew.empty(2, 3)).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with clew.no_grad():
        tensor.copy_(clew.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))
    return tensor


def dirac_(tensor: Any, groups: int = 1) -> clew.Tensor:
    """Fills a convolution's weight so that it passes as many channels through unchanged as it can.

    Args:
        tensor: a convolution's weight, (C_out, C_in / groups, ...), 3-, 4- or 5-d.
        groups: the convolution's groups; divides C_out.

    Returns:
        the same tensor.

    Raises:
        ValueError: if tensor is not 3-, 4- or 5-d, or groups does not divide C_out.

    Example:
        >>> clew.nn.init.dirac_(clew.empty(2, 2, 3)).tolist()
        [[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    """
    dims = tensor.dim()
    if dims not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups != 0:
        raise ValueError("dirac_: dim 0 must be divisible by groups")
    per_group = tensor.shape[0] // groups
    passed = min(per_group, tensor.shape[1])
    middle = tuple(n // 2 for n in tensor.shape[2:])
    with clew.no_grad():
        tensor.zero_()
        for g in range(groups):
            for c in range(passed):
                at = (g * per_group + c, c, *middle)
                tensor[at] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Any) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions; got "
            f"one of shape {list(tensor.shape)} (biases are set by zeros_ or uniform_)"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Any, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> clew.Tensor:
    """Fills evenly such that variances stay the same forward and backward (Glorot).

    From [-b, b) with b = gain * sqrt(6 / (fan_in + fan_out)): Glorot and Bengio, Understanding the
    difficulty of training deep feedforward neural networks, 2010, equation 16.

    Args:
        tensor: a weight of at least 2 dims, (out, in, ...).
        gain: factor for the nonlinearity that follows.
        generator: where random numbers come from.

    Returns:
        the same tensor.

    Example:
        >>> w = clew.nn.init.xavier_uniform_(clew.empty(2, 4))
        >>> bool((w.abs() <= 1).all())
        True
    """
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    bound = math.sqrt(3.0) * std
    return _uniform(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> clew.Tensor:
    """The normally distributed form of xavier_uniform_.

    The mean is 0, the standard deviation gain * sqrt(2 / (fan_in + fan_out)).

    Args:
        tensor: a weight of at least 2 dims, (out, in, ...).
        gain: factor for the nonlinearity that follows.
        generator: where random numbers come from.

    Returns:
        the same tensor.

    Example:
        >>> w = clew.nn.init.xavier_normal_(clew.empty(50, 50))
        >>> bool(abs(w.std() - (2 / 100) ** 0.5) < 0.02)
        True
    """
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    return _normal(tensor, 0.0, std, generator)


def _empty(tensor: Any) -> bool:
    if 0 not in tensor.shape:
        return False
    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=user_level())
    return True


@asks_classes
def kaiming_uniform_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> clew.Tensor:
    """Fills evenly such that variances stay the same through rectified layers (He).

    From [-b, b) with b = gain * sqrt(3 / fan): He and others, Delving deep into rectifiers, 2015,
    section 2.2.

    Args:
        tensor: a weight of at least 2 dims, (out, in, ...).
        a: negative slope of the leaky_relu that follows.
        mode: "fan_in" keeps the forward variance, "fan_out" the backward one.
        nonlinearity: what follows; the gain is calculate_gain(nonlinearity, a).
        generator: where random numbers come from.

    Returns:
        the same tensor.

    Example:
        >>> w = clew.nn.init.kaiming_uniform_(clew.empty(2, 6), nonlinearity="relu")
        >>> bool((w.abs() <= 1).all())
        True
    """
    if _empty(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return _uniform(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> clew.Tensor:
    """The normally distributed form of kaiming_uniform_.

    The mean is 0, the standard deviation gain / sqrt(fan).

    Args:
        tensor: a weight of at least 2 dims, (out, in, ...).
        a: negative slope of the leaky_relu that follows.
        mode: "fan_in" keeps the forward variance, "fan_out" the backward one.
        nonlinearity: what follows; the gain is calculate_gain(nonlinearity, a).
        generator: where random numbers come from.

    Returns:
        the same tensor.

    Example:
        >>> w = clew.nn.init.kaiming_normal_(clew.empty(50, 50), nonlinearity="relu")
        >>> bool(abs(w.std() - (2 / 50) ** 0.5) < 0.02)
        True
    """
    if _empty(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return _normal(tensor, 0.0, std, generator)


def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> clew.Tensor:
    """Fills with a (semi-)orthogonal matrix; further dims are flattened.

    Saxe, McClelland and Ganguli, Exact solutions to the nonlinear dynamics of learning in deep
    linear neural networks, 2013.

    Args:
        tensor: a weight of at least 2 dims, (rows, ...).
        gain: factor on the result.
        generator: where random numbers come from.

    Returns:
        the same tensor.

    Example:
        >>> w = clew.nn.init.orthogonal_(clew.empty(2, 3))
        >>> bool(clew.allclose(w @ w.T, clew.eye(2), atol=1e-5))
        True
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows = tensor.shape[0]
    cols = tensor.numel() // rows
    with clew.no_grad():
        flat = clew.empty((rows, cols), dtype=tensor.dtype, device=tensor.device)
        flat.normal_(0, 1, generator=generator)
        if rows < cols:
            flat = flat.t()
        q = orthonormal(flat)
        if rows < cols:
            q = q.t()
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def orthonormal(a: Any) -> Any:
    """The orthogonal factor of matrices, with the signs that make the other's diagonal positive.

    Args:
        a: (..., n, k) with n >= k; derivatives do not pass.

    Returns:
        (..., n, k), evenly distributed where a is normally distributed.
    """
    import numpy as np

    wide = a.detach().to(clew.float64 if not a.is_complex() else clew.complex128)._array_view()
    if a.dtype in (clew.float32, clew.complex64):
        wide = a.detach()._array_view()
    q, r = np.linalg.qr(wide)
    signs = np.diagonal(r, axis1=-2, axis2=-1)
    q = q * (signs / np.where(signs == 0, 1, np.abs(signs)))[..., None, :]
    return clew.from_numpy(np.ascontiguousarray(q)).to(a.dtype)


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> clew.Tensor:
    """Fills a matrix with normal values and sets a part of each column to zero.

    Martens, Deep learning via Hessian-free optimization, 2010.

    Args:
        tensor: a 2-d tensor.
        sparsity: the part of each column that becomes zero, from 0 to 1.
        std: standard deviation of the rest.
        generator: where random numbers come from.

    Returns:
        the same tensor.

    Raises:
        ValueError: if tensor is not 2-d.

    Example:
        >>> w = clew.nn.init.sparse_(clew.empty(4, 2), sparsity=0.5)
        >>> (w == 0).sum(0).tolist()
        [2, 2]
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with clew.no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            tensor[clew.randperm(rows)[:zeros], col] = 0
    return tensor


def _old_name(new: Any) -> Any:
    name = new.__name__[:-1]

    def old(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"nn.init.{name} is deprecated; use nn.init.{name}_",
            FutureWarning,
            stacklevel=user_level(),
        )
        return new(*args, **kwargs)

    old.__name__ = name
    old.__doc__ = f"Deprecated name of nn.init.{name}_."
    return old


uniform = _old_name(uniform_)
normal = _old_name(normal_)
constant = _old_name(constant_)
eye = _old_name(eye_)
dirac = _old_name(dirac_)
xavier_uniform = _old_name(xavier_uniform_)
xavier_normal = _old_name(xavier_normal_)
kaiming_uniform = _old_name(kaiming_uniform_)
kaiming_normal = _old_name(kaiming_normal_)
orthogonal = _old_name(orthogonal_)
sparse = _old_name(sparse_)

if not TYPE_CHECKING:  # else checkers take any name to be there
    __getattr__ = _namespace.module_getattr(__name__, globals())
__dir__ = _namespace.module_dir(globals())
