"""Switches of PyTorch's transforms of recorded programs: nothing reads what is set."""

from __future__ import annotations

from clew._torch._dynamo.config import patching

activation_memory_budget = 1.0
donated_buffer = False
enable_autograd_cache = True
functionalize_rng_ops = False
patch = patching(globals())
