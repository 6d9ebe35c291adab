"""Kullback-Leibler divergences: dispatch on both families."""

from __future__ import annotations

from typing import Any

from clew.distributions._kl_registry import _KL_MEMOIZE as _KL_MEMOIZE
from clew.distributions._kl_registry import _KL_REGISTRY as _KL_REGISTRY
from clew.distributions._kl_registry import kl_divergence, register_kl

__all__ = ["kl_divergence", "register_kl"]


def _load() -> Any:
    """The formulas register themselves."""
    from clew.distributions import _kl_pairs, _kl_same

    return _kl_pairs, _kl_same
