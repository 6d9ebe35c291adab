"""The step that does all parameters in one pass over memory, against tensor operations."""

from __future__ import annotations

import numpy as np
import pytest

import clew
from clew import optim

RULES = [
    (optim.Adam, {}),
    (optim.Adam, {"weight_decay": 0.1, "betas": (0.7, 0.8), "eps": 1e-3}),
    (optim.Adam, {"amsgrad": True, "maximize": True}),
    (optim.Adam, {"decoupled_weight_decay": True, "weight_decay": 0.2}),
    (optim.AdamW, {"amsgrad": True, "weight_decay": 0.3}),
    (optim.SGD, {}),
    (optim.SGD, {"weight_decay": 0.1, "maximize": True}),
    (optim.SGD, {"momentum": 0.9}),
    (optim.SGD, {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    (optim.SGD, {"momentum": 0.9, "nesterov": True}),
]
SHAPES = [(), (0,), (1,), (7, 5), (3, 1, 2), (8192,), (50, 401), (100_003,)]


def parameters(dtype):
    rng = np.random.default_rng(0)
    found = [clew.tensor(rng.standard_normal(s)).to(dtype) for s in SHAPES]
    found.append(clew.tensor(rng.standard_normal((6, 4))).to(dtype).t())  # not contiguous
    found.append(clew.tensor(rng.standard_normal(9)).to(clew.bfloat16))
    found.append(clew.tensor(rng.standard_normal(9) + 1j))
    return [p.requires_grad_() for p in found]


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
@pytest.mark.parametrize(("kind", "options"), RULES)
def test_agrees_with_tensor_operations(kind, options, dtype):
    one, other = parameters(dtype), parameters(dtype)
    fast = kind(one, lr=0.05, **options)
    slow = kind(other, lr=0.05, fused=False, **options)
    rng = np.random.default_rng(1)
    for step in range(5):
        for i, (p, q) in enumerate(zip(one, other)):
            if i == 3 and step == 2:  # without a gradient once: its count of steps lags behind
                p.grad = q.grad = None
                continue
            g = clew.tensor(rng.standard_normal(tuple(p.shape))).to(p.dtype)
            p.grad, q.grad = g.clone(), g.clone()
        fast.step()
        slow.step()
    tolerance = {clew.float32: 3e-6, clew.float64: 1e-13, clew.bfloat16: 0, clew.complex128: 1e-13}
    for p, q in zip(one, other):
        np.testing.assert_allclose(
            p.detach().to(clew.complex128).numpy(),
            q.detach().to(clew.complex128).numpy(),
            rtol=tolerance[p.dtype],
            atol=tolerance[p.dtype],
        )
        for key, value in slow.state.get(q, {}).items():
            if value is not None:
                assert fast.state[p][key].shape == value.shape
                assert clew.allclose(fast.state[p][key], value, rtol=1e-4, atol=1e-5)
    assert not any(p.requires_grad is False for p in one)


def test_writes_are_counted_and_threads_agree():
    before = clew.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            clew.set_num_threads(threads)
            p = parameters(clew.float32)[-4].requires_grad_()
            p.grad = p.detach() * 2
            version = p._version
            optim.Adam([p], lr=0.1).step()
            assert p._version > version
            results.append(p.detach().clone())
    finally:
        clew.set_num_threads(before)
    assert results[0].equal(results[1])
    x = clew.ones(3, requires_grad=True)
    y = (x * x).sum()
    x.grad = clew.ones(3)
    optim.SGD([x], lr=0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_values_that_are_not_finite():
    for kind in (optim.Adam, optim.SGD):
        for fused in (None, False):
            p = clew.tensor([float("inf"), 1.0, 2.0], requires_grad=True)
            p.grad = clew.tensor([1.0, float("nan"), 1.0])
            kind([p], lr=0.5, fused=fused).step()
            assert p[0] == float("inf") and p[1].isnan() and p[2] < 2


def test_state_that_somebody_replaced():
    p, q = clew.ones(4, requires_grad=True), clew.ones(4, requires_grad=True)
    fast, slow = optim.Adam([p], lr=0.1), optim.Adam([q], lr=0.1, fused=False)
    for opt, w in ((fast, p), (slow, q)):
        w.grad = clew.arange(4.0)
        opt.step()
        opt.state[w]["exp_avg"] = clew.zeros(2, 4).t()[:, 0]  # strided
        opt.step()
    assert clew.allclose(p, q)


def test_parameters_in_the_same_memory_are_updated_one_after_the_other():
    for _ in range(5):
        memory = clew.ones(1_000_000)
        params = [clew.nn.Parameter(memory), clew.nn.Parameter(memory)]
        for p in params:
            p.grad = clew.ones_like(memory)
        clew.optim.SGD(params, lr=1.0).step()
        assert (memory == -1).all()


def test_steps_count_as_writes_to_the_state():
    w = clew.nn.Parameter(clew.ones(3))
    x = clew.ones(3, requires_grad=True)
    for opt, key in (
        (clew.optim.Adam([w]), "exp_avg"),
        (clew.optim.SGD([w], momentum=0.9), "momentum_buffer"),
    ):
        w.grad = clew.ones(3)
        opt.step()
        loss = (x * opt.state[w][key]).sum()
        opt.step()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
