"""The random numbers of a CUDA device, by the module that PyTorch has them in."""

from __future__ import annotations

from typing import Any

from clew.cuda._missing import _absent

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def manual_seed(seed: int) -> None:
    """Does nothing but check that the seed is a number: there is no device.

    Args:
        seed: an int.

    Example:
        >>> clew.cuda.manual_seed(0)
    """
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Does nothing but check that the seed is a number: there are no devices.

    Args:
        seed: an int.

    Example:
        >>> clew.cuda.manual_seed_all(0)
    """
    int(seed)


def seed() -> None:
    """Does nothing: there is no device to seed.

    Example:
        >>> clew.cuda.seed()
    """


def seed_all() -> None:
    """Does nothing: there are no devices to seed.

    Example:
        >>> clew.cuda.seed_all()
    """


def get_rng_state_all() -> list[Any]:
    """The random states of all devices: an empty list.

    Example:
        >>> clew.cuda.get_rng_state_all()
        []
    """
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Sets the random states of all devices; there are none.

    Args:
        new_states: an empty list.

    Raises:
        AssertionError: if a state is given, for which there is no device.

    Example:
        >>> clew.cuda.set_rng_state_all([])
    """
    if list(new_states):
        _absent("set_rng_state_all")


def get_rng_state(device: Any = "cuda") -> Any:
    """The random state of a device; here it raises: there is no CUDA device.

    Args:
        device: the device's number.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.get_rng_state()
        Traceback (most recent call last):
        AssertionError: cuda.get_rng_state: clew has no CUDA device
    """
    return _absent("get_rng_state")


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Would set a device's random state; here it raises: there is no CUDA device.

    Args:
        new_state: the state.
        device: the device's number.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.set_rng_state(clew.get_rng_state())
        Traceback (most recent call last):
        AssertionError: cuda.set_rng_state: clew has no CUDA device
    """
    _absent("set_rng_state")


def initial_seed() -> int:
    """The seed of a device; here it raises: there is no CUDA device.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.initial_seed()
        Traceback (most recent call last):
        AssertionError: cuda.initial_seed: clew has no CUDA device
    """
    return _absent("initial_seed")
