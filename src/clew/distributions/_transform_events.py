"""Transforms of vectors and matrices, and those that run others on pieces of a tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import clew
from clew import Size, Tensor
from clew.distributions import constraints
from clew.distributions._transform import Transform
from clew.distributions._transform_elementwise import _Plain
from clew.distributions.utils import sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix
from clew.nn.functional import logsigmoid, pad, softplus


def _before(x: Tensor) -> Tensor:
    """Shifts the last dim right by one; a 1 comes in front."""
    return pad(x[..., :-1], (1, 0), value=1)


def _one_longer(shape: Any, by: int) -> Size:
    if len(shape) < 1:
        raise ValueError("Too few dimensions on input")
    return Size((*shape[:-1], shape[-1] + by))


class CorrCholeskyTransform(Transform):
    """Vectors of D(D-1)/2 numbers to Cholesky factors of D x D correlation matrices.

    tanh of the numbers are partial correlations; row by row, each takes its share of the unit
    length that the row has left.

    Args:
        cache_size: 0 or 1.

    Example:
        >>> t = clew.distributions.CorrCholeskyTransform()
        >>> t(clew.zeros(1))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = clew.finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(min=eps - 1, max=1 - eps), diag=-1)
        left = (1 - partial.square()).sqrt().cumprod(-1)
        unit = clew.eye(partial.shape[-1], dtype=x.dtype, device=x.device)
        return (partial + unit) * _before(left)

    def _inverse(self, y: Tensor) -> Tensor:
        left = _before(1 - y.square().cumsum(-1))
        return (tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(left, -1).sqrt()).atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # An element at (i, j) is its partial correlation times the root of what row i has left.
        left = tril_matrix_to_vec(1 - y.square().cumsum(-1), -2) if y.shape[-1] > 2 else None
        shares = 0.0 if left is None else 0.5 * left.log().sum(-1)
        tanh = 2 * (math.log(2) - x - softplus(-2 * x)).sum(-1)
        return shares + tanh

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = math.isqrt(8 * shape[-1] + 1)
        dim = (1 + n) // 2
        if dim * (dim - 1) // 2 != shape[-1]:
            raise ValueError(
                f"CorrCholeskyTransform: a vector's length must be D(D-1)/2; got {shape[-1]}"
            )
        return Size(shape[:-1]) + (dim, dim)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError(f"Input is not square: {tuple(shape)}")
        return Size(shape[:-2]) + (shape[-1] * (shape[-1] - 1) // 2,)


class SoftmaxTransform(_Plain):
    """Vectors to probabilities, y = softmax(x); not bijective, as a shift of x is lost.

    Args:
        cache_size: 0 or 1.

    Example:
        >>> clew.distributions.SoftmaxTransform()(clew.zeros(2))
        tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return clew.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        return _one_longer(shape, 0)

    def inverse_shape(self, shape: Any) -> Any:
        return _one_longer(shape, 0)


class StickBreakingTransform(_Plain):
    """K numbers to K + 1 probabilities: each takes the share sigmoid(x) of the stick that is left.

    The numbers are shifted so that zeros give equal probabilities.

    Args:
        cache_size: 0 or 1.

    Example:
        >>> clew.distributions.StickBreakingTransform()(clew.zeros(3))
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _shift(x: Tensor) -> Tensor:
        """log of how many pieces each piece leaves."""
        k = x.shape[-1]
        return clew.arange(k, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        share = (x - self._shift(x)).sigmoid()
        left = (1 - share).cumprod(-1)
        return pad(share, (0, 1), value=1) * pad(left, (1, 0), value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        taken = y[..., :-1]
        left = (1 - taken.cumsum(-1)).clamp(min=clew.finfo(y.dtype).tiny)
        return taken.log() - left.log() + self._shift(taken)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (y[..., :-1].log() + logsigmoid(self._shift(x) - x)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return _one_longer(shape, 1)

    def inverse_shape(self, shape: Any) -> Any:
        return _one_longer(shape, -1)


class LowerCholeskyTransform(_Plain):
    """Square matrices to lower triangular ones with a positive diagonal, which is exp'd.

    Args:
        cache_size: 0 or 1.

    Example:
        >>> clew.distributions.LowerCholeskyTransform()(clew.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(0, -2, -1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(0, -2, -1).log().diag_embed()


class PositiveDefiniteTransform(_Plain):
    """Square matrices to positive definite ones, L Lᵀ with L from LowerCholeskyTransform.

    Args:
        cache_size: 0 or 1.

    Example:
        >>> clew.distributions.PositiveDefiniteTransform()(clew.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(clew.linalg.cholesky(y))


def _transforms(tseq: Sequence[Transform], cache_size: int, name: str) -> list[Transform]:
    found = list(tseq)
    if not found or not all(isinstance(t, Transform) for t in found):
        raise ValueError(f"{name}: needs a sequence of transforms; got {tseq!r}")
    return [t.with_cache(cache_size) for t in found] if cache_size else found


def _check_dim(name: str, dim: int, x: Tensor, length: int) -> None:
    if not -x.ndim <= dim < x.ndim or x.shape[dim] != length:
        raise ValueError(
            f"{name}: needs {length} elements along dim {dim}; got shape {tuple(x.shape)}"
        )


class CatTransform(Transform):
    """Runs transforms on consecutive pieces along a dim, as ``clew.cat`` joins them.

    Args:
        tseq: the transforms.
        dim: the dim that is cut.
        lengths: how long each piece is; 1 each if not given.
        cache_size: 0 or 1.

    Example:
        >>> d = clew.distributions
        >>> t = d.CatTransform([d.ExpTransform(), d.transforms.identity_transform], lengths=[1, 2])
        >>> t(clew.zeros(3))
        tensor([1., 0., 0.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        self.transforms = _transforms(tseq, cache_size, "CatTransform")
        super().__init__(cache_size=cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(
                f"CatTransform: needs as many lengths as transforms; got {len(self.lengths)} and "
                f"{len(self.transforms)}"
            )
        self.dim = dim

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """How many elements the pieces have together."""
        return sum(self.lengths)

    def _recached(self, cache_size: int) -> Transform:
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _pieces(self, x: Tensor) -> list[Tensor]:
        _check_dim("CatTransform", self.dim, x, self.length)
        return list(x.split(self.lengths, self.dim))

    def _call(self, x: Tensor) -> Tensor:
        return clew.cat([t(p) for t, p in zip(self.transforms, self._pieces(x))], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return clew.cat([t.inv(p) for t, p in zip(self.transforms, self._pieces(y))], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        changes = []
        for t, a, b in zip(self.transforms, self._pieces(x), self._pieces(y)):
            change = t.log_abs_det_jacobian(a, b)
            changes.append(sum_rightmost(change, self.event_dim - t.event_dim))
        # Counted from the right, the cut dim moves by the dims that were summed out.
        dim = (self.dim if self.dim < 0 else self.dim - x.ndim) + self.event_dim
        return clew.cat(changes, dim) if dim < 0 else sum(changes[1:], changes[0])

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    @property
    def domain(self) -> Any:
        """The constraint that inputs satisfy."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:
        """The constraint that outputs satisfy."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(Transform):
    """Runs transforms on the slices along a dim, as ``clew.stack`` joins them.

    Args:
        tseq: the transforms.
        dim: the dim whose slices they take.
        cache_size: 0 or 1.

    Example:
        >>> d = clew.distributions
        >>> d.StackTransform([d.ExpTransform(), d.TanhTransform()])(clew.zeros(2))
        tensor([1., 0.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        self.transforms = _transforms(tseq, cache_size, "StackTransform")
        super().__init__(cache_size=cache_size)
        self.dim = dim

    def _recached(self, cache_size: int) -> Transform:
        return StackTransform(self.transforms, self.dim, cache_size)

    def _pieces(self, x: Tensor) -> list[Tensor]:
        _check_dim("StackTransform", self.dim, x, len(self.transforms))
        return list(x.unbind(self.dim))

    def _call(self, x: Tensor) -> Tensor:
        return clew.stack([t(p) for t, p in zip(self.transforms, self._pieces(x))], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return clew.stack([t.inv(p) for t, p in zip(self.transforms, self._pieces(y))], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        inner = max(t.domain.event_dim for t in self.transforms)
        changes = []
        for t, a, b in zip(self.transforms, self._pieces(x), self._pieces(y)):
            change = t.log_abs_det_jacobian(a, b)
            changes.append(sum_rightmost(change, inner - t.domain.event_dim))
        if self.domain.event_dim > inner:  # the stacked dim is part of the event
            return sum(changes[1:], changes[0])
        # Counted from the right, the stacked dim moves by the dims that were summed out.
        return clew.stack(changes, self.dim if self.dim >= 0 else self.dim + inner)

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    @property
    def domain(self) -> Any:
        """The constraint that inputs satisfy."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:
        """The constraint that outputs satisfy."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
