"""Rare samplers, whose arguments are checked here."""

from __future__ import annotations

from clew import _C
from clew._C import Generator, Tensor
from clew._ops.primitive import write_out

__all__ = ["binomial"]


def _of_all_samples(t: Tensor) -> Tensor:
    """The tensor, inside vmap with the samples as dimensions."""
    return _C._show_levels(t, _C._levels(t))


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
        n, p = (t.detach().to(_C.float64) for t in (count, prob))
        every_p, every_n = _of_all_samples(p), _of_all_samples(n)
        if not ((every_p >= 0) & (every_p <= 1)).all():
            raise RuntimeError(f"binomial: prob must be in [0, 1]; got {every_p.to(prob.dtype)}")
        if not ((every_n >= 0) & (every_n == every_n.floor()) & (every_n < 2**63)).all():
            raise RuntimeError(
                f"binomial: count must be whole and not negative; got {every_n.to(count.dtype)}"
            )
        trials, chance = (t.expand(shape).contiguous() for t in (n, p))
        drawn = _C.ops._binomial_draws(trials, chance, generator=generator).to(count.dtype)
    return write_out("binomial", drawn, out, converts=True)
