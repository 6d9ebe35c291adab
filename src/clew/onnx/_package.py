"""The onnx package, and what clew writes of its own into a file."""

from __future__ import annotations

from typing import Any

__all__ = ["PARAMETERS", "STATE", "need_onnx"]

# Metadata of a file that clew wrote: which of its initializers are parameters.
PARAMETERS = "clew.parameters"
# Which of its initializers a run changes, and the outputs that hold their new values.
STATE = "clew.state"


def need_onnx() -> Any:
    """The onnx package.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import onnx
    except ImportError as e:
        raise ImportError("ONNX files need the onnx package: pip install onnx") from e
    return onnx
