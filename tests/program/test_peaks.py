"""A step whose calls wait needs no more memory than the same step at once, and takes none anew."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable

import pytest

import clew
from clew import nn

N = 200_000


def gelu() -> Callable[[], object]:
    x = clew.randn(N, requires_grad=True)

    def step() -> object:
        x.grad = None
        y = 0.5 * x * (1 + clew.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
        y.sum().backward()
        return x.grad

    return step


def adam() -> Callable[[], object]:
    state = {"p": clew.randn(N), "m": clew.zeros(N), "v": clew.zeros(N)}
    g = clew.randn(N)

    def step() -> object:
        m = 0.9 * state["m"] + 0.1 * g
        v = 0.999 * state["v"] + 0.001 * g * g
        state["p"] = state["p"] - 1e-3 * m / (v.sqrt() + 1e-8)
        state["m"], state["v"] = m, v
        return state["p"]

    return step


def layer_norm() -> Callable[[], object]:
    x = clew.randn(400, 512, requires_grad=True)
    weight = clew.ones(512, requires_grad=True)

    def step() -> object:
        x.grad = weight.grad = None
        centred = x - x.mean(-1, keepdim=True)
        y = centred / clew.sqrt((centred * centred).mean(-1, keepdim=True) + 1e-5) * weight
        (y * y).sum().backward()
        return x.grad

    return step


def perceptron() -> Callable[[], object]:
    net = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 512), nn.GELU())
    optimizer = clew.optim.Adam(net.parameters())
    x = clew.randn(256, 64)

    def step() -> object:
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def attention() -> Callable[[], object]:
    layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
    x = clew.randn(8, 128, 128)

    def step() -> object:
        layer.zero_grad()
        loss = layer(x).square().mean()
        loss.backward()
        return loss

    return step


def recurrent() -> Callable[[], object]:
    layer = nn.LSTM(64, 128, batch_first=True)
    x = clew.randn(16, 50, 64)

    def step() -> object:
        layer.zero_grad()
        loss = layer(x)[0].square().mean()
        loss.backward()
        return loss

    return step


def peak(step: Callable[[], object]) -> tuple[int, int]:
    """Bytes of one step above what lives before it, and bytes taken from the system in it."""
    for _ in range(3):
        step()
    gc.collect()
    clew.reset_peak_memory_stats()
    before = clew.memory_stats()
    step()
    after = clew.memory_stats()
    return after["peak_bytes"], after["fresh_bytes"] - before["fresh_bytes"]


@pytest.mark.parametrize(
    ("make", "share"),
    [
        (gelu, 0.8),
        (adam, 0.8),
        (layer_norm, 0.8),
        (perceptron, 1.0),
        (attention, 1.0),
        (recurrent, 1.0),
    ],
)
def test_peaks_of_steps(make, share):
    clew.manual_seed(0)
    at_once, _ = peak(make())
    clew.manual_seed(0)
    waiting, taken = peak(clew.compile(make()))
    assert waiting <= share * at_once
    assert taken == 0


def test_results_lie_in_the_bytes_of_operands_that_nobody_needs():
    x = clew.randn(N)
    gc.collect()
    with clew.deferred():
        y = (x + 1).cumsum(0)  # at once with what it reads, and so a result with bytes
        z = (y * 2 + 1).exp()
        kept = y  # which somebody still sees
        del y
    assert clew.equal(kept, (x + 1).cumsum(0)) and clew.equal(z, (kept * 2 + 1).exp())
    with clew.deferred():
        y = clew.cumsum(x, 0)
        z = y.sum(0, keepdim=True) + (y * 2 + 1)
        w = y.view(2, -1) * 3
        del y
    y = clew.cumsum(x, 0)
    assert clew.equal(z, y.sum(0, keepdim=True) + (y * 2 + 1))
    assert clew.equal(w, y.view(2, -1) * 3)


def test_an_operand_that_stands_twice_is_not_written_over_early():
    def chain(x: clew.Tensor) -> clew.Tensor:
        y = x.cumsum(-1)
        z = y * y - y
        del y
        return z.tanh() + z

    x = clew.randn(300, 700)
    with clew.deferred():
        got = chain(x)
    assert clew.equal(got, chain(x))


def test_an_operand_that_is_read_transposed_too_is_not_written_over():
    def turned(x: clew.Tensor) -> clew.Tensor:
        y = x.cumsum(0)
        z = y - y.t()
        del y
        return z

    x = clew.randn(300, 300)
    with clew.deferred():
        got = turned(x)
    assert clew.equal(got, turned(x))
