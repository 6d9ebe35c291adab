"""Notes the shape and dtype of every step's result."""

from __future__ import annotations

from typing import Any, NamedTuple

from clew import Tensor
from clew.fx import Interpreter
from clew.fx.node import map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor besides its values."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    from clew import contiguous_format

    layout = contiguous_format if include_contiguity and result.is_contiguous() else None
    strides = tuple(result.stride())
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, strides, layout, False, {}
    )


class ShapeProp(Interpreter):
    """Runs a graph; each step's `meta["tensor_meta"]` says what its result is like."""

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)

    def run_node(self, n: Any) -> Any:
        """Runs a step and notes what its result is like."""
        result = super().run_node(n)
        found = []

        def note(value: Any) -> Any:
            if isinstance(value, Tensor):
                found.append(value)
                return _extract_tensor_metadata(value)
            return value

        meta = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the graph on inputs.

        Args:
            args: the inputs.
        """
        return super().run(*args)
