"""Update rules against trajectories of PyTorch 2.13 in float64, and against formulas."""

import copy
import gc
import json
import math
import pathlib
import pickle

import numpy as np
import pytest

import clew
from clew import optim

HERE = pathlib.Path(__file__).parent
CASES = json.loads((HERE / "trajectories.json").read_text())


def options_of(case):
    return {k: tuple(v) if isinstance(v, list) else v for k, v in case["options"].items()}


def problem(dtype):
    a = clew.tensor([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]], dtype=dtype).requires_grad_()
    b = clew.tensor([0.7, -0.3], dtype=dtype).requires_grad_()
    weights = clew.tensor([1.0, 2.0, 3.0], dtype=dtype)
    mix = clew.tensor([1.0, -1.0, 0.5], dtype=dtype)

    def loss():
        square = ((a - 0.3) ** 2 * weights).sum() / 2
        return square + (a @ mix + b).sin().sum() + (b**4).sum()

    return [a, b], loss


def run(make, steps=6, dtype=clew.float64):
    params, loss = problem(dtype)
    opt = make(params)

    def closure():
        opt.zero_grad()
        value = loss()
        value.backward()
        return value

    for _ in range(steps):
        opt.step(closure)
    return [v for p in params for v in p.detach().flatten().tolist()], opt


def label(case):
    return case["name"] + "".join(f"-{k}={v}" for k, v in case["options"].items())


@pytest.mark.parametrize("case", CASES, ids=label)
def test_trajectory(case):
    values, _ = run(lambda p: getattr(optim, case["name"])(p, **options_of(case)))
    np.testing.assert_allclose(values, case["values"], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=label)
def test_trajectory_float32(case):
    values, _ = run(
        lambda p: getattr(optim, case["name"])(p, **options_of(case)), dtype=clew.float32
    )
    tolerance = 1e-2 if case["name"] == "LBFGS" else 2e-5
    np.testing.assert_allclose(values, case["values"], rtol=tolerance, atol=tolerance)


ELEMENTWISE = [c for c in CASES if c["name"] not in ("LBFGS",)]


@pytest.mark.parametrize("case", [c for c in ELEMENTWISE if "lr" not in c["options"]], ids=label)
def test_tensor_lr_and_groups(case):
    """A tensor lr, and a group of its own for each parameter, change nothing."""
    kind, options = getattr(optim, case["name"]), options_of(case)
    lr = kind([clew.zeros(1)], **options).defaults["lr"]
    values, _ = run(lambda p: kind(p, lr=clew.tensor(lr, dtype=clew.float64), **options))
    np.testing.assert_allclose(values, case["values"], rtol=1e-9, atol=1e-10)
    values, _ = run(lambda p: kind([{"params": [x], "lr": lr} for x in p], lr=99.0, **options))
    np.testing.assert_allclose(values, case["values"], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=label)
