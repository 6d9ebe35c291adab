"""What has a state of its own."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

__all__ = ["Stateful"]


@runtime_checkable
class Stateful(Protocol):
    """An object that gives its state, and takes it back.

    Example:
        >>> from clew.distributed.checkpoint import Stateful
        >>> isinstance(nn.Linear(2, 1), Stateful), isinstance(clew.ones(1), Stateful)
        (True, False)
    """

    def state_dict(self) -> dict[str, Any]:
        """Its state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any:
        """Takes over a state; what it returns is not used.

        Args:
            state_dict: what `state_dict()` gave.
        """
        ...
