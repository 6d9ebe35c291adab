"""Tensors in memory that several processes map, and how they are sent between processes.

Python's own `multiprocessing` pickles what it sends with a ForkingPickler. That one is told to send
in place of a storage's bytes a handle to shared memory.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn

from clew import _C
from clew._C import Tensor
from clew._tensor import pickling as _pickle

__all__ = ["STRATEGIES", "get_strategy", "refuse_non_leaf", "register", "set_strategy", "share"]

STRATEGIES = frozenset(("file_descriptor", "file_system"))
# A message of a forkserver carries 256 descriptors at most, and some are its own.
_MOST_WITH_FORKSERVER = 200
_strategy = "file_descriptor"
_count = 0
_watching = False  # whether names are counted through forks and given back at exit


def get_strategy() -> str:
    """How tensors shared from now on are reached by other processes."""
    return _strategy


def set_strategy(new_strategy: str) -> None:
    """Chooses it."""
    if new_strategy not in STRATEGIES:
        raise ValueError(
            f"set_sharing_strategy: the strategy must be one of {sorted(STRATEGIES)}; got "
            f"{new_strategy!r}"
        )
    global _strategy
    _strategy = new_strategy
    if new_strategy == "file_system":
        # Now, so that processes forked from here report to the same keeper of names: one of their
        # own would end with them and remove what they sent and nobody has received yet.
        _watch_names()


def share(tensor: Tensor) -> None:
    """Moves the storage of a tensor, and so all tensors over it, to shared memory."""
    if _C._is_shared(tensor):
        return
    # Memory without bytes is no file, so that there is no name to watch.
    if _strategy == "file_descriptor" or tensor.is_meta or not tensor.untyped_storage().nbytes():
        _C._share(tensor, "", 0)
        return
    global _count
    keeper, tracker = _watch_names()
    _count += 1
    name = f"/clew-{os.getpid()}-{_count}-{os.urandom(6).hex()}"
    tracker.register(name, "shared_memory")
    try:
        _C._share(tensor, name, keeper)
    except BaseException:
        tracker.unregister(name, "shared_memory")
        raise


def _watch_names() -> tuple[int, Any]:
    """The process that removes the names which killed processes leave: its number, and its API.

    Python starts it with the first name and lets all children report to it; it outlives them.
    """
    from multiprocessing import resource_tracker, util

    keeper = _keeper()
    global _watching
    if not _watching:
        _watching = True
        os.register_at_fork(before=_C._shared_before_fork, after_in_child=_C._shared_after_fork)
        util.Finalize(None, _at_exit, exitpriority=0)
        util.register_after_fork(share, lambda _: util.Finalize(None, _at_exit, exitpriority=0))
    _forget_removed(keeper, resource_tracker)
    return keeper, resource_tracker


def _keeper() -> int:
    from multiprocessing import resource_tracker

    descriptor: Any = resource_tracker.getfd()
    return os.fstat(descriptor).st_ino


def _forget_removed(keeper: int, tracker: Any) -> None:
    for name, kept_by in _C._removed_names():
        if kept_by == keeper:
            tracker.unregister(name, "shared_memory")


def _at_exit() -> None:
    from multiprocessing import resource_tracker

    _C._give_names_back()
    _forget_removed(_keeper(), resource_tracker)


# ---- sending -------------------------------------------------------------------------------------


def register(pickler: Any) -> None:
    """Has `multiprocessing`, whose pickler this is, send storages as handles."""
    pickler.register(_pickle._Storage, _reduce_storage)
    pickler.register(_pickle._Leaf, _reduce_leaf)
    pickler.register(_pickle._NonLeaf, _reduce_non_leaf)


def _reduce_storage(storage: Any) -> Any:
    data = storage.data
    share(data)
    size = data.numel()
    if size == 0:
        return _open_empty, ()
    descriptor, name = _C._shared_file(data)
    if name:
        _watch_names()
        _C._lend_name(data)
        return _open_name, (name, size)
    return _open_descriptor, (_duplicate(descriptor), size)


def _duplicate(descriptor: int) -> Any:
    from multiprocessing import context, reduction

    popen: Any = context.get_spawning_popen()
    if popen is not None and popen.method == "forkserver":
        if len(popen._fds) >= _MOST_WITH_FORKSERVER:
            from multiprocessing import resource_sharer

            return resource_sharer.DupFd(descriptor)
    return reduction.DupFd(descriptor)


def _reduce_leaf(leaf: Any) -> Any:
    return _pickle._Leaf, (leaf.grad,)


def _reduce_non_leaf(value: Any) -> Any:
    refuse_non_leaf()


def refuse_non_leaf() -> NoReturn:
    """Raises what a tensor with history gets that should go to another process."""
    raise RuntimeError(
        "a tensor that requires grad and is not a leaf cannot be sent to another process, since "
        "autograd does not support crossing process boundaries; send tensor.detach()"
    )


def _open_empty() -> Any:
    data = _C.empty(0, dtype=_C.uint8)
    _C._share(data, "", 0)
    return _pickle._Storage(data)


def _open_name(name: str, size: int) -> Any:
    _watch_names()
    return _pickle._Storage(_C._attach_name(name, size))


def _open_descriptor(duplicate: Any, size: int) -> Any:
    try:
        descriptor = duplicate.detach()
    except (ConnectionError, FileNotFoundError, EOFError) as error:
        raise RuntimeError(
            "a tensor was sent by a process that has ended, so that its memory cannot be reached "
            "any more: a sender must live until what it sent was received (with "
            "clew.multiprocessing.set_sharing_strategy('file_system') it need not)"
        ) from error
    return _pickle._Storage(_C._attach_descriptor(descriptor, size))
