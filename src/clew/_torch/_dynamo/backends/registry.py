"""Backends of `compile` that programs register, by name."""

from __future__ import annotations

from typing import Any

from clew._torch._dynamo import list_backends as list_backends
from clew._torch._dynamo import lookup_backend as lookup_backend
from clew._torch._dynamo import register_backend as register_backend

CompilerFn = Any
register_debug_backend = register_experimental_backend = register_backend
