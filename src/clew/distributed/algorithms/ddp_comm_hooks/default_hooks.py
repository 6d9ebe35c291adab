"""Sums of gradients as they are, or in 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clew
from clew.distributed import distributed_c10d as c10d

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def _mean(group: Any, tensor: Any) -> Any:
    """A Future of the processes' mean, in place."""
    found = group if group is not None else c10d._get_default_group()
    tensor.div_(found.size())
    work = c10d.all_reduce(tensor, group=found, async_op=True)
    return work.get_future().then(lambda f: f.value()[0])


def allreduce_hook(process_group: Any, bucket: Any) -> Any:
    """Averages the gradients over the processes, as DistributedDataParallel does without a hook.

    Args:
        process_group: the group; the one of all processes if None.
        bucket: a GradBucket; its elements are overwritten.

    Returns:
        A Future of the averaged elements.

    Example:
        >>> from clew.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> bucket = dist.GradBucket(0, clew.tensor([1.0, 2.0]), [clew.zeros(2)], last=True)
        >>> allreduce_hook(None, bucket).wait()
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    return _mean(process_group, bucket.buffer())


def _compressed(process_group: Any, bucket: Any, dtype: Any) -> Any:
    buffer = bucket.buffer()
    future = _mean(process_group, buffer.to(dtype))
    return future.then(lambda f: buffer.copy_(f.value()))


def fp16_compress_hook(process_group: Any, bucket: Any) -> Any:
    """Averages the gradients over the processes, sent as float16.

    Args:
        process_group: the group; the one of all processes if None.
        bucket: a GradBucket; its elements are overwritten.

    Returns:
        A Future of the averaged elements, in the bucket's dtype.

    Example:
        >>> from clew.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> bucket = dist.GradBucket(0, clew.tensor([1.0, 2.0]), [clew.zeros(2)], last=True)
        >>> fp16_compress_hook(None, bucket).wait()
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    return _compressed(process_group, bucket, clew.float16)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Any:
    """Averages the gradients over the processes, sent as bfloat16.

    Args:
        process_group: the group; the one of all processes if None.
        bucket: a GradBucket; its elements are overwritten.

    Returns:
        A Future of the averaged elements, in the bucket's dtype.

    Example:
        >>> from clew.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> bucket = dist.GradBucket(0, clew.tensor([1.0, 2.0]), [clew.zeros(2)], last=True)
        >>> bf16_compress_hook(None, bucket).wait()
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    return _compressed(process_group, bucket, clew.bfloat16)


def _wrapped(hook: Callable[[Any, Any], Any], dtype: Any) -> Callable[[Any, Any], Any]:
    def compressed(state: Any, bucket: Any) -> Any:
        own = bucket.buffer()
        bucket.set_buffer(own.to(dtype))
        return hook(state, bucket).then(lambda f: own.copy_(f.value()))

    return compressed


def fp16_compress_wrapper(hook: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A hook that converts gradients to float16 for another hook, and its result back.

    Args:
        hook: the other hook, hook(state, bucket) -> Future.

    Example:
        >>> from clew.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> bucket = dist.GradBucket(0, clew.tensor([1.0, 2.0]), [clew.zeros(2)], last=True)
        >>> hook = default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)
        >>> hook(None, bucket).wait()
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    return _wrapped(hook, clew.float16)


def bf16_compress_wrapper(hook: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A hook that converts gradients to bfloat16 for another hook, and its result back.

    Args:
        hook: the other hook, hook(state, bucket) -> Future.

    Example:
        >>> from clew.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> bucket = dist.GradBucket(0, clew.tensor([1.0, 2.0]), [clew.zeros(2)], last=True)
        >>> hook = default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook)
        >>> hook(None, bucket).wait()
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    return _wrapped(hook, clew.bfloat16)
