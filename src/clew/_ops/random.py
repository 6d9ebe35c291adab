"""Rare samplers, whose arguments are checked here."""

from __future__ import annotations

import numpy as np

from clew import _C
from clew._C import Generator, Tensor
from clew._ops.primitive import write_out

__all__ = ["binomial"]


def binomial(
    count: Tensor,
    prob: Tensor,
    generator: Generator | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Draws how many of ``count`` trials succeed, each with probability ``prob``.

    Args:
        count: the numbers of trials, floating point whole numbers.
        prob: the probabilities, of the same dtype; broadcasts with count.
        generator: where the random numbers come from.
        out: the tensor to write into.

    Returns:
        A tensor of the broadcast shape and of count's dtype.

    >>> clew.binomial(clew.tensor([3.0, 7.0]), clew.tensor([0.0, 1.0]))
    tensor([0., 7.])
    """
    for name, value in (("count", count), ("prob", prob)):
        if not isinstance(value, Tensor):
            raise TypeError(f"binomial: {name} must be a Tensor; got {type(value).__name__}")
    if not count.is_floating_point():
        raise ValueError(f"binomial: count must be floating point; got {count.dtype}")
    if prob.dtype != count.dtype:
        raise RuntimeError(
            f"binomial: count and prob must have one dtype; got {count.dtype} and {prob.dtype}"
        )
    shape = _C.functions["add"](count.detach(), prob.detach()).shape
    if count.device.type == "meta" or prob.device.type == "meta":
        drawn = _C.empty(shape, dtype=count.dtype, device="meta")
    else:
        n, p = (t.detach().to(_C.float64).numpy() for t in (count, prob))
        if not ((p >= 0) & (p <= 1)).all():
            raise RuntimeError(f"binomial: prob must be in [0, 1]; got {prob}")
        if not ((n >= 0) & (n == np.floor(n)) & (n < 2**63)).all():
            raise RuntimeError(f"binomial: count must be whole and not negative; got {count}")
        trials, chance = (_C.from_numpy(np.array(np.broadcast_to(v, tuple(shape)))) for v in (n, p))
        drawn = _C.ops._binomial_draws(trials, chance, generator=generator).to(count.dtype)
    return write_out("binomial", drawn, out, converts=True)
