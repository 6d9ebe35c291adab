"""Tensors that pretend to be on a device: not part of clew; no tensor is one."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from clew._torch.absent import absent

_WHY = 'tensors without data are those of device "meta"'
FakeTensor = absent("_subclasses.fake_tensor", "FakeTensor", _WHY)
FakeTensorMode = absent("_subclasses.fake_tensor", "FakeTensorMode", _WHY)
FakeTensorConverter = absent("_subclasses.fake_tensor", "FakeTensorConverter", _WHY)


def is_fake(x: Any) -> bool:
    """False: no tensor is one."""
    return False


def unset_fake_temporarily() -> Any:
    """A block in which tensors have data, as they have anyway."""
    return nullcontext()


def maybe_get_fake_mode(t: Any) -> None:
    """None: there is no such mode."""
    return None