def test_state_goes_on_where_it_was_saved(case, tmp_path):
    """Three steps, saved to a file, loaded into a new optimizer, three more: as six steps."""
    kind, options = getattr(optim, case["name"]), options_of(case)
    params, loss = problem(clew.float64)

    def go(opt, steps):
        def closure():
            opt.zero_grad()
            value = loss()
            value.backward()
            return value

        for _ in range(steps):
            opt.step(closure)

    first = kind(params, **options)
    go(first, 3)
    clew.save(first.state_dict(), tmp_path / "opt.pt")
    second = kind(params, **(options if case["name"] == "Muon" else {}))
    second.load_state_dict(clew.load(tmp_path / "opt.pt"))
    go(second, 3)
    values = [v for p in params for v in p.detach().flatten().tolist()]
    np.testing.assert_allclose(values, case["values"], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", sorted({c["name"] for c in CASES}))
def test_pickle_and_deepcopy(name):
    _, opt = run(getattr(optim, name), steps=2)
    for other in (pickle.loads(pickle.dumps(opt)), copy.deepcopy(opt)):
        assert repr(other) == repr(opt)
        assert len(other.state) == len(opt.state)
        params = other.param_groups[0]["params"]
        for p, q in zip(params, opt.param_groups[0]["params"]):
            assert p is not q and clew.equal(p, q)
            assert set(other.state.get(p, {})) == set(opt.state.get(q, {}))
        for p in params:
            p.grad = clew.ones_like(p)
        other.step(lambda: clew.tensor(1.0))


@pytest.mark.parametrize("name", sorted({c["name"] for c in CASES} - {"LBFGS"}))
def test_parameters_without_gradient_stay(name):
    used, unused = clew.ones(2, requires_grad=True), clew.ones(2, requires_grad=True)
    opt = getattr(optim, name)([used, unused])
    (used * used).sum().backward()
    opt.step()
    assert not clew.equal(used.detach(), clew.ones(2))
    assert clew.equal(unused.detach(), clew.ones(2))
    assert opt.step() is None and opt.step(lambda: 5) == 5


@pytest.mark.parametrize("name", sorted({c["name"] for c in CASES} - {"LBFGS", "Adafactor"}))
def test_complex_parameters_are_pairs_of_real_ones(name):
    start = clew.tensor([1 + 2j, -0.5 + 0.25j], dtype=clew.complex128)
    z = start.clone().requires_grad_()
    r = clew.view_as_real(start).clone().requires_grad_()
    options = {"lr": 0.05}
    a, b = getattr(optim, name)([z], **options), getattr(optim, name)([r], **options)
    for _ in range(5):
        a.zero_grad()
        b.zero_grad()
        ((clew.view_as_real(z) - 0.3) ** 2).sum().backward()
        ((r - 0.3) ** 2).sum().backward()
        a.step()
        b.step()
    np.testing.assert_allclose(
        clew.view_as_real(z.detach()).tolist(), r.detach().tolist(), rtol=1e-10
    )


def test_sgd_by_hand():
    w = clew.tensor([1.0, -2.0], dtype=clew.float64, requires_grad=True)
    opt = optim.SGD([w], lr=0.1, momentum=0.5, dampening=0.25, weight_decay=0.01)
    x, buf = np.array([1.0, -2.0]), None
    for _ in range(4):
        opt.zero_grad()
        (w**3).sum().backward()
        opt.step()
        g = 3 * x**2 + 0.01 * x
        buf = g if buf is None else 0.5 * buf + 0.75 * g
        x = x - 0.1 * buf
    np.testing.assert_allclose(w.detach().numpy(), x, rtol=1e-12)


def test_adam_by_hand():
    w = clew.tensor([1.0, -2.0], dtype=clew.float64, requires_grad=True)
    opt = optim.Adam([w], lr=0.1, betas=(0.8, 0.9), eps=1e-3)
    x, m, v = np.array([1.0, -2.0]), 0.0, 0.0
    for t in range(1, 6):
        opt.zero_grad()
        w.exp().sum().backward()
        opt.step()
        g = np.exp(x)
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
        x = x - 0.1 * (m / (1 - 0.8**t)) / (np.sqrt(v / (1 - 0.9**t)) + 1e-3)
    np.testing.assert_allclose(w.detach().numpy(), x, rtol=1e-12)


def test_muon_makes_updates_orthogonal():
    clew.manual_seed(0)
    w = clew.zeros(4, 6, requires_grad=True)
    opt = optim.Muon([w], lr=1.0, weight_decay=0.0, momentum=0.0, nesterov=False)
    w.grad = clew.randn(4, 6)
    opt.step()
    values = np.linalg.svd(w.detach().numpy(), compute_uv=False)
    assert values.min() > 0.6 and values.max() < 1.3
    tall = clew.zeros(6, 2, requires_grad=True)
    opt = optim.Muon([tall], lr=1.0, weight_decay=0.5, adjust_lr_fn="match_rms_adamw")
    tall.grad = clew.randn(6, 2)
    opt.step()
    values = np.linalg.svd(tall.detach().numpy(), compute_uv=False) / (0.2 * math.sqrt(6))
    assert values.min() > 0.6 and values.max() < 1.3
    with pytest.raises(ValueError, match="matrices"):
        optim.Muon([clew.zeros(3)])


DIFFERENTIABLE = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1, "maximize": True}),
    ("AdamW", {"amsgrad": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.5, "centered": True}),
    ("Adadelta", {}),
    ("Adagrad", {}),
    ("Adamax", {"weight_decay": 0.1}),
    ("ASGD", {}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {}),
    ("Rprop", {}),
]


