"""Names of argument types, as PyTorch's annotations use them."""

from __future__ import annotations

from typing import Any, Union

_size_1_t = Union[int, tuple[int]]  # noqa: UP007
_size_2_t = Union[int, tuple[int, int]]  # noqa: UP007
_size_3_t = Union[int, tuple[int, int, int]]  # noqa: UP007
_size_any_t = Union[int, tuple[int, ...]]  # noqa: UP007
_size_any_opt_t = Any
_size_2_opt_t = Any
_size_3_opt_t = Any
_ratio_2_t = Union[float, tuple[float, float]]  # noqa: UP007
_ratio_3_t = Union[float, tuple[float, float, float]]  # noqa: UP007
_ratio_any_t = Union[float, tuple[float, ...]]  # noqa: UP007
