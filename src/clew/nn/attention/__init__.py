"""Choices for scaled_dot_product_attention, and masks that are made when they are used."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import bias as bias

if TYPE_CHECKING:
    from . import flex_attention as flex_attention

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """Kinds of attention kernels in PyTorch; here MATH is the one there is."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Restricts attention to given kernels: MATH must be among them, others do not exist here.

    Args:
        backends: one SDPBackend or several.
        set_priority: accepted; there is nothing to order.

    >>> attention = clew.nn.attention
    >>> with attention.sdpa_kernel(attention.SDPBackend.MATH):
    ...     x = clew.ones(1, 1, 2, 4)
    ...     out = clew.nn.functional.scaled_dot_product_attention(x, x, x)
    """
    given = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not given or not all(isinstance(b, SDPBackend) for b in given):
        raise AssertionError("sdpa_kernel: backends must be an SDPBackend or a list of them")
    if SDPBackend.MATH not in given and SDPBackend.FLASH_ATTENTION not in given:
        raise RuntimeError("sdpa_kernel: no available kernel; add SDPBackend.MATH")
    yield


if not TYPE_CHECKING:  # else checkers take any name to be there

    def __getattr__(name: str) -> Any:
        if name == "flex_attention":
            import importlib

            return importlib.import_module(f"{__name__}.flex_attention")
        from clew._namespace import missing_name

        raise missing_name(__name__, name, __dir__())


def __dir__() -> list[str]:
    return sorted({*globals(), "flex_attention"} - {"Any", "TYPE_CHECKING", "annotations"})
