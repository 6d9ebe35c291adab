"""Messages from one process to another, and collectives of Python objects."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from clew._C import Tensor
from clew.distributed import _arrays
from clew.distributed._collectives import _check, _root
from clew.distributed._groups import _get_default_group, _of
from clew.distributed._process_group import ProcessGroup, begin
from clew.distributed._work import Work


class _Message(Work):
    """A message on its way; one from anyone notes who sent.

    Args:
        from_any: what receives it from anyone.
    """

    def __init__(self, *args: Any, from_any: Any = None, **kwargs: Any) -> None:
        self._from_any = from_any
        super().__init__(*args, **kwargs)

    def source_rank(self) -> int:
        """Who sent."""
        self.wait()
        if self._from_any is not None:
            return int(self._group.ranks[self._from_any.source()])
        return self._source


def isend(
    tensor: Tensor, dst: Any = None, group: Any = None, tag: int = 0, group_dst: Any = None
) -> Any:
    """Starts to send a tensor to another process.

    Args:
        tensor: any shape, on the CPU; leave it unchanged until the Work is complete.
        dst: the global rank of the receiver.
        group: the group; the one of all processes if None.
        tag: a number that tells messages apart; `irecv` must give the same.
        group_dst: the receiver's rank in the group, instead of `dst`.

    Returns:
        A `Work`; None in a process outside the group.

    Raises:
        ValueError: if the receiver is this process, or there is no other process.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.isend(clew.ones(2), dst=0)
        Traceback (most recent call last):
        ValueError: distributed.send: there is no other process to send to or receive from
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    _arrays.expect("isend", tensor)
    if found is None:
        return None
    peer = _peer("isend", found, dst, group_dst)
    array = _arrays.reading(tensor)
    request = found._comm.isend(array, peer, tag)
    return _Message(found, "send", [request], None, [tensor], array)


