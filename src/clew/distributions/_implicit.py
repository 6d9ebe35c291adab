"""Gamma and Dirichlet samples through which gradients flow to the concentrations.

A sample z with cdf F(z; a) and density p moves with its parameter by dz/da = -(∂F/∂a) / p. For
both families ∂F/∂a is an integral of p(t) (log t - E log t) from the left end to z, or minus the
integral of the same from z to the right end. On the side of z away from E log t the integrand does
not change sign, so nothing cancels. Over w = log t (gamma) or w = logit t (beta) the integrand is
smooth and falls at least exponentially: a power series gives the tail and Gauss-Legendre nodes the
rest. All of it is written with differentiable ops, which gives the second derivative.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew.autograd import Function
from clew.distributions import _sampling
from clew.nn.functional import logsigmoid

_NODES, _WEIGHTS = ((x + off) / 2 for x, off in zip(np.polynomial.legendre.leggauss(48), (1, 0)))
_CUT = 45.0  # exp(-45) of the integrand's height is left out
_CHUNK = 16384  # elements that are handled at once; each has 48 nodes


def _integral(function: Any, length: Tensor) -> Tensor:
    """The integral of ``function`` from 0 to ``length``, elementwise."""
    nodes = clew.from_numpy(_NODES.copy()).to(length.device)
    weights = clew.from_numpy(_WEIGHTS.copy()).to(length.device)
    values = function(length.unsqueeze(-1) * nodes)
    return (values * weights).sum(-1) * length


def _gamma_series(a: Tensor, z: Tensor) -> Tensor:
    """d log z / d a for z of about 1 or less: the series of the incomplete gamma function."""
    term, psi, log = a.reciprocal(), (a + 1).digamma(), z.log()
    total = term * (psi - log)
    for k in range(1, 25):
        below = a + k
        term = term * z / below
        psi = psi + below.reciprocal()
        total = total + term * (psi - log)
    return total


def _gamma_quadrature(a: Tensor, z: Tensor) -> Tensor:
    """d log z / d a for larger z."""
    log, psi = z.log(), a.digamma()
    side = clew.where(log < psi, -1.0, 1.0)

    def exponent(u: Tensor, a: Tensor, z: Tensor) -> Tensor:
        return a * u - z * u.expm1()

    with clew.no_grad():
        # A bound on where the exponent is -_CUT, from 2v / (2 + v) ≥ 1 - exp(-v) on the left and
        # from exp(v) - 1 ≥ v + v² / 2 on the right; then Newton's method, which stays outside.
        b = 2 * a - 2 * z - _CUT
        left = ((b.square() + 8 * _CUT * a).sqrt() - b) / (2 * a)
        gap = a - z
        right = (gap + (gap.square() + 2 * _CUT * z).sqrt()) / z
        length = clew.where(side < 0, left, right)
        for _ in range(5):
            u = side * length
            slope = side * (a - z * u.exp())
            length = length - (exponent(u, a, z) + _CUT) / slope

    def integrand(v: Tensor) -> Tensor:
        u = side.unsqueeze(-1) * v
        height = exponent(u, a.unsqueeze(-1), z.unsqueeze(-1)).exp()
        return height * ((log - psi).unsqueeze(-1) + u)

    return side * _integral(integrand, length)


def gamma_log_derivative(a: Tensor, z: Tensor) -> Tensor:
    """d log z / d a of a gamma sample z at a fixed quantile, in float64."""
    small = z < 1.5
    series = _gamma_series(clew.where(small, a, 1.0), clew.where(small, z, 1.0))
    quadrature = _gamma_quadrature(clew.where(small, 2.0, a), clew.where(small, 2.0, z))
    return clew.where(small, series, quadrature)


def _left_series(a: Tensor, b: Tensor, t: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """p and c of the terms c sᵖ⁻¹ of sᵃ⁻¹ (1 - s)ᵇ⁻¹, with tᵏ in c, for small t."""
    c = clew.ones_like(t)
    for k in range(16):
        yield a + k, c
        c = c * t * (k + 1 - b) / (k + 1)


def _right_series(a: Tensor, b: Tensor, psi: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The same of sᵇ⁻¹ (1 - s)ᵃ⁻¹ (log(1 - s) - psi)."""
    c, logarithmic = clew.ones_like(y), clew.zeros_like(y)
    for k in range(16):
        yield b + k, logarithmic - psi * c
        # of (1 - s) ** (a - 1), and their derivatives by a
        logarithmic = y * (logarithmic * (k + 1 - a) - c) / (k + 1)
        c = y * c * (k + 1 - a) / (k + 1)


