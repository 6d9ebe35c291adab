"""Sequences of many lengths: a ragged batch beside the same batch with padding.

A training step of a transformer encoder layer, written by hand so that both libraries run the same
source, on 64 sequences of 8 to 512 tokens (log-uniform); PyTorch has its jagged layout. The share
of tokens that are real is the ideal of (ragged / padded). B batch, T time, D width, H heads.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

from bench.suites.compile import alternated

UNIT = "ms, or a ratio"
BETTER = "lower"
B, D, H = 64, 128, 4
RAGGED, PADDED = "encoder layer, ragged", "encoder layer, padded and masked"
SHARE = "encoder layer, ragged / padded over the share of real tokens"
LIMITS = {SHARE: 1.1}


def layer(t: Any) -> tuple[Callable[..., Any], list[Any]]:
    """A post-norm encoder layer as a function of tokens and a mask, and its parameters."""
    nn, f = t.nn, t.nn.functional
    # Three projections: PyTorch's attention takes no chunks of a jagged tensor.
    query, key, value, out = (nn.Linear(D, D) for _ in range(4))
    up, down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)
    first, second = nn.LayerNorm(D), nn.LayerNorm(D)

    def run(x: Any, mask: Any = None) -> Any:
        q, k, v = (m(x).unflatten(-1, [H, D // H]).transpose(1, 2) for m in (query, key, value))
        y = f.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = first(x + out(y.transpose(1, 2).flatten(-2)))
        return second(x + down(f.relu(up(x))))

    modules = (query, key, value, out, up, down, first, second)
    return run, [p for m in modules for p in m.parameters()]


def run(t: Any) -> dict[str, float]:
    """Steps, alternated in one process."""
    t.manual_seed(0)
    rng = random.Random(0)
    lengths = [int(8 * 64 ** rng.random()) for _ in range(B)]
    T = max(lengths)
    rows = [t.randn(n, D) for n in lengths]
    padded = t.zeros(B, T, D)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    real = t.arange(T) < t.tensor(lengths).unsqueeze(1)
    mask = real.view(B, 1, 1, T)
    ragged = t.nested.nested_tensor(rows, layout=t.jagged)
    forward, parameters = layer(t)

    def clear() -> None:
        for p in parameters:
            p.grad = None

    def dense() -> None:
        clear()
        forward(padded, mask)[real].square().mean().backward()

    def jagged() -> None:
        clear()
        forward(ragged).values().square().mean().backward()

    found: dict[str, float] = {}
    calls, labels = [dense], [PADDED]
    try:
        jagged()
    except RuntimeError as error:
        print(f"ragged: {str(error).splitlines()[0]}", file=sys.stderr)
    else:
        calls.append(jagged)
        labels.append(RAGGED)
    found.update(zip(labels, alternated(calls, 6, 5), strict=True))
    if RAGGED in found:
        share = sum(lengths) / (B * T)
        found[SHARE] = found[RAGGED] / found[PADDED] / share
    return found
