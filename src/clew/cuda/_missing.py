"""What is raised where there would have to be a CUDA device."""

from __future__ import annotations

from typing import Any


def _absent(name: str) -> Any:
    raise AssertionError(f"cuda.{name}: clew has no CUDA device")


class _NeedsDevice:
    """A class whose objects only a device could have."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"cuda.{cls.__name__}: clew runs on the CPU here; there is no CUDA device"
        )
