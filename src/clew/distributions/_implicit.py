"""Gamma and Dirichlet samples through which gradients flow to the concentrations.

A sample z with cdf F(z; a) and density p moves with its parameter by dz/da = -(∂F/∂a) / p. For
both families ∂F/∂a is an integral of p(t) (log t - E log t) from the left end to z, or minus the
integral of the same from z to the right end. On the side of z away from E log t the integrand does
not change sign, so nothing cancels. Over w = log t (gamma) or w = logit t (beta) the integrand is
smooth and falls at least exponentially: a power series gives the tail and Gauss-Legendre nodes the
rest. All of it is written with differentiable ops, which gives the second derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew.autograd import Function
from clew.distributions import _sampling
from clew.nn.functional import logsigmoid, softplus

_NODES, _WEIGHTS = ((x + off) / 2 for x, off in zip(np.polynomial.legendre.leggauss(64), (1, 0)))
_CUT = 45.0  # exp(-45) of the integrand's height is left out
_CHUNK = 16384  # elements that are handled at once; each has 64 nodes


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


def _left_tail(a: Tensor, b: Tensor, psi: Tensor, t: Tensor, log_t: Tensor) -> Tensor:
    """t⁻ᵃ times the integral from 0 to t of sᵃ⁻¹ (1 - s)ᵇ⁻¹ (psi - log s), for small t."""
    coefficient, total = clew.ones_like(t), clew.zeros_like(t)
    for k in range(16):
        below = (a + k).reciprocal()
        total = total + coefficient * below * (psi - log_t + below)
        coefficient = coefficient * t * (k + 1 - b) / (k + 1)
    return total


def _right_tail(a: Tensor, b: Tensor, psi: Tensor, y: Tensor) -> Tensor:
    """y⁻ᵇ times the integral from 0 to y of sᵇ⁻¹ (1 - s)ᵃ⁻¹ (log(1 - s) - psi), for small y."""
    coefficient, logarithmic, total = clew.ones_like(y), clew.zeros_like(y), clew.zeros_like(y)
    for k in range(16):
        total = total + (logarithmic - psi * coefficient) / (b + k)
        # the coefficients of (1 - s) ** (a - 1), and their derivatives by a
        logarithmic = y * (logarithmic * (k + 1 - a) - coefficient) / (k + 1)
        coefficient = y * coefficient * (k + 1 - a) / (k + 1)
    return total


def beta_logit_derivative(a: Tensor, b: Tensor, logit: Tensor) -> Tensor:
    """d logit(x) / d a of a beta sample x at a fixed quantile, in float64."""
    total = a + b
    log_x, log_rest = logsigmoid(logit), logsigmoid(-logit)
    psi = a.digamma() - total.digamma()
    side = clew.where(log_x < psi, -1.0, 1.0)

    def growth(u: Tensor, log_x: Tensor, log_rest: Tensor) -> Tensor:
        """log(1 - x + x exp(u))"""
        near = clew.where(u.abs() < 1, u, 0.0)
        far = clew.logaddexp(log_rest, log_x + u)
        return clew.where(u.abs() < 1, (log_x.exp() * near.expm1()).log1p(), far)

    with clew.no_grad():
        tail = ((total + 1) * 10).log()  # beyond ±tail the series converge
        length = (tail - side * logit).clamp(min=0)
        for _ in range(24):
            u = side * length
            height = a * u - total * growth(u, log_x, log_rest)
            slope = side * (a - total * (logit + u).sigmoid())
            step = ((height + _CUT) / slope).clamp(min=0)
            length = clew.where(height < -_CUT, length - step, length)
        u = side * length
        ends = (a * u - total * growth(u, log_x, log_rest)) > -_CUT + 1

    def integrand(v: Tensor) -> Tensor:
        u = side.unsqueeze(-1) * v
        grown = growth(u, log_x.unsqueeze(-1), log_rest.unsqueeze(-1))
        height = (a.unsqueeze(-1) * u - total.unsqueeze(-1) * grown).exp()
        return height * ((log_x - psi).unsqueeze(-1) + u - grown)

    body = side * _integral(integrand, length)
    # The tail begins where the nodes end, at the logit `begin`; both move with x.
    begin = clew.where(ends, logit + side * length, side * tail)
    u = clew.where(ends, side * length, 0.0)
    height = (a * u - total * growth(u, log_x, log_rest)).exp()
    left = _left_tail(a, b, psi, begin.clamp(max=0).sigmoid(), -softplus(-begin))
    right = _right_tail(a, b, psi, (-begin).clamp(max=0).sigmoid())
    left = left * (b * softplus(begin)).exp()
    right = right * (a * softplus(-begin)).exp()
    beyond = height * clew.where(side < 0, left, right)
    return body + clew.where(ends, beyond, 0.0)


def _chunked(function: Any, *tensors: Tensor) -> Tensor:
    """Runs an elementwise function on pieces, in float64, to bound the memory of the nodes."""
    shape = tensors[0].shape
    flat = [t.to(clew.float64).reshape(-1) for t in tensors]
    pieces = [function(*piece) for piece in zip(*(t.split(_CHUNK) for t in flat))]
    return clew.cat(pieces).reshape(shape) if len(pieces) > 1 else pieces[0].reshape(shape)


class _StandardGamma(Function):
    """Gamma samples of rate 1."""

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
    largest = x == x.amax(-1, keepdim=True)
    others = x.masked_fill(largest, 0.0).sum(-1, keepdim=True)
    several = x.sum(-1, keepdim=True) - x
    single = largest.sum(-1, keepdim=True) == 1
    return clew.where(largest & single, others, several)


def x_logit(x: Tensor) -> Tensor:
    """logit(x) of probability vectors, exact to the elements' own precision."""
    tiny = clew.finfo(x.dtype).tiny
    return x.clamp(min=tiny).log() - _rest(x).clamp(min=tiny).log()


def standard_gamma(concentration: Tensor) -> Tensor:
    """Gamma samples of rate 1 with implicit reparameterized gradients."""
    return _StandardGamma.apply(concentration)


def standard_dirichlet(concentration: Tensor) -> Tensor:
    """Dirichlet samples with implicit reparameterized gradients."""
    return _StandardDirichlet.apply(concentration)
