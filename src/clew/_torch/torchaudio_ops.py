"""torchaudio's compiled operations, as far as its Python parts need them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from clew import Tensor
from clew._registered import _Operation, _registry
from clew._registering import _define

__all__ = ["register"]


def _lfilter_core_loop(windows: Tensor, flipped: Tensor, padded: Tensor) -> None:
    """Runs a recursive filter: writes to `padded`, whose first places are the values before.

    windows: (batch, channels, time), the part of the filter that does not look back; flipped:
    (channels, order), the coefficients, the oldest value's first, the present one's 1 last.
    """
    order = flipped.shape[1]
    back = flipped.detach().numpy()[:, : order - 1]
    given = windows.detach().numpy()
    out = padded.detach().numpy()
    for i in range(given.shape[2]):
        past = out[:, :, i : i + order - 1]
        out[:, :, i + order - 1] = given[:, :, i] - np.einsum("bck,ck->bc", past, back)


def _overdrive_core_loop(
    waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor, output: Tensor
) -> None:
    """Takes the mean out of a distorted wave and mixes it with the wave: writes to `output`."""
    wave, bent, out = (t.detach().numpy() for t in (waveform, temp, output))
    before, state = last_in.detach().numpy(), last_out.detach().numpy()
    for i in range(wave.shape[-1]):
        state = bent[:, i] - before + 0.995 * state
        before = bent[:, i]
        out[:, i] = wave[:, i] * 0.5 + state * 0.75


def register() -> None:
    """Adds the operations. Those without a kernel say so when they are called."""
    kernels: dict[str, Callable[..., Any]] = {
        "_torchaudio::is_align_available": lambda: False,
        "_torchaudio::is_rir_available": lambda: False,
        "torchaudio::_lfilter_core_loop": _lfilter_core_loop,
        "torchaudio::_overdrive_core_loop": _overdrive_core_loop,
    }
    for full, kernel in kernels.items():
        if full not in _registry:
            _define(full, None)._kernel = kernel
    for short in ("forced_align", "rnnt_loss_forward", "rnnt_loss"):
        full = f"torchaudio::{short}"
        _registry.setdefault(full, _Operation(full, None))
