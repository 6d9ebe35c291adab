"""Whole steps in plain operations, as they are and compiled: first result and steady state.

Each step is written as people write before a fused operation exists. B batch, T length, C channels.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.suites import training

UNIT = "ms"
BETTER = "lower"
COMPILED, EAGER, FIRST = ", compiled", ", eager", ", first result"


def gelu_chain(t: Any) -> Callable[[], Any]:
    """The tanh form of gelu over four million elements, forward and backward."""
    x = t.randn(4_000_000, requires_grad=True)

    def step() -> Any:
        x.grad = None
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        y = 0.5 * x * (1 + t.tanh(inner))
        y.sum().backward()
        return x.grad

    return step


def black_scholes(t: Any) -> Callable[[], Any]:
    """Prices of European calls with their gradients (Black and Scholes 1973)."""
    n = 1_000_000
    spot = (t.rand(n) * 50 + 75).requires_grad_()
    volatility = (t.rand(n) * 0.3 + 0.1).requires_grad_()
    strike, years, rate = t.rand(n) * 50 + 75, t.rand(n) + 0.2, 0.03

    def normal(z: Any) -> Any:
        return 0.5 * (1 + t.erf(z / math.sqrt(2)))

    def step() -> Any:
        spot.grad = volatility.grad = None
        spread = volatility * t.sqrt(years)
        d1 = (t.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
        d2 = d1 - spread
        price = spot * normal(d1) - strike * t.exp(-rate * years) * normal(d2)
        price.sum().backward()
        return spot.grad

    return step


def block_by_hand(t: Any) -> Callable[[], Any]:
    """RMSNorm, rotary positions and SwiGLU written out, forward and backward."""
    B, T, C, heads = 4, 256, 256, 4
    D = C // heads
    x = t.randn(B, T, C)
    weights = {
        "q": (C, C), "k": (C, C), "v": (C, C), "o": (C, C), "gate": (C, 2 * C), "up": (C, 2 * C),
        "down": (2 * C, C),
    }  # fmt: skip
    p = {name: (t.randn(*s) / math.sqrt(s[0])).requires_grad_() for name, s in weights.items()}
    p["norm1"], p["norm2"] = t.ones(C, requires_grad=True), t.ones(C, requires_grad=True)
    angles = t.arange(T)[:, None] * 10_000 ** (-t.arange(0, D, 2) / D)
    cos, sin = t.cos(angles), t.sin(angles)

    def norm(y: Any, weight: Any) -> Any:
        return y * t.rsqrt((y * y).mean(-1, keepdim=True) + 1e-6) * weight

    def rotate(y: Any) -> Any:
        a, b = y[..., : D // 2], y[..., D // 2 :]
        return t.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def split(y: Any) -> Any:
        return y.view(B, T, heads, D).transpose(1, 2)

    def step() -> Any:
        for w in p.values():
            w.grad = None
        y = norm(x, p["norm1"])
        q, k, v = (split(y @ p[name]) for name in "qkv")
        q, k = rotate(q), rotate(k)
        scores = t.softmax(q @ k.transpose(-1, -2) / math.sqrt(D), -1)
        y = x + (scores @ v).transpose(1, 2).reshape(B, T, C) @ p["o"]
        z = norm(y, p["norm2"])
        gate = z @ p["gate"]
        y = y + (gate * t.sigmoid(gate) * (z @ p["up"])) @ p["down"]
        (y * y).mean().backward()
        return y

    return step


def lstm_by_hand(t: Any) -> Callable[[], Any]:
    """An LSTM of 64 steps in four gates, forward and backward."""
    B, T, C = 32, 64, 128
    x = t.randn(T, B, C)
    w = (t.randn(2 * C, 4 * C) / math.sqrt(2 * C)).requires_grad_()
    bias = t.zeros(4 * C, requires_grad=True)

    def step() -> Any:
        w.grad = bias.grad = None
        h, c = t.zeros(B, C), t.zeros(B, C)
        for xt in x:
            i, f, g, o = (t.cat([xt, h], 1) @ w + bias).chunk(4, 1)
            c = t.sigmoid(f) * c + t.sigmoid(i) * t.tanh(g)
            h = t.sigmoid(o) * t.tanh(c)
        (h * h).sum().backward()
        return h

    return step


def layer_norm_by_hand(t: Any) -> Callable[[], Any]:
    """Layer norm of 4096 rows of 1024 in mean, difference and variance, forward and backward."""
    x = t.randn(4096, 1024, requires_grad=True)
    weight, bias = t.ones(1024, requires_grad=True), t.zeros(1024, requires_grad=True)
    to = t.randn(4096, 1024)

    def step() -> Any:
        x.grad = weight.grad = bias.grad = None
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        y = centred / t.sqrt(variance + 1e-5) * weight + bias
        (y * to).sum().backward()
        return x.grad

    return step


def softmax_by_hand(t: Any) -> Callable[[], Any]:
    """Softmax cross-entropy of 1024 rows of 4000 classes, forward and backward."""
    x = t.randn(1024, 4000, requires_grad=True)
    labels = t.randint(0, 4000, (1024, 1))

    def step() -> Any:
        x.grad = None
        shifted = x - x.detach().amax(-1, keepdim=True)
        logs = shifted - t.log(t.exp(shifted).sum(-1, keepdim=True))
        (-logs.gather(1, labels)).mean().backward()
        return x.grad

    return step


def adam_by_hand(t: Any) -> Callable[[], Any]:
    """Adam's update of two million parameters (Kingma and Ba 2015)."""
    n = 2_000_000
    state = {"p": t.randn(n), "m": t.zeros(n), "v": t.zeros(n)}
    g = t.randn(n)
    count = [0]

    def step() -> Any:
        count[0] += 1
        m = 0.9 * state["m"] + 0.1 * g
        v = 0.999 * state["v"] + 0.001 * g * g
        m_hat, v_hat = m / (1 - 0.9 ** (count[0] % 50 + 1)), v / (1 - 0.999 ** (count[0] % 50 + 1))
        state["p"] = state["p"] - 1e-3 * m_hat / (t.sqrt(v_hat) + 1e-8)
        state["m"], state["v"] = m, v
        return state["p"]

    return step


