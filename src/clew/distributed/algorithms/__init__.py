"""Ways to train with several processes: unequal numbers of batches, and communication hooks."""

from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
