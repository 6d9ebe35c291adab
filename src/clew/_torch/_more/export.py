"""Dataclasses as arguments of exported programs."""

from __future__ import annotations

from clew.utils._pytree import register_dataclass as _register


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Makes a dataclass a container of its fields; see utils._pytree.register_dataclass."""
    _register(cls, serialized_type_name=serialized_type_name)
