"""What subclasses of Tensor leave as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew import Tensor


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """The functions whose results are not made tensors of a subclass."""
    return {Tensor._base.__get__, Tensor.grad.__get__, Tensor._grad.__get__}  # type: ignore
