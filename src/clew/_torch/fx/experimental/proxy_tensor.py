"""Recording of single operations: not part of clew; fx.symbolic_trace records programs."""

from __future__ import annotations

from typing import Any

from clew._torch.absent import absent

_WHY = "fx.symbolic_trace records programs; what is inside of operations is not recorded"
ProxyTorchDispatchMode = absent("fx.experimental.proxy_tensor", "ProxyTorchDispatchMode", _WHY)
make_fx = absent("fx.experimental.proxy_tensor", "make_fx", _WHY)


def get_proxy_mode() -> None:
    """None: nothing is recorded in this way."""
    return None


def maybe_disable_fake_tensor_mode() -> Any:
    """A block in which tensors have data, as they have anyway."""
    import contextlib

    return contextlib.nullcontext()
