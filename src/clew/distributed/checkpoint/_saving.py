"""Saving and loading on several processes."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import clew
from clew._base.whole_files import replacing
from clew._C import Tensor
from clew.distributed import distributed_c10d as c10d
from clew.distributed.checkpoint._layout import (
    NAME,
    CheckpointException,
    Entry,
    Part,
    dtype_of,
    key_of,
    leaves,
    overlap,
    part,
    place_of,
    read_metadata,
    shown,
    write_metadata,
)
from clew.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from clew.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from clew.distributed.checkpoint.stateful import Stateful

__all__ = ["async_save", "load", "save"]


class _Ranks:
    """The processes that save or load together; one if there is no group."""

    def __init__(self, group: Any, alone: bool) -> None:
        there = c10d.is_initialized() and not alone
        self.group = (group or c10d._get_default_group()) if there else None
        self.rank = self.group.rank() if self.group else 0
        self.count = self.group.size() if self.group else 1

    def collect(self, value: Any) -> list[Any]:
        """Everybody's values, everywhere."""
        if self.group is None:
            return [value]
        all_: list[Any] = [None] * self.count
        c10d.all_gather_object(all_, value, self.group)
        return all_

    def agree(self, error: BaseException | None) -> None:
        """Raises on all where it failed on one."""
        told = self.collect(None if error is None else f"{type(error).__name__}: {error}")
        failed = [(i, text) for i, text in enumerate(told) if text]
        if failed:
            text = "; ".join(f"rank {i}: {text}" for i, text in failed[:4])
            raise CheckpointException(f"distributed.checkpoint: {text}") from error


def _folder(checkpoint_id: Any, storage: Any, name: str) -> str:
    if name == "save":
        _default("save: storage_writer", storage, FileSystemWriter)
    else:
        _default("load: storage_reader", storage, FileSystemReader)
    given = checkpoint_id if checkpoint_id is not None else getattr(storage, "path", None)
    if given is None:
        raise ValueError(f"distributed.checkpoint.{name}: give checkpoint_id, the folder")
    return os.fspath(given)


def _default(what: str, given: Any, kind: type) -> None:
    # A subclass would have methods of its own, which nothing here calls.
    if given is not None and type(given) is not kind:
        raise NotImplementedError(
            f"distributed.checkpoint.{what} must be None or a {kind.__name__}; got "
            f"{type(given).__name__}"
        )


def _plain(state_dict: dict[str, Any]) -> dict[str, Any]:
    return {k: v.state_dict() if isinstance(v, Stateful) else v for k, v in state_dict.items()}


_OF_VALUE = "value"  # the place of what is no tensor; the first rank that has it writes it


class _Piece:
    """What a process has of an entry of a checkpoint.

    Args:
        path: keys and numbers that lead to it.
        value: a tensor or another value.
    """

    def __init__(self, path: Sequence[Any], value: Any) -> None:
        self.value = value
        self.place: Any  # where it begins and its sizes; None where it is not to write
        if isinstance(value, Tensor):
            sizes, begin, own, writes = place_of(value)
            self.entry = Entry(list(path), "tensor", value.dtype.name, sizes)
            self.place = (tuple(begin), tuple(own)) if writes else None
        else:
            self.entry, self.place = Entry(list(path), "value"), _OF_VALUE

    def written(self) -> Any:
        """What goes to the file."""
        return part(self.value).contiguous() if isinstance(self.value, Tensor) else self.value