@pytest.mark.parametrize("name,options", DIFFERENTIABLE)
def test_differentiable_step(name, options):
    """The derivative of the parameters after three steps by where they started."""

    def after(start):
        w = start.clone()
        opt = getattr(optim, name)([w], lr=0.1, differentiable=True, **options)
        for _ in range(3):
            copy = w.clone()  # the step writes to w itself
            w.grad = 2 * copy * copy + 1
            opt.step()
        return w

    start = clew.tensor([0.5, -1.5], dtype=clew.float64, requires_grad=True)
    (slope,) = clew.autograd.grad(after(start).sum(), start)
    h = 1e-6
    with clew.no_grad():
        plus, minus = after(start + h), after(start - h)
    np.testing.assert_allclose(
        slope.tolist(), ((plus - minus) / (2 * h)).detach().tolist(), rtol=1e-5, atol=1e-8
    )


def test_differentiable_state_of_nadam():
    """The product of its momenta is a tensor, which may want a gradient too."""
    g = clew.tensor([1.0, -2.0], dtype=clew.float64)

    def after(product):
        w = clew.tensor([0.5, -1.5], dtype=clew.float64, requires_grad=True).clone()
        opt = optim.NAdam([w], lr=0.1, differentiable=True)
        opt.state[w] = {
            "step": clew.tensor(10.0),
            "mu_product": product,
            "exp_avg": g * 0.3,
            "exp_avg_sq": g * g,
        }
        w.grad = g.clone()
        opt.step()
        return (w * clew.tensor([1.0, 3.0], dtype=clew.float64)).sum()

    product = clew.tensor(0.7, dtype=clew.float64, requires_grad=True)
    (slope,) = clew.autograd.grad(after(product), product)
    h = 1e-6
    plus, minus = (after(clew.tensor(0.7 + d, dtype=clew.float64)) for d in (h, -h))
    assert slope.item() == pytest.approx((plus - minus).item() / (2 * h), rel=1e-6)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_differentiable_lr(name):
    def after(lr):
        w = clew.tensor([0.5, -1.5], dtype=clew.float64).requires_grad_().clone()
        opt = getattr(optim, name)([w], lr=lr, weight_decay=0.1, differentiable=True)
        for i in range(3):
            w.grad = clew.tensor([1.0 + i, 2.0 - i], dtype=clew.float64)
            opt.step()
        return w.sum()

    lr = clew.tensor(0.1, dtype=clew.float64, requires_grad=True)
    (slope,) = clew.autograd.grad(after(lr), lr)
    h = 1e-6
    numeric = (after(0.1 + h) - after(0.1 - h)).item() / (2 * h)
    assert slope.item() == pytest.approx(numeric, rel=1e-6)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize("tolerance", [-1.0, 0.0, 1e-7])
def test_lbfgs_where_the_gradient_is_zero(search, tolerance):
    p = clew.zeros(2, requires_grad=True)
    opt = optim.LBFGS([p], tolerance_grad=tolerance, line_search_fn=search)

    def closure():
        opt.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert [opt.step(closure).item() for _ in range(3)] == [0.0] * 3 and p.tolist() == [0.0, 0.0]


def test_lbfgs_searches_along_a_straight_line():
    p = clew.zeros(2, dtype=clew.float64, requires_grad=True)
    opt = optim.LBFGS([p], line_search_fn="strong_wolfe", max_iter=3)

    def closure():
        opt.zero_grad()
        loss = p.sum()
        loss.backward()
        return loss

    opt.step(closure)
    assert p.isfinite().all() and p.max() < 0


@pytest.mark.usefixtures("young_heap")  # a refusal goes over all objects
@pytest.mark.parametrize("kind", ["Adam", "NAdam", "RAdam", "Adamax", "Adadelta", "ASGD"])
def test_a_first_step_without_memory_for_its_state_can_be_repeated(kind):
    def train(limit):
        clew.manual_seed(0)
        params = [clew.nn.Parameter(clew.randn(64, 64)) for _ in range(4)]
        optimizer = getattr(optim, kind)(params, lr=0.01)
        for p in params:
            p.grad = p.detach() * 2
        refused = False
        if limit is not None:
            gc.collect()
            try:
                with clew.memory_budget(clew.memory_stats()["live_bytes"] + limit):
                    optimizer.step()
            except clew.OutOfMemoryError:
                refused = True
        if limit is None or refused:
            optimizer.step()
        return [p.tolist() for p in params], refused

    want, _ = train(None)
    refused = 0
    for limit in (1000, 20_000, 40_000, 60_000):
        got, was = train(limit)
        assert got == want
        refused += was
    assert refused > 1
