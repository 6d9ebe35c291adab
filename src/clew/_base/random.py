"""The default random number generator: seeding it, and keeping and restoring its state."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from clew._C import Generator, Tensor, default_generator

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


def manual_seed(seed: Any) -> Generator:
    """Starts the default generator's stream that belongs to a seed.

    Args:
        seed: an int in [-2**63, 2**64).

    Returns:
        The default generator.

    Example:
        >>> generator = clew.manual_seed(0)
        >>> clew.rand(2)
        tensor([0.4963, 0.7682])
    """
    try:
        whole = int(seed)
    except (TypeError, ValueError) as e:
        raise type(e)(f"manual_seed: seed must be an int; got {seed!r}") from None
    return _start(whole)


def _start(seed: int) -> Generator:
    """What tools watch, by whatever name manual_seed() was called."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Starts the default generator from a seed that the system gives, and returns that seed.

    Example:
        >>> clew.seed() == clew.initial_seed()
        True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator started from.

    Example:
        >>> generator = clew.manual_seed(7)
        >>> clew.initial_seed()
        7
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state, as a uint8 tensor.

    Example:
        >>> state = clew.get_rng_state()
        >>> a = clew.rand(2)
        >>> clew.set_rng_state(state)
        >>> clew.equal(a, clew.rand(2))
        True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Puts the default generator into a state that `get_rng_state` returned.

    Args:
        new_state: a uint8 tensor.

    Example:
        >>> clew.set_rng_state(clew.get_rng_state())
    """
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(
    devices: Any = None, enabled: bool = True, device_type: str | None = None
) -> Iterator[None]:
    """Gives the default generator its state back when the `with` block ends.

    Args:
        devices: accelerators to include; there are none, so only None or an empty list works.
        enabled: False makes the block do nothing.
        device_type: accepted as None, "cpu" or "cuda"; only the CPU's generator exists.

    Example:
        >>> generator = clew.manual_seed(0)
        >>> with clew.random.fork_rng():
        ...     inside = clew.rand(1)
        >>> clew.equal(inside, clew.rand(1))
        True
    """
    if devices:
        raise RuntimeError(f"fork_rng: there are no accelerators here; got devices={devices!r}")
    if device_type not in (None, "cpu", "cuda"):
        raise RuntimeError(f"fork_rng: unknown device type {device_type!r}")
    if not enabled:
        yield
        return
    state = default_generator.get_state()
    try:
        yield
    finally:
        default_generator.set_state(state)