def _writers(told: list[list[Any]]) -> dict[Any, int]:
    """For each piece, which of the ranks that have it writes it; the work is spread over them.

    Args:
        told: each rank's keys with places.
    """
    owners: dict[Any, list[int]] = {}
    for rank, places in enumerate(told):
        for key, place in places:
            if place is not None:
                owners.setdefault((key, place), []).append(rank)
    return {
        piece: found[0] if piece[1] == _OF_VALUE else found[i % len(found)]
        for i, (piece, found) in enumerate(owners.items())
    }


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> list[Entry]:
    """Writes a state; every process calls it, and writes its parts of distributed tensors.

    A plain tensor counts as the same on all processes that have it, and is written by one of them.
    When any process ends meanwhile, the checkpoint that was in the folder before stays whole.

    Args:
        state_dict: nested dicts and lists of tensors and other values; what has `state_dict()` and
            `load_state_dict()` is asked for its state.
        checkpoint_id: the folder; is made.
        storage_writer: a FileSystemWriter, instead of a folder.
        planner: must be None or a DefaultSavePlanner.
        process_group: a group; that of all processes if None.
        no_dist: this process saves by itself.

    Returns:
        What was written.

    Raises:
        CheckpointException: it failed on some rank; raised on all.

    Example:
        >>> from clew.distributed.checkpoint import load, save
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = save({"w": clew.arange(3)}, checkpoint_id=folder)
        ...     state = {"w": clew.zeros(3, dtype=clew.int64)}
        ...     load(state, checkpoint_id=folder)
        >>> state["w"]
        tensor([0, 1, 2])
    """
    folder = _folder(checkpoint_id, storage_writer, "save")
    _default("save: planner", planner, DefaultSavePlanner)
    ranks = _Ranks(process_group, no_dist)
    # Before the first exchange, after which others may write already.
    keep = not getattr(storage_writer, "overwrite", True)
    used = keep and os.path.isdir(folder) and bool(os.listdir(folder))
    error: BaseException | None = None
    has: dict[str, _Piece] = {}
    try:
        has = {key_of(path): _Piece(path, value) for path, value in leaves(_plain(state_dict))}
    except Exception as caught:
        error = caught
    told = ranks.collect((secrets.token_hex(8), [(k, p.place) for k, p in has.items()]))
    token = told[0][0]
    writers = _writers([places for _, places in told])
    entries: dict[str, Entry] = {}
    mine = f"{token}-{ranks.rank}.pt"
    try:
        if error is not None:
            raise error
        os.makedirs(folder, exist_ok=True)
        if used:
            raise FileExistsError(f"{folder!r} is not empty, and overwrite is False")
        data: dict[str, Any] = {}
        for key, piece in has.items():
            if piece.place is not None and writers[key, piece.place] == ranks.rank:
                data[key] = piece.written()
                place = ([], []) if piece.place == _OF_VALUE else map(list, piece.place)
                piece.entry.parts.append(Part(mine, *place))
            entries[key] = piece.entry
        if data:
            with replacing(os.path.join(folder, mine)) as file:
                clew.save(data, file)
    except Exception as caught:
        error = caught
    ranks.agree(error)
    together: dict[str, Entry] = {}
    for found in ranks.collect(entries):
        for key, entry in found.items():
            if key in together:
                together[key].parts.extend(entry.parts)
            else:
                together[key] = entry
    error = None
    try:
        if ranks.rank == 0:
            write_metadata(folder, list(together.values()))
            for name in os.listdir(folder):
                if name != NAME and not name.startswith(token) and _is_ours(name):
                    os.unlink(os.path.join(folder, name))
    except Exception as caught:
        error = caught
    ranks.agree(error)
    return list(together.values())


def _is_ours(name: str) -> bool:
    token, _, rest = name.partition("-")
    number = rest.removesuffix(".pt")
    return len(token) == 16 and rest.endswith(".pt") and number.isdigit()


def async_save(state_dict: dict[str, Any], **options: Any) -> Future[list[Entry]]:
    """Saves like `save`, and gives the result in a `concurrent.futures.Future`.

    Args:
        state_dict: as of `save`.
        options: as of `save`.

    Returns:
        A Future that is complete: unlike PyTorch's, the call writes everything before it returns.

    Example:
        >>> from clew.distributed.checkpoint import async_save
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     future = async_save({"w": clew.ones(2)}, checkpoint_id=folder)
        >>> len(future.result())
        1
    """
    done: Future[list[Entry]] = Future()
    done.set_result(save(state_dict, **options))
    return done


