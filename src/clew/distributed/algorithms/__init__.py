"""Ways to train with several processes: unequal numbers of batches, and communication hooks."""

from clew.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
