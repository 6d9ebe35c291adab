"""Ready parametrizations: weight_norm, spectral_norm, orthogonal."""

from __future__ import annotations

from typing import Any

import clew
from clew import linalg

from .. import functional as F
from ..init import orthonormal
from ..modules.module import Module
from . import parametrize
from .weight_norm import norm_except_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return weight_v * (weight_g / norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight: Any) -> Any:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Splits a weight into length and direction.

    Args:
        module: the module.
        name: the weight's name.
        dim: the dim whose slices have a length each; None for one length.

    Returns:
        the module.

    Example:
        >>> layer = clew.nn.utils.parametrizations.weight_norm(clew.nn.Linear(3, 2))
        >>> tuple(layer.parametrizations.weight.original0.shape)
        (2, 1)
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    start = f"{name}_g", f"{name}_v"

    def from_old(state: Any, prefix: str, *rest: Any) -> None:
        # State dicts of the old weight_norm are taken too.
        if all(prefix + k in state for k in start):
            for i, k in enumerate(start):
                state[f"{prefix}parametrizations.{name}.original{i}"] = state.pop(prefix + k)

    module._register_load_state_dict_pre_hook(from_old)
    return module


class _SpectralNorm(Module):
    def __init__(
        self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        ndim = weight.dim()
        if dim >= ndim or dim < -ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but "
                f"got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight.detach())
            rows, cols = matrix.shape
            u = matrix.new_empty(rows).normal_(0, 1)
            v = matrix.new_empty(cols).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight: Any) -> Any:
        if self.dim != 0:
            weight = weight.movedim(self.dim, 0)
        return weight.flatten(1)

    def _iterate(self, matrix: Any, steps: int) -> None:
        with clew.no_grad():
            for _ in range(steps):
                self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.t().mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Any:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        # Copies, so that a later call does not change what backward needs.
        u, v = self._u.clone(), self._v.clone()
        return weight / clew.dot(u, matrix.mv(v))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divides a weight by its greatest singular value.

    Args:
        module: the module.
        name: the weight's name.
        n_power_iterations: steps of the power method at each access while training.
        eps: least norm that is divided by.
        dim: the dim of the outputs: 1 for transposed convolutions, else 0.

    Returns:
        the module.

    Example:
        >>> layer = clew.nn.Linear(2, 2)
        >>> layer.weight.data = clew.diag(clew.tensor([4., 1.]))
        >>> layer = clew.nn.utils.parametrizations.spectral_norm(layer, n_power_iterations=30)
        >>> round(clew.linalg.matrix_norm(layer.eval().weight, 2).item(), 3)
        1.0
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, clew.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    parametrize.register_parametrization(module, name, made)
    return module


def _is_orthogonal(q: Any) -> bool:
    n, k = q.shape[-2], q.shape[-1]
    eps = 10 * n * clew.finfo(q.dtype).eps
    near = q.mH @ q - clew.eye(k, dtype=q.dtype)
    return bool((near.abs() <= eps).all())


class _Orthogonal(Module):
    def __init__(
        self, weight: Any, orthogonal_map: str, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Any) -> Any:
        n, k = x.shape[-2], x.shape[-1]
        wide = n < k
        if wide:
            x = x.mT
            n, k = k, n
        if self.orthogonal_map == "householder":
            q = _householder(x)
        else:
            # A skew matrix from the lower triangle, mapped to the orthogonal ones.
            a = x.tril()
            if n != k:
                a = clew.cat([a, a.new_zeros(*a.shape[:-2], n, n - k)], -1)
            a = a - a.mH
            if self.orthogonal_map == "matrix_exp":
                q = linalg.matrix_exp(a)
            else:
                one = clew.eye(n, dtype=a.dtype)
                q = linalg.solve(one - 0.5 * a, one + 0.5 * a)
            if n != k:
                q = q[..., :k]
        base = self._buffers.get("base")
        if base is not None:
            q = base @ q
        return q.mT if wide else q

    def right_inverse(self, q: Any) -> Any:
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. "
                f"Got a tensor of shape {q.shape}."
            )
        wide = q.shape[-2] < q.shape[-1]
        if wide:
            q = q.mT
        n, k = q.shape[-2], q.shape[-1]
        if "base" not in self._buffers:
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley "
                    "parametrizations when use_trivialization=False."
                )
            # The reflections' scales follow from their vectors, except where LAPACK leaves one out
            # (scale 0): there the sign makes up for it.
            a, tau = clew.geqrf(q.detach())
            diagonal = a.diagonal(dim1=-2, dim2=-1)
            diagonal.copy_(clew.where(tau == 0, -1.0, 1.0) * diagonal.sgn())
            return a.mT if wide else a
        if n == k:
            q = q.clone() if _is_orthogonal(q) else orthonormal(q)
        else:
            more = clew.randn(*q.shape[:-2], n, n - k, dtype=q.dtype)
            q = orthonormal(clew.cat([q, more], -1))
        self.base = q
        zero = clew.zeros_like(q)
        zero = zero[..., :k] if n != k else zero
        # The identity for all maps: householder's sign is -1 where the vector is zero, and the
        # others do not see the diagonal.
        zero.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return zero.mT if wide else zero


def _householder(x: Any) -> Any:
    """The product of the reflections whose vectors stand below the diagonal of x; the diagonal
    tells the sign of each column.
    """
    below = x.tril(-1)
    tau = 2.0 / (1.0 + (below * below).sum(-2))
    q = linalg.householder_product(below, tau)
    return q * x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def orthogonal(
    module: Any,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Any:
    """Keeps a weight's rows or columns orthonormal.

    Lezcano-Casado and Martinez-Rubio, Cheap orthogonal constraints in neural networks, 2019, for
    the maps; Lezcano-Casado, Trivializations for gradient-based optimization on manifolds, 2019,
    for the base point.

    Args:
        module: the module.
        name: the name of the weight, (..., n, k): columns are orthonormal if n >= k, else rows.
        orthogonal_map: "matrix_exp", "cayley" or "householder"; None is "matrix_exp" for square and
            complex weights, else "householder".
        use_trivialization: keep a base point, so that the weight can be assigned.

    Returns:
        the same module.

    Raises:
        ValueError: if the weight has fewer than 2 dims, or the map is unknown.

    Example:
        >>> layer = clew.nn.utils.parametrizations.orthogonal(clew.nn.Linear(3, 2))
        >>> bool(clew.allclose(layer.weight @ layer.weight.T, clew.eye(2), atol=1e-5))
        True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, clew.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.dim() < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions."
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, made, unsafe=True)
    return module
