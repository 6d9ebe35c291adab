"""What a checkpoint of several processes consists of.

Each process writes the tensors, and parts of tensors, that are its to one file under a name of this
save alone. When all are on the disk one process puts `.metadata` in its place, which says where
everything is, and only then are files of earlier saves deleted. So a process that ends at any
moment leaves the last whole checkpoint.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import clew
from clew._base.whole_files import replacing
from clew._C import Tensor
from clew.distributed.tensor import DTensor, Partial, Replicate
from clew.distributed.tensor._api import part_of
from clew.distributed.tensor._redistribute import local_sizes

VERSION = 1
NAME = ".metadata"


class CheckpointException(RuntimeError):
    """A checkpoint could not be written or read; says on which ranks, and why."""


@dataclass
class Part:
    """A part of a tensor in a file.

    Args:
        file: its name in the folder.
        begin: where the part begins in the whole.
        sizes: of the part.
    """

    file: str
    begin: list[int]
    sizes: list[int]


@dataclass
class Entry:
    """A tensor, or another value.

    Args:
        path: keys and numbers that lead to it.
        kind: "tensor" or "value".
        dtype: of a tensor.
        sizes: of the whole tensor.
        parts: where it is; of a value the file alone.
    """

    path: list[Any]
    kind: str
    dtype: str = ""
    sizes: list[int] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)


class Index(int):
    """A place in a list, among keys that may be numbers too."""


class Named(str):
    """A key of a dict that is no text or number, as `.metadata` has it: its text.

    Args:
        text: of the key.
        kind: the name of the key's type.
    """

    kind: str

    def __new__(cls, text: str, kind: str) -> Named:
        made = super().__new__(cls, text)
        made.kind = kind
        return made


def leaves(state: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Everything in nested dicts, lists and tuples, with the keys that lead to it."""
    if isinstance(state, dict) and state:
        for key, value in state.items():
            yield from leaves(value, (*path, key))
    elif isinstance(state, (list, tuple)) and any(isinstance(v, (Tensor, dict)) for v in state):
        for i, value in enumerate(state):
            yield from leaves(value, (*path, Index(i)))
    else:
        yield path, state


def key_of(path: Any) -> str:
    """A path as one word; keys that differ in type differ."""
    return json.dumps([[_kind(p).replace("Index", "int"), str(p)] for p in path])


def _kind(p: Any) -> str:
    return p.kind if isinstance(p, Named) else type(p).__name__


def shown(path: Any) -> str:
    """A path for messages."""
    return ".".join(str(p) for p in path)


def place_of(x: Tensor) -> tuple[list[int], list[int], list[int], bool]:
    """Sizes of the whole, where this process's part begins, the part's, and whether it is the one
    that writes it.
    """
    if not isinstance(x, DTensor):
        return list(x.shape), [0] * x.ndim, list(x.shape), True
    if any(isinstance(p, Partial) for p in x._placements):
        raise ValueError(
            "distributed.checkpoint: a tensor that is partial has no values that one process knows;"
            f" redistribute() it first; it lies as {list(x._placements)}"
        )
    place = x._mesh.get_coordinate() or [0] * x._mesh.ndim
    sizes, begin = local_sizes(x._sizes, x._mesh, x._placements, place)
    first = all(not isinstance(p, Replicate) or place[i] == 0 for i, p in enumerate(x._placements))
    return list(x._sizes), begin, sizes, first and math.prod(sizes) > 0


def part(x: Tensor) -> Tensor:
    """This process's part, without a record."""
    return part_of(x).detach() if isinstance(x, DTensor) else x.detach()


# What JSON gives back as it was; other keys are known by their text.
_KEYS: dict[str, Any] = {"int": int, "Index": Index}
_KEYS |= dict.fromkeys(("str", "float", "bool", "NoneType"), lambda p: p)


def _told(p: Any) -> list[Any]:
    return [_kind(p), p if _kind(p) in _KEYS else str(p)]


def _key(kind: str, p: Any) -> Any:
    return _KEYS[kind](p) if kind in _KEYS else Named(str(p), kind)


def write_metadata(folder: str, entries: list[Entry]) -> None:
    """Makes a checkpoint the current one."""
    told = {
        "version": VERSION,
        "entries": [
            {
                "path": [_told(p) for p in e.path],
                "kind": e.kind,
                "dtype": e.dtype,
                "sizes": e.sizes,
                "parts": [[p.file, p.begin, p.sizes] for p in e.parts],
            }
            for e in entries
        ],
    }
    with replacing(os.path.join(folder, NAME), "w") as file:
        json.dump(told, file)


def read_metadata(folder: str) -> list[Entry]:
    """The current checkpoint's entries.

    Raises:
        CheckpointException: there is none, or it is damaged.
    """
    path = os.path.join(folder, NAME)
    try:
        with open(path) as file:
            told = json.load(file)
        if told["version"] != VERSION:
            raise CheckpointException(
                f"distributed.checkpoint: {path}: version {told['version']}; expected {VERSION}"
            )
        made = []
        for e in told["entries"]:
            keys = [_key(kind, p) for kind, p in e["path"]]
            parts = []
            for name, begin, sizes in e["parts"]:
                if os.path.basename(name) != name or not name:
                    raise ValueError(f"the file name {name!r}")
                parts.append(Part(name, [int(b) for b in begin], [int(s) for s in sizes]))
            made.append(Entry(keys, e["kind"], e["dtype"], [int(s) for s in e["sizes"]], parts))
        return made
    except FileNotFoundError:
        raise CheckpointException(
            f"distributed.checkpoint: there is no checkpoint in {folder!r}"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointException(
            f"distributed.checkpoint: {path} is damaged: {type(error).__name__}: {error}"
        ) from None


def overlap(
    begin: list[int], sizes: list[int], part: Part
) -> tuple[tuple[slice, ...], tuple[slice, ...]] | None:
    """The elements that a region and a part have in common: within the region, and within the part.

    Args:
        begin: where the region begins in the whole.
        sizes: of the region.
        part: the part.
    """
    ours, theirs = [], []
    for b, s, pb, ps in zip(begin, sizes, part.begin, part.sizes):
        low, high = max(b, pb), min(b + s, pb + ps)
        if low >= high:
            return None
        ours.append(slice(low - b, high - b))
        theirs.append(slice(low - pb, high - pb))
    return tuple(ours), tuple(theirs)


def dtype_of(name: str) -> Any:
    """A dtype by its name.

    Raises:
        CheckpointException: there is none.
    """
    found = getattr(clew, name, None)
    if not isinstance(found, clew.dtype):
        raise CheckpointException(f"distributed.checkpoint: there is no dtype {name!r}")
    return found
