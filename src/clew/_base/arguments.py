"""Checks of arguments that functions written in Python share."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from clew._C import Tensor

F = TypeVar("F", bound=Callable[..., Any])


def numpy_names(function: F) -> F:
    """The function, taking NumPy's `axis` and `keepdims` too, as PyTorch's own do."""

    @wraps(function)
    def named(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            return function(*args)
        if "axis" in kwargs and "dim" not in kwargs:
            kwargs["dim"] = kwargs.pop("axis")
        if "keepdims" in kwargs and "keepdim" not in kwargs:
            kwargs["keepdim"] = kwargs.pop("keepdims")
        return function(*args, **kwargs)

    return named  # type: ignore[return-value]


def need_tensors(function: str, **arguments: Any) -> None:
    """Raises TypeError unless every argument is a Tensor.

    Functions whose time counts call it when an argument turns out to lack what tensors have.
    """
    for name, value in arguments.items():
        if not isinstance(value, Tensor):
            numbers = isinstance(value, (np.ndarray, list, tuple, int, float, complex))
            hint = "; clew.tensor() makes one of it" if numbers else ""
            raise TypeError(
                f"{function}(): argument '{name}' must be Tensor, not {type(value).__name__}{hint}"
            )


def is_structured(t: Any) -> bool:
    """Whether it is sparse or ragged (see clew._tensor.structured): the graph knows its values."""
    return hasattr(type(t), "_placeholder")


def in_graph(tensors: Iterable[Any]) -> tuple[Any, ...]:
    """The tensors with the values of structured ones in their place, which the graph knows."""
    return tuple(t._elements if is_structured(t) else t for t in tensors)


def whole(value: Any) -> int | None:
    """The value as an int if it is one or stands for one, as NumPy's integers do; None if not.

    A bool is none, as for PyTorch.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    try:
        return operator.index(value)
    except TypeError:
        return None


def need_int(function: str, name: str, value: Any) -> int:
    """The value as an int; TypeError unless it is one or stands for one."""
    if type(value) is int:
        return value
    found = whole(value)
    if found is None:
        raise TypeError(f"{function}(): argument '{name}' must be int, not {type(value).__name__}")
    return found


def need_bools(function: str, **arguments: Any) -> None:
    """Raises TypeError unless every argument is a bool; NumPy's counts as one."""
    for name, value in arguments.items():
        if value is not True and value is not False and not isinstance(value, np.bool_):
            raise TypeError(
                f"{function}(): argument '{name}' must be bool, not {type(value).__name__}"
            )


def need_string(function: str, name: str, value: Any) -> str:
    """The value; TypeError unless it is a str."""
    if not isinstance(value, str):
        raise TypeError(f"{function}(): argument '{name}' must be str, not {type(value).__name__}")
    return value


def whole_tuple(value: Any) -> tuple[int, ...] | None:
    """The items of a tuple or list as ints; None if one is none.

    Behind the first item a bool counts as 0 or 1, as for PyTorch.
    """
    if set(map(type, value)) == {int}:
        return tuple(value)
    found = tuple(int(n) if k and isinstance(n, bool) else whole(n) for k, n in enumerate(value))
    return None if None in found else found  # type: ignore[return-value]


def need_number(function: str, name: str, value: Any, *, may_be_complex: bool = False) -> Any:
    """The value as a Python number; TypeError unless it is one or holds one.

    NumPy's numbers and tensors of one element hold one, but not one that wants a gradient.
    """
    if type(value) is float or type(value) is int:
        return value
    if isinstance(value, Tensor) and value.requires_grad:
        raise TypeError(
            f"{function}(): argument '{name}' must be Number, not Tensor that requires grad, as "
            "this argument has no gradient; compute with tensors where it is to be learned, and "
            "pass item() otherwise"
        )
    if isinstance(value, (np.number, np.bool_)) or (
        isinstance(value, Tensor) and value.numel() == 1
    ):
        value = value.item()
    if not isinstance(value, (int, float, complex) if may_be_complex else (int, float)):
        raise TypeError(
            f"{function}(): argument '{name}' must be Number, not {type(value).__name__}"
        )
    return value


def wrapped_dim(function: str, dim: int, ndim: int) -> int:
    """The dimension counted from the start.

    Raises:
        TypeError: dim is not an int.
        IndexError: there is no such dimension; one of a 0-d tensor is 0 or -1.
    """
    dim = need_int(function, "dim", dim)
    n = max(ndim, 1)
    if not -n <= dim < n:
        raise IndexError(
            f"{function}: Dimension out of range (expected to be in range of [{-n}, {n - 1}], but "
            f"got {dim})"
        )
    return dim % n
