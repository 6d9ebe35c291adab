"""Small helpers of the modules: one number repeated to a tuple, checks of arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from clew._base import arguments as _arguments


def ntuple(n: int, value: Any) -> tuple[Any, ...]:
    """A number repeated n times; a sequence as a tuple.

    Args:
        n: how often.
        value: the number or sequence.

    Returns:
        a tuple.

    Example:
        >>> from clew.nn.modules.utils import ntuple
        >>> ntuple(2, 3), ntuple(2, [4, 5])
        ((3, 3), (4, 5))
    """
    return tuple(value) if isinstance(value, Iterable) else (value,) * n


_LAYERS_MOST = 1 << 16  # more is a mistake, which would end with the memory


def check_layers(owner: str, num_layers: int) -> None:
    """Refuses a number of layers that no machine holds.

    Args:
        owner: the name of what is to have them.
        num_layers: how many.

    Raises:
        ValueError: where there are more than 65,536.

    Example:
        >>> from clew.nn.modules.utils import check_layers
        >>> check_layers("GRU", 10**9)
        Traceback (most recent call last):
        ValueError: GRU: num_layers must be at most 65536; got 1000000000
    """
    if num_layers > _LAYERS_MOST:
        raise ValueError(f"{owner}: num_layers must be at most {_LAYERS_MOST}; got {num_layers}")


def check_whole(module: Any, **sizes: Any) -> None:
    """Refuses arguments of a module that are no whole numbers, by the names that it gives them.

    Args:
        module: whose arguments they are.
        sizes: whole numbers, or tuples of them, by name.

    Raises:
        TypeError: where one is no whole number.

    Example:
        >>> from clew.nn.modules.utils import check_whole
        >>> check_whole(nn.ReLU(), size=1.5)
        Traceback (most recent call last):
        TypeError: ReLU: size must be an int; got float 1.5
    """
    for name, size in sizes.items():
        for one in size if isinstance(size, tuple) else (size,):
            if not hasattr(type(one), "__index__"):
                raise TypeError(
                    f"{type(module).__name__}: {name} must be an int; got {type(one).__name__} "
                    f"{one!r}"
                )


def check_dims(module: Any, input: Any, *allowed: int) -> None:
    """Refuses an input that is no tensor, or one with another number of dims.

    Args:
        module: whose input it is.
        input: what was given.
        allowed: how many dims it may have.

    Raises:
        TypeError: where it is no tensor.
        ValueError: where it has another number of dims.

    Example:
        >>> from clew.nn.modules.utils import check_dims
        >>> check_dims(nn.ReLU(), clew.ones(2), 3, 4)
        Traceback (most recent call last):
        ValueError: ReLU: expected 3D or 4D input (got 1D input of shape [2])
    """
    try:
        fits = input.dim() in allowed
    except AttributeError:
        _arguments.need_tensors(type(module).__name__, input=input)
        raise
    if not fits:
        expected = " or ".join(f"{n}D" for n in allowed)
        raise ValueError(
            f"{type(module).__name__}: expected {expected} input (got {input.dim()}D input of "
            f"shape {list(input.shape)})"
        )


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    def parse(x: Any) -> tuple[Any, ...]:
        return ntuple(n, x)

    parse.__name__ = name
    return parse


def _single(x: Any) -> tuple[Any, ...]:
    return ntuple(1, x)


def _pair(x: Any) -> tuple[Any, ...]:
    return ntuple(2, x)


def _triple(x: Any) -> tuple[Any, ...]:
    return ntuple(3, x)


def _quadruple(x: Any) -> tuple[Any, ...]:
    return ntuple(4, x)


def _reverse_repeat_tuple(t: Any, n: int) -> tuple[Any, ...]:
    return tuple(x for x in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: Any, prefix: str) -> None:
    """Takes a prefix off a state dict's keys, in place.

    Args:
        state_dict: the dict.
        prefix: for example "module.".

    >>> state = {'module.w': 1}
    >>> clew.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, 'module.')
    >>> state
    {'w': 1}
    """
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        for key in list(metadata):
            if not key:
                continue
            if key == prefix.rstrip(".") or key.startswith(prefix):
                metadata[key[len(prefix) :]] = metadata.pop(key)
