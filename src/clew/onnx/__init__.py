"""Models as ONNX files, and ONNX files as modules. Needs the onnx package: `clew[onnx]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.onnx._errors import OnnxExporterError
from clew.onnx._export import ONNXProgram, export
from clew.onnx._load import load

if TYPE_CHECKING:
    from . import symbolic_helper as symbolic_helper

__all__ = [
    "ONNXProgram",
    "OnnxExporterError",
    "export",
    "is_in_onnx_export",
    "load",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]

producer_name = "clew"


class OperatorExportTypes:
    """How operations that ONNX lacks would be written."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode:
    """Which form of a model would be exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


def is_in_onnx_export() -> bool:
    """Whether a program is being recorded, as `export` does first.

    Example:
        >>> clew.onnx.is_in_onnx_export()
        False
    """
    from clew.export._symbols import _recorder

    return bool(_recorder)


def is_onnxrt_backend_supported() -> bool:
    """False."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Accepts a rule of the older exporter, as libraries offer when they are imported.

    Exports here do not go through such rules: an operation that cannot be written raises when
    `export` meets it, whether it has a rule or not.

    Args:
        symbolic_name: the operation, as "namespace::name".
        symbolic_fn: the rule.
        opset_version: of ONNX.

    Raises:
        ValueError: for a name without a namespace.

    Example:
        >>> clew.onnx.register_custom_op_symbolic("mine::twice", lambda g, x: x, 18)
    """
    namespace, _, operation = symbolic_name.partition("::")
    if not namespace or not operation:
        raise ValueError(
            f"onnx.register_custom_op_symbolic: the name is 'namespace::operation', "
            f"got {symbolic_name!r}"
        )


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Does nothing: there are no such rules.

    Args:
        symbolic_name: the operation, as "namespace::name".
        opset_version: of ONNX.

    Example:
        >>> clew.onnx.unregister_custom_op_symbolic("mine::twice", 18)
    """


if not TYPE_CHECKING:  # else checkers take any name to be there

    def __getattr__(name: str) -> Any:
        if name == "symbolic_helper" or name.startswith("symbolic_opset"):
            import importlib

            return importlib.import_module("clew.onnx.symbolic_helper")
        raise AttributeError(f"module 'clew.onnx' has no attribute {name!r}")
