"""Checkpoints of several processes as one file of `save`, and the other way."""

from __future__ import annotations

import argparse
import os
from typing import Any

import clew
from clew.distributed.checkpoint._layout import Entry, Index, Named, dtype_of, key_of, read_metadata
from clew.distributed.checkpoint._saving import _Files, _read, save
from clew.distributed.checkpoint.default_planner import DefaultLoadPlanner

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads all that a checkpoint has into an empty state; `dcp_to_torch_save` does that."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "_EmptyStateDictLoadPlanner: use dcp_to_torch_save, which reads a whole checkpoint"
        )


def _put(state: dict[Any, Any], path: list[Any], value: Any) -> None:
    """Puts a value at the end of a path; lists are dicts by `Index` for now.

    Of keys that are no text or number the file knows the text only.
    """
    path = [str(p) if isinstance(p, Named) else p for p in path]
    for p in path[:-1]:
        state = state.setdefault((isinstance(p, Index), p), {})
    state[isinstance(path[-1], Index), path[-1]] = _Leaf(value)


class _Leaf:
    def __init__(self, value: Any) -> None:
        self.value = value


def _with_lists(state: Any) -> Any:
    if isinstance(state, _Leaf):
        return state.value
    if state and all(is_index for is_index, _ in state):
        return [_with_lists(value) for _, value in sorted(state.items(), key=lambda item: item[0])]
    return {key: _with_lists(value) for (_, key), value in state.items()}


def _value(entry: Entry, files: Any) -> Any:
    if entry.kind != "tensor":
        return files.value(entry.parts[0].file, key_of(entry.path))
    made = clew.empty(entry.sizes, dtype=dtype_of(entry.dtype))
    _read(entry, made, files)
    return made


def dcp_to_torch_save(
    dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]
) -> None:
    """Writes a checkpoint's whole tensors into one file that `load` reads.

    Args:
        dcp_checkpoint_dir: the folder that `checkpoint.save` wrote.
        torch_save_path: the file.

    Raises:
        CheckpointException: the folder has no whole checkpoint.

    Example:
        >>> from clew.distributed.checkpoint.format_utils import dcp_to_torch_save
        >>> import os, tempfile
        >>> from clew.distributed import checkpoint
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = checkpoint.save({"w": clew.arange(3)}, checkpoint_id=folder)
        ...     dcp_to_torch_save(folder, os.path.join(folder, "one.pt"))
        ...     clew.load(os.path.join(folder, "one.pt"))
        {'w': tensor([0, 1, 2])}
    """
    folder = os.fspath(dcp_checkpoint_dir)
    files = _Files(folder)
    state: dict[Any, Any] = {}
    for entry in read_metadata(folder):
        _put(state, entry.path, _value(entry, files))
    clew.save(_with_lists(state), torch_save_path)


def torch_save_to_dcp(
    torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]
) -> None:
    """Turns a file that `clew.save` wrote into a checkpoint that any number of processes can load.

    Args:
        torch_save_path: the file, with a dict in it; loaded with `weights_only=True`, so no code in
            it runs.
        dcp_checkpoint_dir: the folder to write; made if there is none.

    Raises:
        TypeError: if the file holds no dict.

    Example:
        >>> from clew.distributed.checkpoint.format_utils import torch_save_to_dcp
        >>> import os, tempfile
        >>> from clew.distributed import checkpoint
        >>> state = {"w": clew.zeros(3, dtype=clew.int64)}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     one, many = os.path.join(folder, "one.pt"), os.path.join(folder, "many")
        ...     clew.save({"w": clew.arange(3)}, one)
        ...     torch_save_to_dcp(one, many)
        ...     checkpoint.load(state, checkpoint_id=many)
        >>> state
        {'w': tensor([0, 1, 2])}
    """
    state = clew.load(torch_save_path, weights_only=True)
    if not isinstance(state, dict):
        kind = type(state).__name__
        raise TypeError(f"torch_save_to_dcp: expected a dict in the file; got {kind}")
    save(state, checkpoint_id=dcp_checkpoint_dir, no_dist=True)


def main() -> None:
    """`python -m clew.distributed.checkpoint.format_utils MODE SOURCE TARGET`"""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=("torch_to_dcp", "dcp_to_torch"))
    parser.add_argument("src")
    parser.add_argument("dst")
    options = parser.parse_args()
    way = torch_save_to_dcp if options.mode == "torch_to_dcp" else dcp_to_torch_save
    way(options.src, options.dst)


if __name__ == "__main__":
    main()
