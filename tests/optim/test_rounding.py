"""Updates in float32 round where the tensor operations that they stand for round.

Each rule is written out with NumPy in float32; a product that is added is rounded once with the
sum, as by the fused instructions: in float64 that is exact enough to say what it comes to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clew
from clew import optim

f4, f8 = np.float32, np.float64


def fused(a: Any, b: Any, c: Any) -> Any:
    return (f8(1) * f4(a) * f8(1) * np.asarray(b, f8) + np.asarray(c, f8)).astype(f4)


def adam(p, g, s, step, lr=1e-3, decay=0.0, beta=0.9):
    p = p * f4(1 - lr * decay)
    # A mean is reached from its nearer end, as by lerp().
    if 1 - beta >= 0.5:
        s["m"] = fused(f4(1) - f4(1 - beta), s["m"] - g, g)
    else:
        s["m"] = fused(1 - beta, g - s["m"], s["m"])
    s["v"] = fused(1.0, f4(1 - 0.999) * g * g.astype(f8), f4(0.999) * s["v"])
    root = np.sqrt(s["v"]) / f4((1 - 0.999**step) ** 0.5) + f4(1e-8)
    return p + f4(-lr / (1 - beta**step)) * s["m"] / root


def momentum(p, g, s, step):
    s["m"] = g if step == 1 else f4(0.9) * s["m"] + g
    return fused(-1e-2, s["m"], p)


def nesterov(p, g, s, step):
    s["m"] = g if step == 1 else f4(0.9) * s["m"] + g
    return fused(-1e-2, fused(0.9, s["m"], g), p)


def rmsprop(p, g, s, step):
    s["v"] = fused(1.0, f4(1 - 0.99) * g * g.astype(f8), f4(0.99) * s["v"])
    return p + f4(-1e-2) * g / (np.sqrt(s["v"]) + f4(1e-8))


def adagrad(p, g, s, step):
    s["v"] = fused(1.0, g * g.astype(f8), s["v"])
    return p + f4(-1e-2) * g / (np.sqrt(s["v"]) + f4(1e-10))


RULES = {
    "Adam": (lambda p: optim.Adam(p), adam),
    "Adam, short memory": (
        lambda p: optim.Adam(p, betas=(0.3, 0.999)),
        lambda *a: adam(*a, beta=0.3),
    ),
    "AdamW": (lambda p: optim.AdamW(p), lambda *a: adam(*a, decay=1e-2)),
    "SGD": (lambda p: optim.SGD(p, lr=1e-2, momentum=0.9), momentum),
    "SGD, nesterov": (lambda p: optim.SGD(p, lr=1e-2, momentum=0.9, nesterov=True), nesterov),
    "RMSprop": (lambda p: optim.RMSprop(p), rmsprop),
    "Adagrad": (lambda p: optim.Adagrad(p), adagrad),
}


@pytest.mark.skipif(
    clew.backends.cpu.get_cpu_capability() == "DEFAULT", reason="no fused multiply-add"
)
@pytest.mark.parametrize("name", RULES)
def test_float32(name: str) -> None:
    make, rule = RULES[name]
    rng = np.random.default_rng(0)
    start = rng.standard_normal(2048).astype(f4)
    p = clew.from_numpy(start.copy()).requires_grad_()
    opt, state = make([p]), {"m": np.zeros_like(start), "v": np.zeros_like(start)}
    for step in range(1, 5):
        g = rng.standard_normal(2048).astype(f4)
        p.grad = clew.from_numpy(g.copy())
        opt.step()
        start = rule(start, g, state, step)
        assert start.dtype == f4
        # Rounded twice by way of float64, a sum may come out otherwise; hardly one in a thousand.
        assert (p.detach().numpy() == start).mean() > 0.99, step
