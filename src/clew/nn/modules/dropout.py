"""Modules that drop elements or channels at random."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from .module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    __constants__ = ["p", "inplace"]
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(
                f"{type(self).__name__}: dropout probability has to be between 0 and 1, but got {p}"
            )
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes elements at random while training and scales the others by 1 / (1 - p).

    In evaluation the input itself is returned. Srivastava et al. 2014, JMLR 15.

    Args:
        p: probability of a zero, in [0, 1].
        inplace: overwrite the input with the result.

    Shapes:
        input: any shape.
        returns: input's shape.

    Raises:
        ValueError: for a p out of [0, 1].

    Example:
        >>> clew.nn.Dropout(0.5).eval()(clew.ones(2)).tolist()
        [1.0, 1.0]
        >>> drawn = clew.nn.Dropout(0.75)(clew.ones(100))
        >>> sorted(set(drawn.tolist()))
        [0.0, 4.0]
    """

    def forward(self, input: Any) -> Any:
        if not self.training:
            return input
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Zeroes whole channels at random while training and scales the others by 1 / (1 - p).

    Each channel of each sample is drawn by itself; in evaluation the input is returned. Tompson et
    al. 2015, arXiv:1411.4280.

    Args:
        p: probability of a zero, in [0, 1].
        inplace: overwrite the input with the result.

    Shapes:
        input: (N, C, L) or (C, L).
        returns: input's shape.

    Raises:
        ValueError: for a p out of [0, 1].

    Example:
        >>> drawn = clew.nn.Dropout1d(0.5)(clew.ones(1, 64, 4))
        >>> sorted(set(drawn.flatten(2).mean(2).flatten().tolist()))
        [0.0, 2.0]
    """

    def forward(self, input: Any) -> Any:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Zeroes whole channels at random while training and scales the others by 1 / (1 - p).

    Each channel of each sample is drawn by itself; in evaluation the input is returned. Tompson et
    al. 2015, arXiv:1411.4280.

    Args:
        p: probability of a zero, in [0, 1].
        inplace: overwrite the input with the result.

    Shapes:
        input: (N, C, H, W) or (C, H, W).
        returns: input's shape.

    Raises:
        ValueError: for a p out of [0, 1].

    Example:
        >>> drawn = clew.nn.Dropout2d(0.5)(clew.ones(1, 64, 2, 2))
        >>> sorted(set(drawn.flatten(2).mean(2).flatten().tolist()))
        [0.0, 2.0]
    """

    def forward(self, input: Any) -> Any:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Zeroes whole channels at random while training and scales the others by 1 / (1 - p).

    Each channel of each sample is drawn by itself; in evaluation the input is returned. Tompson et
    al. 2015, arXiv:1411.4280.

    Args:
        p: probability of a zero, in [0, 1].
        inplace: overwrite the input with the result.

    Shapes:
        input: (N, C, D, H, W) or (C, D, H, W).
        returns: input's shape.

    Raises:
        ValueError: for a p out of [0, 1].

    Example:
        >>> drawn = clew.nn.Dropout3d(0.5)(clew.ones(1, 64, 1, 2, 2))
        >>> sorted(set(drawn.flatten(2).mean(2).flatten().tolist()))
        [0.0, 2.0]
    """

    def forward(self, input: Any) -> Any:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean 0 and variance 1; goes with SELU.

    A dropped element becomes SELU's lower limit, -1.7581, and all are then scaled and moved.
    Klambauer et al. 2017, arXiv:1706.02515.

    Args:
        p: probability of a drop, in [0, 1].
        inplace: overwrite the input with the result.

    Shapes:
        input: any shape.
        returns: input's shape.

    Raises:
        ValueError: for a p out of [0, 1].

    Example:
        >>> drawn = clew.nn.AlphaDropout(0.5)(clew.zeros(100))
        >>> len(set(drawn.tolist()))
        2
        >>> clew.nn.AlphaDropout(0.5).eval()(clew.ones(2)).tolist()
        [1.0, 1.0]
    """

    def forward(self, input: Any) -> Any:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels: all elements of one are dropped together.

    Klambauer et al. 2017, arXiv:1706.02515, for AlphaDropout; in evaluation the input is returned.

    Args:
        p: probability of a drop, in [0, 1].
        inplace: overwrite the input with the result.

    Shapes:
        input: (N, C, ...), 2 or more dims.
        returns: input's shape.

    Raises:
        ValueError: for a p out of [0, 1].

    Example:
        >>> drawn = clew.nn.FeatureAlphaDropout(0.5)(clew.zeros(1, 50, 2))
        >>> (drawn[..., 0] == drawn[..., 1]).all().item()
        True
    """

    def forward(self, input: Any) -> Any:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
