"""Objects sent between ranks, of which each learns whether another one failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clew import distributed as dist

__all__ = ["SyncPayload", "all_gather", "all_gather_object_enforce_type", "broadcast"]


@dataclass
class SyncPayload:
    """What a rank tells the others.

    Args:
        stage_name: what is being done.
        success: whether it went well.
        payload: the object.
        exception: what the rank's function raised.
    """

    stage_name: str | None
    success: bool
    payload: Any
    exception: Exception | None = None


def _told(data_or_fn: Any, success: bool, stage_name: str | None) -> SyncPayload:
    """What this rank tells: an object, or what a function gives."""
    if not callable(data_or_fn):
        return SyncPayload(stage_name, success, data_or_fn)
    try:
        return SyncPayload(stage_name, success, data_or_fn())
    except Exception as error:
        return SyncPayload(stage_name, False, None, error)


def broadcast(
    data_or_fn: Any,
    *,
    success: bool = True,
    stage_name: str | None = None,
    rank: int = 0,
    pg: Any = None,
) -> Any:
    """Gives every rank an object of one of them, or what a function returns there.

    Args:
        data_or_fn: the object, or a function that only `rank` calls.
        success: False says that `rank` failed: all raise.
        stage_name: named in errors.
        rank: whose object it is.
        pg: the group; all processes if None.

    Raises:
        RuntimeError: `rank` failed.
    """
    if not success and data_or_fn is not None:
        raise AssertionError("broadcast: with success=False, data_or_fn must be None")
    is_source = pg is None and (not dist.is_initialized() or dist.get_rank() == rank)
    if pg is not None:
        is_source = dist.get_rank(pg) == rank
    told = _told(data_or_fn, success, stage_name) if is_source else None
    if pg is not None or dist.is_initialized():
        box = [told]
        source = rank if pg is None else dist.get_global_rank(pg, rank)
        dist.broadcast_object_list(box, src=source, group=pg)
        told = box[0]
    if told is None or not told.success:
        where = "" if stage_name is None else f" at stage {stage_name}"
        reason = told.exception if told is not None else None
        raise RuntimeError(f"broadcast: rank {rank} failed{where}: {reason}") from reason
    return told.payload


def all_gather(data_or_fn: Any, stage_name: str | None = None, pg: Any = None) -> list[Any]:
    """Gives every rank the objects of all, or what a function returns on each.

    Args:
        data_or_fn: this rank's object, or a function.
        stage_name: named in errors.
        pg: the group; all processes if None.

    Raises:
        RuntimeError: a rank failed.
    """
    told = _told(data_or_fn, True, stage_name)
    if pg is None and not dist.is_initialized():
        found: list[Any] = [told]
    else:
        found = [None] * dist.get_world_size(pg)
        dist.all_gather_object(found, told, group=pg)
    failed = [(rank, one.exception) for rank, one in enumerate(found) if not one.success]
    if failed:
        where = "" if stage_name is None else f" at stage {stage_name}"
        each = "; ".join(f"rank {rank}: {error!r}" for rank, error in failed)
        raise RuntimeError(f"all_gather: ranks failed{where}: {each}") from failed[0][1]
    return [one.payload for one in found]


def all_gather_object_enforce_type(
    pg: Any,
    object_list: list[Any],
    obj: Any,
    type_checker: Callable[[Any, Any], bool] = lambda x, y: type(x) is type(y),
) -> None:
    """`all_gather_object` of objects that must be of one type.

    Args:
        pg: the group.
        object_list: gets the objects.
        obj: this rank's.
        type_checker: whether two objects fit.

    Raises:
        TypeError: they do not.
    """
    dist.all_gather_object(object_list, obj, group=pg)
    for rank, other in enumerate(object_list[1:], 1):
        if not type_checker(object_list[0], other):
            raise TypeError(
                f"all_gather_object_enforce_type: rank {rank} gave {type(other).__name__}, rank 0 "
                f"{type(object_list[0]).__name__}"
            )
