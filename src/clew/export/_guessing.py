"""An example of a module's argument, where it is saved before it was called."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import clew
from clew import Tensor, nn
from clew.export._state import quiet_state

__all__ = ["guessed"]


def guessed(module: nn.Module) -> Tensor | None:
    """A batch of two that the module takes, found by its first layer with weights; None where it
    takes more than one argument, or none of what is tried."""
    try:
        given = inspect.signature(module.forward).parameters.values()
    except (TypeError, ValueError):
        return None
    needed = [p for p in given if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    if len(needed) != 1 or needed[0].kind is needed[0].VAR_POSITIONAL:
        return None
    layer = next((m for m in module.modules() if next(_candidates(m), None) is not None), None)
    for example in _candidates(layer):
        seen: list[Any] = []
        assert layer is not None
        hook = layer.register_forward_pre_hook(lambda _, args, seen=seen: seen.append(args[0]))
        with quiet_state(module), clew.no_grad():
            try:
                module(example)
            except Exception:
                continue
            finally:
                hook.remove()
        # What is cut or reshaped before may have any number of dims.
        if seen and isinstance(seen[0], Tensor) and seen[0].shape == example.shape:
            return example
    return None


def _candidates(layer: Any) -> Iterator[Tensor]:
    if isinstance(layer, (nn.Embedding, nn.EmbeddingBag)):
        yield clew.zeros(2, 5, dtype=clew.int64)
    elif isinstance(layer, (nn.LSTM, nn.GRU, nn.RNN)):
        yield clew.ones(2, 3, int(layer.input_size))
    elif isinstance(layer, nn.Linear):
        yield clew.ones(2, int(layer.in_features))
        yield clew.ones(2, 5, int(layer.in_features))
    elif _conv_dims(layer):
        channels: Any = layer.in_channels
        for size in (64, 224, 32, 28):
            yield clew.ones(2, channels, *[size] * _conv_dims(layer))


def _conv_dims(layer: Any) -> int:
    for dims, kinds in (
        (1, (nn.Conv1d, nn.ConvTranspose1d)),
        (2, (nn.Conv2d, nn.ConvTranspose2d)),
        (3, (nn.Conv3d, nn.ConvTranspose3d)),
    ):
        if isinstance(layer, kinds):
            return dims
    return 0
