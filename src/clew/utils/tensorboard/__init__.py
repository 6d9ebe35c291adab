"""Writing what TensorBoard shows, through the tensorboard package."""

from __future__ import annotations

from ._file_writer import FileWriter as FileWriter
from ._writer import SummaryWriter as SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
