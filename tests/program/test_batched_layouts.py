"""Memory order and requires_grad of a sample do not depend on the samples beside it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from plain_and_batched import assert_close

import clew
from clew import nn

Program = Callable[[clew.Tensor], clew.Tensor]


def turned_views(x: clew.Tensor) -> clew.Tensor:
    y = x * 2
    a, _, _ = (t.reshape(2, 2, 4).transpose(0, 1) for t in (y, y, y))
    return a.exp().transpose(0, 1).reshape(2, 8)


def equal_calls(x: clew.Tensor) -> clew.Tensor:
    p = (x * 1.5).reshape(2, 2, 4).permute(2, 0, 1)
    a, _ = (p * p for _ in range(2))
    return a.reshape(4, -1)


def through_a_sum(x: clew.Tensor) -> clew.Tensor:
    p = (x + 1).reshape(4, 2, 2).permute(1, 2, 0)
    return (p.sin() + p.cos()).transpose(0, 2).reshape(4, 4) @ clew.ones(4, 2, dtype=x.dtype)


def steps(x: clew.Tensor) -> clew.Tensor:
    p = (x * 3).reshape(4, 4).T[:, ::2]
    return (p.exp() * p).T.reshape(-1)


def expanded(x: clew.Tensor) -> clew.Tensor:
    p = (x * 3).reshape(16)[:4].reshape(4, 1).expand(4, 3).T
    return (p * p).T.reshape(-1) + p.reshape(-1)


PROGRAMS: dict[str, Program] = {
    f.__name__: f for f in (turned_views, equal_calls, through_a_sum, steps, expanded)
}


def outcomes(program: Program, samples: list[clew.Tensor], batched: bool) -> list[clew.Tensor]:
    if not batched:
        return [program(x) for x in samples]
    with clew.autobatch():
        return [program(x) for x in samples]


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("name", PROGRAMS)
def test_views_of_turned_results(name, count):
    clew.manual_seed(0)
    samples = [clew.randn(2, 8, dtype=clew.float64) for _ in range(count)]
    plain, batched = (outcomes(PROGRAMS[name], samples, way) for way in (False, True))
    for got, want in zip(batched, plain, strict=True):
        assert_close(got, want, 1e-12)
    leaves = [[x.clone().requires_grad_() for x in samples] for _ in range(2)]
    for own, way in zip(leaves, (False, True), strict=True):
        clew.stack([o.square().sum() for o in outcomes(PROGRAMS[name], own, way)]).sum().backward()
    for got, want in zip(leaves[1], leaves[0], strict=True):
        assert_close(got.grad, want.grad, 1e-12)


def test_attention_of_samples_of_one_length():
    clew.manual_seed(0)
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    samples = [clew.randn(5, 8) for _ in range(4)]

    def program(x: clew.Tensor) -> clew.Tensor:
        return attention(x, x, x, need_weights=False)[0]

    plain, batched = (outcomes(program, samples, way) for way in (False, True))
    for got, want in zip(batched, plain, strict=True):
        assert clew.allclose(got, want, rtol=1e-5, atol=1e-6)


def test_samples_without_a_weight_require_no_grad():
    w = clew.ones(4, requires_grad=True)

    def program(i: int) -> clew.Tensor:
        h = clew.ones(4) * i
        h = h * w if i % 2 else h
        return h.relu() * 2

    with clew.autobatch():
        found = [program(i) for i in range(6)]
    assert [t.requires_grad for t in found] == [bool(i % 2) for i in range(6)]
    assert found[2].numpy().tolist() == [4.0] * 4
    clew.stack([t.sum() for t in found]).sum().backward()
    assert w.grad.tolist() == [2.0 * (1 + 3 + 5)] * 4
    kept = clew.autobatch.map(program, range(6))
    assert [t.requires_grad for t in kept] == [bool(i % 2) for i in range(6)]