def _left_tail(a: Tensor, b: Tensor, psi: Tensor, t: Tensor, log_t: Tensor) -> Tensor:
    """t⁻ᵃ times the integral from 0 to t of sᵃ⁻¹ (1 - s)ᵇ⁻¹ (psi - log s), for small t."""
    terms = ((c / p) * (psi - log_t + 1 / p) for p, c in _left_series(a, b, t))
    return sum(terms, clew.zeros_like(t))


def _right_tail(a: Tensor, b: Tensor, psi: Tensor, y: Tensor) -> Tensor:
    """y⁻ᵇ times the integral from 0 to y of sᵇ⁻¹ (1 - s)ᵃ⁻¹ (log(1 - s) - psi), for small y."""
    return sum((c / p for p, c in _right_series(a, b, psi, y)), clew.zeros_like(y))


def _left_piece(
    a: Tensor, b: Tensor, psi: Tensor, t: Tensor, log_t: Tensor, span: Tensor
) -> Tensor:
    """t⁻ᵃ times the integral from t to t exp(span) of sᵃ⁻¹ (1 - s)ᵇ⁻¹ (log s - psi)."""
    total = clew.zeros_like(t)
    for k, (p, c) in enumerate(_left_series(a, b, clew.ones_like(t))):
        end = c * (a * span + k * (log_t + span)).exp()
        first = (a * span).expm1() / p if k == 0 else (end - c * t.pow(k)) / p
        total = total + (log_t - psi) * first + (span * end - first) / p
    return total


def _right_piece(a: Tensor, b: Tensor, psi: Tensor, y: Tensor, span: Tensor) -> Tensor:
    """y⁻ᵇ times the integral from y to y exp(span) of sᵇ⁻¹ (1 - s)ᵃ⁻¹ (psi - log(1 - s))."""
    total, log_y = clew.zeros_like(y), y.log()
    for k, (p, c) in enumerate(_right_series(a, b, psi, clew.ones_like(y))):
        power = (b * span).expm1()
        if k:
            power = (b * span + k * (log_y + span)).exp() - y.pow(k)
        total = total - c * power / p
    return total


def beta_logit_derivative(a: Tensor, b: Tensor, logit: Tensor) -> Tensor:
    """d logit(x) / d a of a beta sample x at a fixed quantile, in float64.

    Beyond ±``reach`` the density over the logit is nearly exponential and the series converge;
    between them lie the nodes. The integral runs from the logit of x to one side.
    """
    total = a + b
    log_x, log_rest = logsigmoid(logit), logsigmoid(-logit)
    psi = a.digamma() - total.digamma()
    side = clew.where(log_x < psi, -1.0, 1.0)

    # A sum a + b of less than a thousand leaves nothing to cancel.
    plain = total.numel() == 0 or bool(total.max() < 1e3)

    def growth(u: Tensor, logit: Tensor, log_rest: Tensor) -> Tensor:
        """log(1 - x + x exp(u))"""
        far = log_rest - logsigmoid(-logit - u)
        if plain:
            return far
        near = clew.where(u.abs() < 1, u, 0.0)
        return clew.where(u.abs() < 1, (logit.sigmoid() * near.expm1()).log1p(), far)

    def exponent(u: Tensor) -> Tensor:
        return a * u - total * growth(u, logit, log_rest)

    with clew.no_grad():
        reach = ((total + 1) * 10).log()
        early = side * logit < -reach  # the integral begins before the nodes do
        first = clew.where(early, -side * reach - logit, 0.0)
        base = exponent(first) - _CUT
        length = (reach - side * (logit + first)).clamp(min=0)
        for _ in range(30):
            u = first + side * length
            below = exponent(u) - base
            if not (below < -0.5).any():
                break
            slope = side * (a - total * (logit + u).sigmoid())
            length = clew.where(below < 0, length - (below / slope).clamp(min=0), length)
        ends = exponent(first + side * length) > base + 1
    start = clew.where(early, -side * reach - logit, 0.0)

    def integrand(v: Tensor) -> Tensor:
        u = start.unsqueeze(-1) + side.unsqueeze(-1) * v
        grown = growth(u, logit.unsqueeze(-1), log_rest.unsqueeze(-1))
        height = (a.unsqueeze(-1) * u - total.unsqueeze(-1) * grown).exp()
        return height * ((log_x - psi).unsqueeze(-1) + u - grown)

    result = side * _integral(integrand, length)

    # From the nodes' end outward.
    u = clew.where(ends, start + side * length, 0.0)
    at = clew.where(ends, logit + u, side * reach)
    left = _left_tail(a, b, psi, at.clamp(max=0).sigmoid(), logsigmoid(at))
    right = _right_tail(a, b, psi, (-at).clamp(max=0).sigmoid())
    left, right = left * (-b * logsigmoid(-at)).exp(), right * (-a * logsigmoid(at)).exp()
    beyond = exponent(u).exp() * clew.where(side < 0, left, right)
    result = result + clew.where(ends, beyond, 0.0)

    # From x to the nodes' begin.
    if early.any():
        at = clew.where(early, logit, -side * reach)
        rest = clew.where(side > 0, logsigmoid(at), logsigmoid(-at))
        span = clew.where(early, logsigmoid(-reach) - rest, 0.0)
        low, high = clew.where(side > 0, at, -reach), clew.where(side > 0, reach, at)
        left = _left_piece(a, b, psi, low.sigmoid(), logsigmoid(low), span)
        right = _right_piece(a, b, psi, (-high).sigmoid(), span)
        left, right = left * (-b * logsigmoid(-low)).exp(), right * (-a * logsigmoid(high)).exp()
        result = result + clew.where(early, clew.where(side > 0, left, right), 0.0)
    return result


