"""CTC loss: the sum over all alignments, by the forward recursion."""

from __future__ import annotations

import math
from itertools import accumulate
from operator import index
from typing import Any

import clew
from clew._base.arguments import need_bools
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes
from clew._ops.primitive import loops_in_vmap
from clew._ops.twofold import twofold

from ._core import private
from ._loss import bad_reduction

_ctc_loss = private("_ctc_loss")
_ctc_loss_backward = private("_ctc_loss_backward")


@asks_classes
@in_float32
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> clew.Tensor:
    """Connectionist temporal classification: minus the log-probability of all alignments.

    Graves and others, Connectionist Temporal Classification, 2006, section 4.1.

    Args:
        log_probs: (T, N, C) or (T, C) log-probabilities: T steps, C classes with the blank.
        targets: int class indices: (N, S), (S), or all targets one after the other.
        input_lengths: (N), used length of each sequence, at most T.
        target_lengths: (N), length of each target.
        blank: the blank's class.
        reduction: "none", "mean" (each divided by its target's length) or "sum".
        zero_infinity: count impossible alignments as zero.

    Returns:
        the loss: a 0-d tensor, or (N) with reduction "none".

    Raises:
        RuntimeError: for lengths or targets that do not fit log_probs.

    Example:
        >>> log_probs = clew.zeros(4, 1, 3).log_softmax(-1)
        >>> clew.nn.functional.ctc_loss(log_probs, clew.tensor([[1, 2]]), [4], [2])
        tensor(0.8432)
    """
    need_bools("ctc_loss", zero_infinity=zero_infinity)
    single = log_probs.dim() == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
    if log_probs.dim() != 3:
        raise RuntimeError(
            f"ctc_loss: log_probs must be (T, N, C) or (T, C); got {tuple(log_probs.shape)}"
        )
    steps, batch, classes = log_probs.shape
    if not steps or not batch:
        raise RuntimeError(
            f"ctc_loss: log_probs must hold a step and a sequence; got {tuple(log_probs.shape)}"
        )
    if not 0 <= blank < classes:
        raise RuntimeError(f"ctc_loss: blank must be in 0..{classes - 1}; got {blank}")
    if reduction not in ("none", "mean", "sum"):
        raise bad_reduction(reduction)
    if log_probs.is_meta:
        loss = log_probs.sum((0, 2))  # its shape, its dtype and its graph
        return loss.sum() if reduction != "none" else loss.squeeze(0) if single else loss
    decisive = (targets, input_lengths, target_lengths)
    if clew._C._vmap_depth() and any(
        clew._C._levels(t) for t in decisive if isinstance(t, clew.Tensor)
    ):
        if single:
            log_probs = log_probs.squeeze(1)
        return loops_in_vmap(ctc_loss)(log_probs, *decisive, blank, reduction, zero_infinity)
    in_lengths = _lengths(input_lengths, batch, "input_lengths")
    t_lengths = _lengths(target_lengths, batch, "target_lengths")
    if max(in_lengths) > steps:
        raise RuntimeError(
            f"ctc_loss: input_lengths must be at most {steps}, the steps of log_probs; "
            f"got {max(in_lengths)}"
        )
    states, may_skip = _states(_rows(targets, t_lengths), blank, classes)
    lengths = clew.tensor([in_lengths, t_lengths], dtype=clew.int64)
    loss = _twofold_losses(log_probs, states, may_skip, lengths)
    if zero_infinity:
        loss = clew.where(loss == math.inf, 0.0, loss)
    if reduction == "mean":
        return (loss / clew.tensor(t_lengths).clamp(min=1).to(loss.dtype)).mean()
    if reduction == "sum":
        return loss.sum()
    return loss.squeeze(0) if single else loss


def _lengths(value: Any, batch: int, name: str) -> list[int]:
    if isinstance(value, clew.Tensor):
        if value.is_floating_point() or value.is_complex() or value.dtype == clew.bool:
            raise RuntimeError(f"ctc_loss: {name} must be integral; got {value.dtype}")
        value = value.reshape(-1).tolist()
    found = [index(n) for n in ([value] if isinstance(value, int) else value)]
    if len(found) != batch:
        raise RuntimeError(
            f"ctc_loss: {name} must have one length for each of {batch} sequences; got {len(found)}"
        )
    if min(found) < 0:
        raise RuntimeError(f"ctc_loss: {name} must be at least 0; got {min(found)}")
    return found


