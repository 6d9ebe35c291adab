"""Chains of data pipes as nested dicts."""

from __future__ import annotations

from typing import Any

from clew._torch.utils.data.datapipes.datapipe import _Pipe, pipes_of


def traverse_dps(datapipe: Any) -> dict[int, Any]:
    """{id of the pipe: (the pipe, the same of those that it reads from)}."""
    if not isinstance(datapipe, _Pipe):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)}")
    inner: dict[int, Any] = {}
    sources = [p for value in vars(datapipe).values() for p in _directly(value)]
    for source in sources:
        inner.update(traverse_dps(source))
    return {id(datapipe): (datapipe, inner)}


def _directly(value: Any) -> list[Any]:
    """The first pipes on the way into a value."""
    if isinstance(value, _Pipe):
        return [value]
    holder = type("Holder", (_Pipe,), {})()
    holder.__dict__["value"] = value
    found = pipes_of(holder)[1:]
    beneath = {id(p) for f in found for p in pipes_of(f)[1:]}
    return [p for p in found if id(p) not in beneath]


traverse = traverse_dps
