"""What an export to ONNX raises."""

from __future__ import annotations

from clew.export._errors import ExportError

__all__ = ["OnnxExporterError"]


class OnnxExporterError(ExportError):
    """A program cannot be written as ONNX, or the file that was written is not right."""
