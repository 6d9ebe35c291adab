"""Help for tests: comparisons that explain themselves, and tensors to compare."""

from __future__ import annotations

from ._comparison import assert_allclose as assert_allclose
from ._comparison import assert_close as assert_close
from ._creation import make_tensor as make_tensor
from ._file_check import FileCheck as FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