def _rows(targets: Any, lengths: list[int]) -> list[list[int]]:
    # Each sequence's labels.
    shape = tuple(targets.shape)
    labels = targets.to(clew.int64)
    if len(shape) == 2:
        if shape[0] != len(lengths) or shape[1] < max(lengths):
            raise RuntimeError(
                f"ctc_loss: targets must be ({len(lengths)}, {max(lengths)} or more), a row for "
                f"each sequence; got {shape}"
            )
        return [row[:n] for row, n in zip(labels.tolist(), lengths, strict=True)]
    if len(shape) != 1:
        raise RuntimeError(f"ctc_loss: targets must have 1 or 2 dimensions; got shape {shape}")
    if shape[0] != sum(lengths):
        raise RuntimeError(
            f"ctc_loss: targets in one row must be as many as target_lengths say, "
            f"{sum(lengths)}; got {shape[0]}"
        )
    ends = list(accumulate(lengths))
    flat = labels.tolist()
    return [flat[end - n : end] for end, n in zip(ends, lengths, strict=True)]


def _states(rows: list[list[int]], blank: int, classes: int) -> tuple[Any, Any]:
    # Labels with blanks between; a state may be skipped into from two before when it is a label
    # unlike that one.
    width = 2 * max(map(len, rows)) + 1
    states, skip = [], []
    for row in rows:
        line = [blank] * width
        jump = [False] * width
        for j, label in enumerate(row):
            if not 0 <= label < classes:
                raise IndexError(f"ctc_loss: target {label} is out of bounds for {classes} classes")
            line[2 * j + 1] = label
            if j and label != row[j - 1]:
                jump[2 * j + 1] = True
        states.append(line)
        skip.append(jump)
    return clew.tensor(states, dtype=clew.int64), clew.tensor(skip, dtype=clew.bool)


def _losses(log_probs: Any, states: Any, may_skip: Any, lengths: Any) -> Any:
    """Each sequence's loss, by differentiable operations.

    Args:
        log_probs: (T, N, C).
        states: (N, W), the classes of labels with blanks between.
        may_skip: (N, W), whether a state follows the one two before it as well.
        lengths: (2, N), of steps and of labels.
    """
    steps, batch, _ = log_probs.shape
    width = states.shape[1]
    alive, labels = lengths
    emit = log_probs.gather(2, states.unsqueeze(0).expand(steps, batch, width))
    low = -math.inf
    first = clew.arange(width).unsqueeze(0) < 2
    has_label = labels.unsqueeze(1) > 0
    alpha = clew.where(first, emit[0], low) if steps else emit.sum(0)
    pad_one = clew.full((batch, 1), low, dtype=log_probs.dtype)
    pad_two = clew.full((batch, 2), low, dtype=log_probs.dtype)
    for t in range(1, max(alive.tolist(), default=0)):
        one = clew.cat([pad_one, alpha[:, :-1]], 1)
        two = clew.cat([pad_two, alpha[:, :-2]], 1)[:, :width]
        two = clew.where(may_skip, two, low)
        step = _log_add(clew.stack([alpha, one, two])) + emit[t]
        alpha = clew.where((alive > t).unsqueeze(1), step, alpha)
    last = 2 * labels.unsqueeze(1)
    end_blank = alpha.gather(1, last)
    end_label = alpha.gather(1, (last - 1).clamp(min=0))
    end_label = clew.where(has_label, end_label, low)
    loss = -_log_add(clew.stack([end_blank, end_label])).squeeze(1)
    loss = clew.where(alive == 0, clew.where(labels == 0, 0.0, math.inf), loss)
    # log_probs are logarithms of probabilities that sum to one. Their gradient is given along that
    # constraint, as PyTorch gives it: exp(log_probs) is added, the value stays.
    used = clew.arange(steps).unsqueeze(1) < alive.unsqueeze(0)
    mass = clew.where(used, log_probs.exp().sum(2), 0.0).sum(0)
    return loss + clew.where(loss == math.inf, 0.0, mass - mass.detach())


_twofold_losses = twofold(
    "CtcLoss",
    native=_ctc_loss,
    gradient=lambda grad, made, args, _: (_ctc_loss_backward(grad, *args, *made), None, None, None),
    composed=_losses,
)


def _log_add(x: Any) -> Any:
    # logsumexp over dim 0 whose gradient is zero, not NaN, where every term is -inf.
    top = x.detach().max(0)[0]
    safe = clew.where(top == -math.inf, 0.0, top)
    total = (x - safe).exp().sum(0)
    dead = total == 0
    return clew.where(dead, -math.inf, clew.where(dead, 1.0, total).log() + safe)
