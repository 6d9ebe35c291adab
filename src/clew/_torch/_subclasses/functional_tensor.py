"""Tensors whose in-place operations are recorded as copies: not part of clew."""

from __future__ import annotations

from clew._torch.absent import _COMPILER, absent

FunctionalTensor = absent("_subclasses.functional_tensor", "FunctionalTensor", _COMPILER)
FunctionalTensorMode = absent("_subclasses.functional_tensor", "FunctionalTensorMode", _COMPILER)