def _chunked(function: Any, *tensors: Tensor) -> Tensor:
    """Runs an elementwise function on pieces, in float64, to bound the memory of the nodes."""
    shape = tensors[0].shape
    flat = [t.to(clew.float64).reshape(-1) for t in tensors]
    pieces = [function(*piece) for piece in zip(*(t.split(_CHUNK) for t in flat))]
    return clew.cat(pieces).reshape(shape) if len(pieces) > 1 else pieces[0].reshape(shape)


def _for_each(cls: type[Function], info: Any, in_dims: Any, concentration: Tensor) -> Any:
    """Inside vmap every sample gets its own numbers, if vmap was told so."""
    if info.randomness != "different":
        raise RuntimeError(
            f"vmap: gamma and Dirichlet samples need randomness='different'; got "
            f"{info.randomness!r}"
        )
    return cls.apply(concentration.movedim(in_dims[0], 0)), 0


class _StandardGamma(Function):
    """Gamma samples of rate 1."""

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return _for_each(_StandardGamma, info, in_dims, *args)

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        value = _sampling.draw_gamma(concentration)
        ctx.save_for_backward(concentration, value)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        concentration, value = ctx.saved_tensors
        slope = value * _chunked(gamma_log_derivative, concentration, value).to(value.dtype)
        return grad * slope


class _StandardDirichlet(Function):
    """Dirichlet samples: d xᵢ / d aⱼ = hⱼ xⱼ (δᵢⱼ - xᵢ), with hⱼ the derivative of logit(xⱼ)."""

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return _for_each(_StandardDirichlet, info, in_dims, *args)

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        value = _sampling.draw_dirichlet(concentration)
        ctx.save_for_backward(concentration, value)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        concentration, value = ctx.saved_tensors
        a, x = concentration.to(clew.float64), value.to(clew.float64)
        slope = _chunked(beta_logit_derivative, a, _rest(a), x_logit(x)).to(value.dtype)
        return slope * value * (grad - (grad * value).sum(-1, keepdim=True))


def _rest(x: Tensor) -> Tensor:
    """The sum of the other elements along the last dim, without cancellation."""
    if x.shape[-1] == 0:
        return x
    largest = x == x.amax(-1, keepdim=True)
    others = x.masked_fill(largest, 0.0).sum(-1, keepdim=True)
    several = x.sum(-1, keepdim=True) - x
    single = largest.sum(-1, keepdim=True) == 1
    return clew.where(largest & single, others, several)


def x_logit(x: Tensor) -> Tensor:
    """logit(x) of probability vectors, exact to the elements' own precision."""
    tiny = clew.finfo(x.dtype).tiny
    return x.clamp(min=tiny).log() - _rest(x).clamp(min=tiny).log()


def _batched(concentration: Tensor) -> Tensor:
    """Inside vmap, the concentration of every sample, where they draw different numbers."""
    if not clew._C._vmap_depth():
        return concentration
    # A random zero for every sample; no numbers, so that the generator stays where it is.
    return concentration + clew.rand(0, dtype=concentration.dtype).sum()


def standard_gamma(concentration: Tensor) -> Tensor:
    """Gamma samples of rate 1 with implicit reparameterized gradients."""
    return _StandardGamma.apply(_batched(concentration))


def standard_dirichlet(concentration: Tensor) -> Tensor:
    """Dirichlet samples with implicit reparameterized gradients."""
    return _StandardDirichlet.apply(_batched(concentration))
