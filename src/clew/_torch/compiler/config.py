"""Switches of PyTorch's compiler: programs may set them, and nothing reads them."""

from __future__ import annotations

from typing import Any

cache_key_tag = ""
dynamic_sources = ""
enable_cpp_symbolic_shape_guards = False
force_disable_caches = False
job_id: Any = None
unbacked_sources = ""
