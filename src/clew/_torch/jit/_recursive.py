"""Types of modules that were compiled: none are."""

from __future__ import annotations

from types import SimpleNamespace

concrete_type_store = SimpleNamespace(type_store={}, methods_compiled=set())