def diffusion(t: Any) -> Callable[[], Any]:
    """Noise added to images by a cosine schedule, and the weighted loss of a guess."""
    B = 64
    images, noise = t.randn(B, 3, 64, 64), t.randn(B, 3, 64, 64)
    guess = t.randn(B, 3, 64, 64, requires_grad=True)
    at = t.rand(B, 1, 1, 1)

    def step() -> Any:
        guess.grad = None
        keep = t.cos((at + 0.008) / 1.008 * math.pi / 2) ** 2
        noisy = t.sqrt(keep) * images + t.sqrt(1 - keep) * noise
        clean = (noisy - t.sqrt(1 - keep) * guess) / t.sqrt(keep)
        error = (clean.clamp(-1, 1) - images) ** 2 + (guess - noise) ** 2
        (error * keep / (1 - keep + 0.01)).mean().backward()
        return guess.grad

    return step


def pinn(t: Any) -> Callable[[], Any]:
    """The residual of a heat equation, from second derivatives of a small network."""
    layers = [t.nn.Linear(2, 64), t.nn.Linear(64, 64), t.nn.Linear(64, 1)]
    net = t.nn.Sequential(layers[0], t.nn.Tanh(), layers[1], t.nn.Tanh(), layers[2])
    x = t.rand(2048, 1, requires_grad=True)
    time_ = t.rand(2048, 1, requires_grad=True)

    def step() -> Any:
        for p in net.parameters():
            p.grad = None
        u = net(t.cat([x, time_], 1))
        (ux, ut) = t.autograd.grad(u.sum(), (x, time_), create_graph=True)
        (uxx,) = t.autograd.grad(ux.sum(), x, create_graph=True)
        loss = ((ut - 0.1 * uxx) ** 2).mean()
        loss.backward()
        return loss

    return step


def policy(t: Any) -> Callable[[], Any]:
    """One action of a small policy, for one observation."""
    net = t.nn.Sequential(t.nn.Linear(8, 64), t.nn.Tanh(), t.nn.Linear(64, 4))
    seen = t.randn(1, 8)

    def step() -> Any:
        with t.no_grad():
            return t.softmax(net(seen), -1).argmax(-1)

    return step


def tiny_mlp(t: Any) -> Callable[[], Any]:
    """A training step of an MLP 8-16-4, batch 4."""
    return training.mlp(t, 4, 8, 16, 4)


