"""Tensors whose in-place operations are recorded as copies: not part of clew."""

from __future__ import annotations

import contextlib
from typing import Any

from clew._torch.absent import _COMPILER, absent

FunctionalTensor = absent("_subclasses.functional_tensor", "FunctionalTensor", _COMPILER)
FunctionalTensorMode = absent("_subclasses.functional_tensor", "FunctionalTensorMode", _COMPILER)


def disable_functional_mode() -> Any:
    """A block without such a mode, as there is none anyway."""
    return contextlib.nullcontext()


def mb_unwrap_functional_tensor(tensor: Any) -> Any:
    """The tensor itself: it is not of this class."""
    return tensor
