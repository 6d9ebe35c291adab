"""Names that programs take which clip gradients themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import clew
from clew import Tensor
from clew.nn.utils.clip_grad import clip_grads_with_norm_ as _clip_grads_with_norm_  # noqa: F401
from clew.nn.utils.clip_grad import get_total_norm as _get_total_norm  # noqa: F401

_F = TypeVar("_F", bound=Callable[..., object])
_tensor_or_tensors = Tensor | Iterable[Tensor]


def _no_grad(func: _F) -> _F:
    """The function, without gradients: `no_grad()` as a decorator."""
    return clew.no_grad()(func)
