"""What subclasses of Tensor take over, and what they leave as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew import Tensor
from clew.overrides import has_torch_function


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """The functions whose results are not made tensors of a subclass."""
    return {Tensor._base.__get__, Tensor.grad.__get__, Tensor._grad.__get__}  # type: ignore


def has_torch_function_unary(argument: Any) -> bool:
    """Whether the class of an argument takes calls over."""
    return has_torch_function((argument,))


def has_torch_function_variadic(*arguments: Any) -> bool:
    """Whether the class of an argument takes calls over."""
    return has_torch_function(arguments)