def branches(t: Any) -> Callable[[], Any]:
    """A function whose next operation depends on a value that it computed."""
    inputs = [t.randn(200_000) + 0.05 * k for k in range(-4, 4)]
    turn = [0]

    def step() -> Any:
        turn[0] += 1
        x = inputs[turn[0] % len(inputs)]
        for _ in range(4):
            x = t.tanh(x) * 1.5 + 0.1 if x.mean() > 0 else t.sin(x) * 1.2 - x * x * 0.1
        return x

    return step


def new_lengths(t: Any) -> Callable[[], Any]:
    """A masked attention pool over sequences whose length is another each time."""
    C = 64
    w = (t.randn(C, C) / 8).requires_grad_()
    query = t.randn(C, requires_grad=True)
    long = t.randn(8, 4096, C)
    turn = [0]

    def step() -> Any:
        w.grad = query.grad = None
        turn[0] += 1
        x = long[:, : 256 + turn[0] * 37 % 401]
        h = t.tanh(x @ w)
        scores = (h * query).sum(-1, keepdim=True)
        shares = t.exp(scores - scores.detach().amax(1, keepdim=True))
        pooled = (shares * h).sum(1) / shares.sum(1)
        (pooled * pooled).mean().backward()
        return pooled

    return step


def neural_ode(t: Any) -> Callable[[], Any]:
    """Twenty steps of the classical Runge-Kutta method through a small network, and back."""
    net = t.nn.Sequential(t.nn.Linear(2, 64), t.nn.Tanh(), t.nn.Linear(64, 2))
    y0 = t.randn(512, 2)

    def step() -> Any:
        for p in net.parameters():
            p.grad = None
        y, h = y0, 0.05
        for _ in range(20):
            k1 = net(y)
            k2 = net(y + h / 2 * k1)
            k3 = net(y + h / 2 * k2)
            k4 = net(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        (y * y).mean().backward()
        return y

    return step


def gpt_step(t: Any) -> Callable[[], Any]:
    """A training step of a char-GPT of 4 layers of 128, batch 8."""
    return training.gpt(t, 8, layers=4, width=128, heads=4)


WORKLOADS: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "gelu chain": gelu_chain,
    "Black-Scholes": black_scholes,
    "block by hand": block_by_hand,
    "LSTM by hand": lstm_by_hand,
    "layer norm by hand": layer_norm_by_hand,
    "softmax cross-entropy by hand": softmax_by_hand,
    "Adam by hand": adam_by_hand,
    "diffusion": diffusion,
    "PINN": pinn,
    "policy, batch 1": policy,
    "tiny MLP": tiny_mlp,
    "branches": branches,
    "new lengths": new_lengths,
    "GPT step": gpt_step,
    "neural ODE": neural_ode,
}
PARTS = len(WORKLOADS)


def alternated(calls: list[Callable[[], Any]], seconds: float, least: int = 7) -> list[float]:
    """Median times of each in ms, every sample of one beside one of the other."""
    begin = time.perf_counter()
    for call in calls:
        call()
    count = max(1, int(0.01 * len(calls) / max(time.perf_counter() - begin, 1e-9)))
    samples: list[list[float]] = [[] for _ in calls]
    end = time.perf_counter() + seconds
    while len(samples[0]) < least or time.perf_counter() < end:
        for call, found in zip(calls, samples, strict=True):
            start = time.perf_counter()
            for _ in range(count):
                call()
            found.append((time.perf_counter() - start) / count)
    return [statistics.median(found) * 1e3 for found in samples]


def run(t: Any, part: int) -> dict[str, float]:
    """First result and steady state of one workload."""
    name = list(WORKLOADS)[part]
    t.manual_seed(0)
    eager = WORKLOADS[name](t)
    compiled = t.compile(eager)
    eager()
    start = time.perf_counter()
    try:
        compiled()
        first = (time.perf_counter() - start) * 1e3
        for _ in range(3):  # torch.compile looks again when a shape changes
            compiled()
    except Exception as error:
        if t.__name__ != "torch":
            raise
        print(f"{name}: torch.compile fails: {type(error).__name__}", file=sys.stderr)
        (plain,) = alternated([eager], 1.0)
        return {name + EAGER: plain}
    plain, fused = alternated([eager, compiled], 1.5)
    return {name + COMPILED: fused, name + EAGER: plain, name + FIRST: first}
