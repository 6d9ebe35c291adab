"""The version of the interface, which also compares with tuples."""

from __future__ import annotations

from clew._cli.run import TORCH_VERSION
from clew._cli.run import TorchVersion as TorchVersion

__version__ = TorchVersion(TORCH_VERSION + "+clew")
