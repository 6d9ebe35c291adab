"""Models with fewer bits.

>>> model = clew.nn.Sequential(clew.nn.Linear(4, 4))
>>> quantized = clew.ao.quantization.quantize_dynamic(model, {clew.nn.Linear})
>>> type(quantized[0]).__name__, quantized[0].weight().dtype
('Linear', clew.int8)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import nn as nn
    from . import quantization as quantization

__all__ = ["nn", "quantization"]


if not TYPE_CHECKING:  # else checkers take any name to be there

    def __getattr__(name: str) -> Any:
        import importlib

        if name in __all__:
            return importlib.import_module(f"clew.ao.{name}")
        from clew._namespace import missing_name

        raise missing_name(__name__, name, __all__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"Any", "TYPE_CHECKING", "annotations"})