class _Files:
    """Files of a checkpoint that were opened."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.known: tuple[str, Any] = ("", {})

    def value(self, name: str, key: str) -> Any:
        """What a file has under a key."""
        if self.known[0] != name:
            path = os.path.join(self.folder, name)
            self.known = name, clew.load(path, mmap=True)
        data = self.known[1]
        if not isinstance(data, dict) or key not in data:
            raise CheckpointException(f"distributed.checkpoint: {name} lacks an entry")
        return data[key]


def _read(entry: Entry, target: Tensor, files: _Files) -> None:
    """Fills this process's part of a tensor."""
    sizes, begin, own, _ = place_of(target)
    if sizes != entry.sizes:
        raise CheckpointException(
            f"distributed.checkpoint: {shown(entry.path)} has the sizes {tuple(entry.sizes)} in "
            f"the checkpoint; the state's tensor has {tuple(sizes)}"
        )
    into = part(target)
    filled = 0
    for piece in entry.parts:
        both = overlap(begin, own, piece)
        if both is None:
            continue
        value = files.value(piece.file, key_of(entry.path))
        if not isinstance(value, Tensor) or list(value.shape) != piece.sizes:
            raise CheckpointException(
                f"distributed.checkpoint: {piece.file} is not what .metadata says of "
                f"{shown(entry.path)}"
            )
        with clew.no_grad():
            into[both[0]].copy_(value[both[1]]) if both[0] else into.copy_(value)
        filled += value[both[1]].numel() if both[1] else 1
    if filled != into.numel():
        raise CheckpointException(
            f"distributed.checkpoint: {shown(entry.path)}: the checkpoint has {filled} of "
            f"{into.numel()} elements"
        )


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Fills a state from a checkpoint, whatever number of processes wrote it; all call it.

    Args:
        state_dict: tensors, plain or distributed, are filled in place; other values are replaced;
            what has `load_state_dict()` is given its state.
        checkpoint_id: the folder.
        storage_reader: a FileSystemReader, instead of a folder.
        planner: None, or a DefaultLoadPlanner, which may allow entries that the checkpoint lacks.
        process_group: a group; that of all processes if None.
        no_dist: this process loads by itself.

    Raises:
        CheckpointException: it failed on some rank; raised on all.

    Example:
        >>> from clew.distributed.checkpoint import load, save
        >>> import tempfile
        >>> state = {"w": clew.zeros(2), "step": 0}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = save({"w": clew.ones(2), "step": 7}, checkpoint_id=folder)
        ...     load(state, checkpoint_id=folder)
        >>> state
        {'w': tensor([1., 1.]), 'step': 7}
    """
    folder = _folder(checkpoint_id, storage_reader, "load")
    _default("load: planner", planner, DefaultLoadPlanner)
    ranks = _Ranks(process_group, no_dist)
    error: BaseException | None = None
    try:
        _fill(state_dict, folder, bool(getattr(planner, "allow_partial_load", False)))
    except Exception as caught:
        error = caught
    ranks.agree(error)


def _fill(state_dict: dict[str, Any], folder: str, partial: bool) -> None:
    known = {key_of(e.path): e for e in read_metadata(folder)}
    files = _Files(folder)
    asked = _plain(state_dict)
    wanted = []
    for path, value in leaves(asked):
        entry = known.get(key_of(path))
        if entry is None:
            if partial:
                continue
            raise CheckpointException(
                f"distributed.checkpoint: {shown(path)} is not in the checkpoint in {folder!r}"
            )
        if (entry.kind == "tensor") is not isinstance(value, Tensor):
            raise CheckpointException(
                f"distributed.checkpoint: {shown(path)} is a {entry.kind} in the checkpoint"
            )
        wanted.append((entry, path, value))
    # File by file, so that each is opened once.
    by_file = sorted(wanted, key=lambda w: w[0].parts[0].file if w[0].parts else "")
    for entry, path, value in by_file:
        if isinstance(value, Tensor):
            dtype_of(entry.dtype)
            _read(entry, value, files)
        else:
            _put(asked, path, files.value(entry.parts[0].file, key_of(path)))
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(asked[key])
        else:
            state_dict[key] = asked[key]


def _put(state: Any, path: Sequence[Any], value: Any) -> None:
    for p in path[:-1]:
        state = state[p]
    if isinstance(state, tuple):
        raise CheckpointException(
            f"distributed.checkpoint: {shown(path)} is in a tuple, which cannot be filled; use "
            "a list"
        )
    state[path[-1]] = value
