"""Cross entropy of logits whose classes lie on several processes, which nobody puts together."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import clew
from clew.distributed import distributed_c10d as c10d
from clew.distributed.tensor import _rules
from clew.distributed.tensor._api import DTensor
from clew.distributed.tensor._call import Call
from clew.distributed.tensor._redistribute import local_sizes, sum_gradients, sum_over
from clew.distributed.tensor.placement_types import Replicate, Shard

__all__ = ["loss_parallel"]

_parallel: contextvars.ContextVar[bool] = contextvars.ContextVar("loss_parallel", default=False)


@contextmanager
def loss_parallel() -> Iterator[None]:
    """A region in which `cross_entropy` takes logits cut along the classes without gathering them.

    The target may be a plain tensor, the same on all processes. Run backward within it too. With
    `weight`, `label_smoothing` or a target of probabilities, and on a mesh of several dims, the
    logits are gathered, as outside.

    Example:
        >>> import clew.distributed as dist
        >>> from clew.distributed.tensor import Shard, distribute_tensor, init_device_mesh
        >>> from clew.distributed.tensor.parallel import loss_parallel
        >>> mesh = init_device_mesh("cpu", (1,))
        >>> logits = distribute_tensor(clew.zeros(2, 4), mesh, [Shard(-1)])
        >>> with loss_parallel():
        ...     loss = clew.nn.functional.cross_entropy(logits, clew.tensor([0, 3]))
        >>> round(loss.item(), 4)
        1.3863
        >>> dist.destroy_process_group()
    """
    token = _parallel.set(True)
    try:
        yield
    finally:
        _parallel.reset(token)


class _Losses(clew.autograd.Function):
    """Each row's loss, from this process's classes of all rows."""

    @staticmethod
    def forward(ctx: Any, group: Any, first: int, kept: Any, target: Any, logits: Any) -> Any:
        wide = logits.detach().float() if logits.dtype != clew.float64 else logits.detach()
        own = wide.shape[1]
        greatest = wide.amax(1) if own else wide.new_full(wide.shape[:1], -float("inf"))
        c10d.all_reduce(greatest, c10d.ReduceOp.MAX, group)
        powers = (wide - greatest[:, None]).exp()
        total = powers.sum(1)
        c10d.all_reduce(total, group=group)
        at = target - first
        here = kept & (at >= 0) & (at < own)
        rows = here.nonzero().reshape(-1)
        chosen = wide.new_zeros(wide.shape[:1])
        chosen[rows] = wide[rows, at[rows]]
        c10d.all_reduce(chosen, group=group)
        ctx.save_for_backward(powers / total[:, None], rows, at[rows], kept, logits, greatest)
        ctx.group = group
        return clew.where(kept, total.log() + greatest - chosen, 0.0).to(logits.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        shares, rows, at, kept, logits, greatest = ctx.saved_tensors
        groups = [ctx.group]
        if clew.is_grad_enabled():
            # Recorded: every process uses the sums and the gradient for classes of its own.
            powers = (logits.to(shares.dtype) - greatest[:, None]).exp()
            total = sum_gradients(sum_over(powers.sum(1), groups), groups)
            shares = powers / total[:, None]
            grad = sum_gradients(grad, groups)
        made = shares.clone()
        made[rows, at] -= 1.0
        made *= clew.where(kept, grad.to(made.dtype), 0.0)[:, None]
        return None, None, None, None, made.to(logits.dtype)


def _cross_entropy(c: Call) -> Any:
    logits, target = c.argument(0, "input"), c.argument(1, "target")
    ignored = c.argument(4, "ignore_index", -100)
    reduction = c.argument(6, "reduction", "mean")
    plain = (
        _parallel.get()
        and isinstance(logits, DTensor)
        and logits._mesh.ndim == 1
        and logits._placements == (Shard(min(1, logits.ndim - 1)),)
        and not target.is_floating_point()
        and reduction in ("mean", "sum", "none")
        and all(c.argument(at, name) is None for at, name in
                ((2, "weight"), (3, "size_average"), (5, "reduce")))
        and c.argument(7, "label_smoothing", 0.0) == 0.0
    )  # fmt: skip
    if not plain:
        return c.replicated() if _parallel.get() else _rules.replicated(c)
    mesh, sizes = logits._mesh, tuple(logits._sizes)
    dim = min(1, logits.ndim - 1)
    first = local_sizes(sizes, mesh, logits._placements, mesh.get_coordinate())[1][dim]
    whole = target.full_tensor() if isinstance(target, DTensor) else target
    if tuple(whole.shape) != (*sizes[:dim], *sizes[dim + 1 :]):
        raise ValueError(
            f"cross_entropy: the target must be {(*sizes[:dim], *sizes[dim + 1 :])} for logits of "
            f"{sizes}; got {tuple(whole.shape)}"
        )
    flat = whole.reshape(-1)
    kept = flat != ignored
    wrong = flat[kept & ((flat < 0) | (flat >= sizes[dim]))]
    if wrong.numel():
        raise IndexError(f"cross_entropy: target {int(wrong[0])} of {sizes[dim]} classes")
    local = logits.to_local().movedim(dim, -1)
    rows = local.reshape(flat.shape[0], local.shape[-1])
    losses = _Losses.apply(mesh.get_group(), first, kept, flat, rows)
    if reduction == "none":
        made = losses.view(whole.shape)
    else:
        made = losses.sum() if reduction == "sum" else losses.sum() / kept.sum().to(losses.dtype)
    return DTensor.from_local(made, mesh, [Replicate()])


_rules.RULES["cross_entropy"] = _cross_entropy
