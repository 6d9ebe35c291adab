"""What goes wrong with a checkpoint of several processes."""

from __future__ import annotations

from typing import Any


class CheckpointException(BaseException):
    """The failures of some ranks. clew's functions raise what a rank met, as it is.

    Args:
        msg: what was done.
        failures: for each rank that failed its exception, alone or in a tuple.
    """

    def __init__(self, msg: str, failures: dict[int, Any]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, Any]:
        """The failures, by rank."""
        return self._failures

    def __str__(self) -> str:
        each = (
            f"\n  rank {rank}: {error[0] if isinstance(error, tuple) else error}"
            for rank, error in self._failures.items()
        )
        return f"CheckpointException ranks:{list(self._failures)}" + "".join(each)
