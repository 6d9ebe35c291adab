"""What one exported graph consists of: plain records, without a reference to the engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


class Location(Protocol):
    """Where in a program a node was made: the line, as the user wrote it. Equal ones are equal."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int | None: ...
    @property
    def function(self) -> str: ...
    @property
    def source(self) -> str: ...
    def __hash__(self) -> int: ...


@dataclass(slots=True)
class Saved:
    """A tensor that a node keeps for backward; equal storages are one memory, counted once."""

    role: str  # "input", "other", "result" ...
    shape: tuple[int, ...]
    dtype: str  # "float32"
    nbytes: int
    storage: int


@dataclass(slots=True)
class GraphNode:
    """One node of the recorded graph."""

    index: int  # position in Graph.nodes, which are in order of creation (leaves first)
    name: str  # "MulBackward0", "AccumulateGrad", "CopySlices", a custom Function's name
    op: str  # "mul", "linear", ...; "leaf" for AccumulateGrad
    sequence: int
    # One per input of the op: (index of the node that made it, which of its outputs); None where
    # no gradient flows.
    inputs: list[tuple[int, int] | None] = field(default_factory=list)
    outputs: list[tuple[tuple[int, ...], str]] = field(default_factory=list)  # (shape, dtype)
    saved: list[Saved] = field(default_factory=list)
    location: Location | None = None
    module: str | None = None  # "blocks.3.attn.qkv", "" the root module, None outside any
    module_type: str | None = None  # the class's name
    label: str | None = None  # a leaf's: the parameter's name, "blocks.3.attn.qkv.weight"
    flops: int | None = None


class GraphLike(Protocol):
    """What the pictures need of a graph: its nodes, and where gradient enters."""

    @property
    def nodes(self) -> list[GraphNode]: ...
    @property
    def roots(self) -> list[tuple[int, int]]: ...
