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
    (optim.RMSprop, {}),
    (optim.RMSprop, {"momentum": 0.9, "weight_decay": 0.1, "alpha": 0.7}),
    (optim.RMSprop, {"centered": True, "maximize": True, "eps": 1e-2}),
    (optim.RMSprop, {"centered": True, "momentum": 0.5, "eps": 1e-2}),
    (optim.Adagrad, {}),
    (optim.Adagrad, {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.2}),
    (optim.Adagrad, {"maximize": True}),
    (optim.NAdam, {}),
    (optim.NAdam, {"weight_decay": 0.1, "momentum_decay": 0.02, "maximize": True}),
    (optim.NAdam, {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    (optim.RAdam, {"betas": (0.8, 0.9)}),
    (optim.RAdam, {"weight_decay": 0.1, "maximize": True}),
    (optim.RAdam, {"weight_decay": 0.1, "decoupled_weight_decay": True, "betas": (0.5, 0.6)}),
    (optim.Adamax, {}),
    (optim.Adamax, {"weight_decay": 0.1, "maximize": True, "betas": (0.5, 0.6)}),
    (optim.Adadelta, {}),
    (optim.Adadelta, {"weight_decay": 0.1, "maximize": True, "rho": 0.6}),
]


def by_operations(opt):
    """The optimizer without its pass over memory."""
    for group in opt.param_groups:
        group["fused"] = False
    return opt


SHAPES = [(), (0,), (1,), (7, 5), (3, 1, 2), (8192,), (50, 401), (100_003,)]


def parameters(dtype):
    rng = np.random.default_rng(0)
    found = [clew.tensor(rng.standard_normal(s)).to(dtype) for s in SHAPES]
    found.append(clew.tensor(rng.standard_normal((6, 4))).to(dtype).t())  # not contiguous
    found.append(clew.tensor(rng.standard_normal(9)).to(clew.bfloat16))
    found.append(clew.tensor(rng.standard_normal(9) + 1j))
    return [p.requires_grad_() for p in found]


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.bfloat16])
@pytest.mark.parametrize(("kind", "options"), RULES)
def test_agrees_with_tensor_operations(kind, options, dtype):
    one, other = parameters(dtype), parameters(dtype)
    fast = kind(one, lr=0.05, **options)
    slow = by_operations(kind(other, lr=0.05, **options))
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
    # Operations round to half precision one by one, the pass over memory once.
    tolerance = {
        clew.float32: 2e-5,
        clew.float64: 1e-13,
        clew.bfloat16: 0.06,
        clew.complex128: 1e-13,
    }
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
                if p.dtype is not clew.bfloat16:  # sums of rounded terms near zero
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


def test_dense_parameters_of_another_layout_are_updated_as_they_lie():
    for kind in (optim.Adam, optim.SGD, optim.RMSprop):
        p = clew.nn.Parameter(clew.randn(2, 3, 4, 5).to(memory_format=clew.channels_last))
        q = clew.nn.Parameter(p.detach().contiguous())
        for w in (p, q):
            w.grad = (
                clew.arange(120.0)
                .reshape(2, 3, 4, 5)
                .to(memory_format=clew.channels_last if w is p else clew.contiguous_format)
            )
            opt = kind([w], lr=0.1)
            opt.step()
            assert opt._clew_update_all(opt.param_groups[0], [w]) is None
        assert clew.allclose(p, q)


def test_one_parameter_twice_is_updated_twice():
    with pytest.warns(UserWarning, match="twice"):
        p = clew.nn.Parameter(clew.ones(300_000))
        opt = optim.SGD([p, p], lr=1.0)
    p.grad = clew.ones_like(p)
    opt.step()
    assert (p == -1).all()


def test_parameters_without_gradients_have_no_state():
    p, q = clew.nn.Parameter(clew.ones(2)), clew.nn.Parameter(clew.ones(2))
    p.grad = clew.ones(2)
    for kind in (optim.Adam, optim.RMSprop, optim.NAdam, optim.ASGD, optim.Rprop):
        opt = kind([p, q])
        opt.step()
        assert list(opt.state) == [p]
    assert q.tolist() == [1.0, 1.0]


def test_zero_grad_of_all_kinds():
    p, q = clew.nn.Parameter(clew.ones(2)), clew.nn.Parameter(clew.ones(2))
    opt = optim.SGD([p, q], lr=0.1)
    p.grad = kept = clew.ones(2)
    opt.zero_grad(set_to_none=False)
    assert p.grad is kept and kept.tolist() == [0.0, 0.0]
    opt.zero_grad()
    assert p.grad is None and q.grad is None


def test_hyperparameters_as_tensors():
    p, q = clew.nn.Parameter(clew.ones(2)), clew.nn.Parameter(clew.ones(2))
    for w, lr in ((p, 0.25), (q, clew.tensor(0.25))):
        w.grad = clew.ones(2)
        optim.Adam([w], lr=lr).step()
    assert p.equal(q)


@pytest.mark.parametrize("dtype", [clew.bfloat16, clew.float16])
@pytest.mark.parametrize(("kind", "options"), RULES)
def test_half_precision_is_within_a_rounding_of_float32(kind, options, dtype):
    for n in (1, 255, 20_000):
        p = clew.nn.Parameter(clew.randn(n).to(dtype))
        q = clew.nn.Parameter(p.detach().float())
        p.grad = clew.randn(n).to(dtype)
        q.grad = p.grad.float()
        for w in (p, q):
            kind([w], lr=0.05, **options).step()
        ulp = {clew.bfloat16: 2.0**-7, clew.float16: 2.0**-10}[dtype]
        assert clew.allclose(p.float(), q, rtol=ulp, atol=2 * ulp * 0.05)


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad])
def test_a_fused_step_unscales_what_a_scaler_has_set(kind):
    def made(fused):
        w = clew.ones(3, requires_grad=True)
        return w, kind([{"params": [w]}, {"params": [clew.zeros(1)]}], lr=0.1, fused=fused)

    (w, opt), (expected, plain) = made(True), made(None)
    for scale, found in ((4.0, 0.0), (2.0, 1.0), (2.0, None), (None, 1.0)):
        w.grad = clew.tensor([8.0, -4.0, 2.0])
        opt.grad_scale = None if scale is None else clew.tensor(scale)
        opt.found_inf = None if found is None else clew.tensor(found)
        before = w.detach().clone()
        opt.step()
        if found:
            assert clew.equal(w, before)
            assert w.grad.tolist() == [8, -4, 2]  # of a step that was left out
            continue
        expected.grad = clew.tensor([8.0, -4.0, 2.0]) / scale
        plain.step()
        assert clew.equal(w, expected)
        assert clew.equal(w.grad, expected.grad)
    del opt.grad_scale, opt.found_inf
    w.grad = clew.ones(3)
    opt.step()
    assert w.grad.tolist() == [1, 1, 1]

    plain.found_inf = clew.tensor(0.0)
    with pytest.raises(AssertionError, match=f"{kind.__name__}.*fused=True"):
        plain.step()