def irecv(
    tensor: Tensor, src: Any = None, group: Any = None, tag: int = 0, group_src: Any = None
) -> Any:
    """Starts to receive a tensor from another process.

    Args:
        tensor: filled once the Work is complete; it has the sent tensor's size and dtype.
        src: the global rank of the sender; any sender if neither it nor `group_src` is given.
        group: the group; the one of all processes if None.
        tag: the number that the sender gave.
        group_src: the sender's rank in the group, instead of `src`.

    Returns:
        A `Work`, whose `source_rank()` names the sender; None in a process outside the group.

    Raises:
        ValueError: if the sender is this process, or there is no other process.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.irecv(clew.zeros(2), src=0)
        Traceback (most recent call last):
        ValueError: distributed.send: there is no other process to send to or receive from
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    _arrays.expect("irecv", tensor)
    if found is None:
        return None
    array, finish = _arrays.writing(tensor)
    if src is None and group_src is None:
        request = found._comm.irecv_all(array, -1, tag)
        return _Message(found, "recv", [request], finish, [tensor], array, from_any=request)
    peer = _peer("irecv", found, src, group_src)
    request = found._comm.irecv_all(array, peer, tag)
    made = _Message(found, "recv", [request], finish, [tensor], array)
    made._source = found.ranks[peer]
    return made


def _peer(name: str, group: ProcessGroup, rank: Any, group_rank: Any) -> int:
    if group.size() == 1:
        group._comm.isend(None, 0, 0)  # raises: there is nobody
    peer = _root(name, group, rank, group_rank, None)
    if peer == group.rank():
        raise ValueError(f"distributed.{name}: rank {group.global_rank} named itself")
    return peer


def send(
    tensor: Tensor, dst: Any = None, group: Any = None, tag: int = 0, group_dst: Any = None
) -> None:
    """Sends a tensor to another process, and waits until that is done.

    Args:
        tensor: any shape, on the CPU.
        dst: the global rank of the receiver.
        group: the group; the one of all processes if None.
        tag: a number that tells messages apart; `recv` must give the same.
        group_dst: the receiver's rank in the group, instead of `dst`.

    Raises:
        ValueError: if the receiver is this process, or there is no other process.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.send(clew.ones(2), dst=0)
        Traceback (most recent call last):
        ValueError: distributed.send: there is no other process to send to or receive from
        >>> dist.destroy_process_group()
    """
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor, src: Any = None, group: Any = None, tag: int = 0, group_src: Any = None
) -> int:
    """Receives a tensor from another process, and waits until it is there.

    Args:
        tensor: filled; it has the sent tensor's size and dtype.
        src: the global rank of the sender; any sender if neither it nor `group_src` is given.
        group: the group; the one of all processes if None.
        tag: the number that the sender gave.
        group_src: the sender's rank in the group, instead of `src`.

    Returns:
        The sender's global rank; -1 in a process outside the group.

    Raises:
        ValueError: if the sender is this process, or there is no other process.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.recv(clew.zeros(2), src=0)
        Traceback (most recent call last):
        ValueError: distributed.send: there is no other process to send to or receive from
        >>> dist.destroy_process_group()
    """
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return int(work.source_rank())


class P2POp:
    """One message of `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor: what is sent or filled.
        peer: the global rank of the other process.
        group: the group of both; the one of all processes if None.
        tag: a number that tells messages apart.
        group_peer: the other process's rank in the group, instead of `peer`.

    Raises:
        ValueError: if `op` is another function.

    Example:
        >>> import clew.distributed as dist
        >>> dist.P2POp(dist.isend, clew.ones(2), peer=1).peer
        1
    """

    def __init__(
        self,
        op: Any,
        tensor: Tensor,
        peer: Any = None,
        group: Any = None,
        tag: int = 0,
        group_peer: Any = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(f"P2POp: op must be isend or irecv; got {op!r}")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag
        self.group_peer = group_peer


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Starts several messages, in the order of the list.

    Args:
        p2p_op_list: a `P2POp` for each message.

    Returns:
        A `Work` for each message.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.batch_isend_irecv([])
        []
        >>> dist.destroy_process_group()
    """
    return [p.op(p.tensor, p.peer, p.group, p.tag, p.group_peer) for p in p2p_op_list]


def _packed(value: Any) -> Any:
    return np.frombuffer(pickle.dumps(value), np.uint8).copy()


def _run(group: ProcessGroup, name: str, request: Any) -> None:
    Work(group, name, [request]).wait()


def _sizes(group: ProcessGroup, name: str, size: int) -> list[int]:
    all_ = np.zeros(group.size(), np.int64)
    _run(group, name, group._comm.allgather(np.array([size], np.int64), all_))
    return [int(n) for n in all_]


def _share(group: ProcessGroup, name: str, data: Any) -> list[Any]:
    """All ranks' bytes, of their own lengths."""
    sizes = _sizes(group, name, data.size)
    most = max(sizes)
    mine = np.zeros(most, np.uint8)
    mine[: data.size] = data
    all_ = np.zeros((group.size(), most), np.uint8)
    _run(group, name, group._comm.allgather(mine, all_))
    return [row[:n] for row, n in zip(all_, sizes)]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Collects the objects of all processes in a list, on every process.

    Args:
        object_list: a list as long as the group's size; filled by rank in the group.
        obj: what this process gives; anything that pickles.
        group: the group; the one of all processes if None.

    Objects are pickled: only receive them from processes that you trust.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> got = [None]
        >>> dist.all_gather_object(got, {"loss": 0.5})
        >>> got
        [{'loss': 0.5}]
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    if found is None:
        return
    if len(object_list) != found.size():
        raise ValueError(
            f"distributed.all_gather_object: expected a list of {found.size()}; got "
            f"{len(object_list)}"
        )
    _check(found, "all_gather_object")
    rows = _share(found, "all_gather_object", _packed(obj))
    object_list[:] = [pickle.loads(row.tobytes()) for row in rows]


def gather_object(
    obj: Any,
    object_gather_list: Any = None,
    dst: Any = None,
    group: Any = None,
    group_dst: Any = None,
) -> None:
    """Collects the objects of all processes in a list, at one process.

    Args:
        obj: what this process gives; anything that pickles.
        object_gather_list: at the destination, a list as long as the group's size; filled by rank.
        dst: the global rank of the destination; the group's first process if neither it nor
            `group_dst` is given.
        group: the group; the one of all processes if None.
        group_dst: the destination's rank in the group, instead of `dst`.

    Objects are pickled: only receive them from processes that you trust.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> got = [None]
        >>> dist.gather_object("a", got)
        >>> got
        ['a']
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    if found is None:
        return
    root = _root("gather_object", found, dst, group_dst, 0)
    _check(found, "gather_object", extra=f"to {root}")
    rows = _share(found, "gather_object", _packed(obj))
    if found.rank() == root:
        if object_gather_list is None or len(object_gather_list) != found.size():
            raise ValueError(f"distributed.gather_object: expected a list of {found.size()}")
        object_gather_list[:] = [pickle.loads(row.tobytes()) for row in rows]


def _from_root(group: ProcessGroup, name: str, data: Any, root: int) -> Any:
    size = np.array([0 if data is None else data.size], np.int64)
    _run(group, name, group._comm.bcast(size, root))
    if data is None:
        data = np.zeros(int(size[0]), np.uint8)
    _run(group, name, group._comm.bcast(data, root))
    return data


def broadcast_object_list(
    object_list: list[Any],
    src: Any = None,
    group: Any = None,
    device: Any = None,
    group_src: Any = None,
) -> None:
    """Copies the objects of one process to all processes of the group.

    Args:
        object_list: what is sent at the source; replaced by it elsewhere.
        src: the global rank of the source; the group's first process if neither it nor `group_src`
            is given.
        group: the group; the one of all processes if None.
        device: not used: objects travel as bytes on the CPU.
        group_src: the source's rank in the group, instead of `src`.

    Objects are pickled: only receive them from processes that you trust.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> items = [1, "a"]
        >>> dist.broadcast_object_list(items, src=0)
        >>> items
        [1, 'a']
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    if found is None:
        return
    root = _root("broadcast_object_list", found, src, group_src, 0)
    _check(found, "broadcast_object_list", extra=f"{len(object_list)}, from {root}")
    here = found.rank() == root
    data = _from_root(
        found, "broadcast_object_list", _packed(list(object_list)) if here else None, root
    )
    if not here:
        object_list[:] = pickle.loads(data.tobytes())


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Any = None,
    src: Any = None,
    group: Any = None,
    group_src: Any = None,
) -> None:
    """Gives each process one object of a list that one process has.

    Args:
        scatter_object_output_list: a list whose first item becomes this process's object.
        scatter_object_input_list: at the source, one object for each process, by rank in the group.
        src: the global rank of the source; the group's first process if neither it nor `group_src`
            is given.
        group: the group; the one of all processes if None.
        group_src: the source's rank in the group, instead of `src`.

    Objects are pickled: only receive them from processes that you trust.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> mine = [None]
        >>> dist.scatter_object_list(mine, ["a"], src=0)
        >>> mine
        ['a']
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    if found is None:
        return
    root = _root("scatter_object_list", found, src, group_src, 0)
    _check(found, "scatter_object_list", extra=f"from {root}")
    data = None
    if found.rank() == root:
        items = scatter_object_input_list
        if items is None or len(items) != found.size():
            raise ValueError(f"distributed.scatter_object_list: expected {found.size()} objects")
        data = _packed([pickle.dumps(item) for item in items])
    data = _from_root(found, "scatter_object_list", data, root)
    scatter_object_output_list[0] = pickle.loads(pickle.loads(data.tobytes())[found.rank()])


def send_object_list(
    object_list: list[Any],
    dst: Any = None,
    group: Any = None,
    device: Any = None,
    group_dst: Any = None,
    use_batch: bool = False,
) -> None:
    """Sends a list of objects to another process, and waits until that is done.

    Args:
        object_list: what is sent; anything that pickles.
        dst: the global rank of the receiver.
        group: the group; the one of all processes if None.
        device: not used: objects travel as bytes on the CPU.
        group_dst: the receiver's rank in the group, instead of `dst`.
        use_batch: not used: each message is sent on its own.

    Objects are pickled: only receive them from processes that you trust.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.send_object_list(["a"], dst=0)
        Traceback (most recent call last):
        ValueError: distributed.send: there is no other process to send to or receive from
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    if found is None:
        return
    peer = _peer("send_object_list", found, dst, group_dst)
    data = _packed(list(object_list))
    size = np.array([data.size], np.int64)
    _run(found, "send_object_list", found._comm.isend(size, peer, 32701))
    _run(found, "send_object_list", found._comm.isend(data, peer, 32701))


def recv_object_list(
    object_list: list[Any],
    src: Any = None,
    group: Any = None,
    device: Any = None,
    group_src: Any = None,
    use_batch: bool = False,
) -> int:
    """Receives a list of objects from another process, and waits until it is there.

    Args:
        object_list: replaced by what came.
        src: the global rank of the sender; here it must be named.
        group: the group; the one of all processes if None.
        device: not used: objects travel as bytes on the CPU.
        group_src: the sender's rank in the group, instead of `src`.
        use_batch: not used: each message is received on its own.

    Returns:
        The sender's global rank; -1 in a process outside the group.

    Objects are pickled: only receive them from processes that you trust.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.recv_object_list([None], src=0)
        Traceback (most recent call last):
        ValueError: distributed.send: there is no other process to send to or receive from
        >>> dist.destroy_process_group()
    """
    found = _of(group)
    if found is None:
        return -1
    if src is None and group_src is None:
        raise NotImplementedError("distributed.recv_object_list: name the sender (src)")
    peer = _peer("recv_object_list", found, src, group_src)
    size = np.zeros(1, np.int64)
    _run(found, "recv_object_list", found._comm.irecv(size, peer, 32701))
    data = np.zeros(int(size[0]), np.uint8)
    _run(found, "recv_object_list", found._comm.irecv(data, peer, 32701))
    object_list[:] = pickle.loads(data.tobytes())
    return found.ranks[peer]


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Any:
    """Yields what processes need to find each other; here they have found each other already.

    Args:
        url: not used.
        rank, world_size: not used.
        kwargs: not used.

    Yields:
        (store, rank, world size) of the group of all processes.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> store, rank, size = next(dist.distributed_c10d.rendezvous("env://"))
        >>> rank, size
        (0, 1)
        >>> dist.destroy_process_group()
    """
    from clew.distributed._groups import _get_default_store

    default = _get_default_group()
    yield _get_default_store(), default.rank(), default.size()


begin.update(isend=isend, irecv=irecv)
