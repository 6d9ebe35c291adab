"""The optimizers' steps as functions of lists give what the classes' steps give."""

import pytest

import clew
from clew import optim
from clew._torch import _more
from clew._torch.optim import _functional as F

D = clew.float64
BETAS = {"beta1": 0.9, "beta2": 0.999}
# name: the class, the state's entries, options by the class's names, options by the function's.
CASES = {
    "adadelta": (optim.Adadelta, "square_avg acc_delta step", {}, {"rho": 0.9, "eps": 1e-6}),
    "adagrad": (optim.Adagrad, "sum step", {"lr_decay": 0.1}, {"eps": 1e-10}),
    "adam": (
        optim.Adam,
        "exp_avg exp_avg_sq max_exp_avg_sq step",
        {"amsgrad": True},
        {**BETAS, "eps": 1e-8},
    ),
    "adamw": (
        optim.AdamW,
        "exp_avg exp_avg_sq max_exp_avg_sq step",
        {"amsgrad": True},
        {**BETAS, "eps": 1e-8},
    ),
    "adamax": (optim.Adamax, "exp_avg exp_inf step", {}, {**BETAS, "eps": 1e-8}),
    "asgd": (optim.ASGD, "ax mu eta step", {"lambd": 0.1, "alpha": 0.7, "t0": 2.0}, {}),
    "nadam": (
        optim.NAdam,
        "exp_avg exp_avg_sq mu_product step",
        {"momentum_decay": 0.01},
        {**BETAS, "eps": 1e-8},
    ),
    "radam": (optim.RAdam, "exp_avg exp_avg_sq step", {}, {**BETAS, "eps": 1e-8}),
    "rmsprop": (
        optim.RMSprop,
        "square_avg grad_avg momentum_buffer step",
        {"alpha": 0.9, "momentum": 0.5, "centered": True},
        {"eps": 1e-8},
    ),
    "sgd": (
        optim.SGD,
        "momentum_buffer",
        {"momentum": 0.9, "nesterov": True},
        {"dampening": 0.0},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_as_the_class(name):
    kind, states, options, more = CASES[name]
    start = [clew.tensor([1.0, -2.0], dtype=D), clew.tensor([[0.5]], dtype=D)]
    params = [p.clone().requires_grad_() for p in start]
    opt = kind(params, lr=0.1, weight_decay=0.01, maximize=True, **options)
    own = [p.clone() for p in start]
    for turn in range(3):
        grads = [clew.full_like(p, 0.3 - turn) for p in start]
        for p, g in zip(params, grads, strict=True):
            p.grad = g
        if turn == 0:
            opt.step()
            lists = [[opt.state[p][s].clone() for p in params] for s in states.split()]
            own = [p.detach().clone() for p in params]
            continue
        opt.step()
        options_ = {"lr": 0.1, "weight_decay": 0.01, "maximize": True, **options, **more}
        assert getattr(F, name)(own, grads, *lists, **options_) is None
    for a, p in zip(own, params, strict=True):
        clew.testing.assert_close(a, p.detach())
    for values, s in zip(lists, states.split(), strict=True):
        for value, p in zip(values, params, strict=True):
            clew.testing.assert_close(value, opt.state[p][s])


def test_rprop():
    p = clew.tensor([1.0, 2.0], requires_grad=True)
    opt = optim.Rprop([p], lr=0.1)
    p.grad = clew.tensor([1.0, -1.0])
    opt.step()
    own, lists = p.detach().clone(), [[opt.state[p][s].clone()] for s in ("prev", "step_size")]
    p.grad = clew.tensor([2.0, 1.0])
    opt.step()
    sizes = {"step_size_min": 1e-6, "step_size_max": 50, "etaminus": 0.5, "etaplus": 1.2}
    F.rprop([own], [clew.tensor([2.0, 1.0])], *lists, [clew.tensor(1.0)], **sizes)
    assert clew.equal(own, p.detach())


def test_buffers_are_begun_and_lists_may_be_empty():
    p, buffers = clew.tensor([1.0]), [None]
    options = {"weight_decay": 0, "lr": 0.5, "dampening": 0, "nesterov": False, "maximize": False}
    F.sgd([p], [clew.tensor([2.0])], buffers, momentum=0.9, **options)
    assert p.item() == 0.0 and buffers[0].item() == 2.0
    F.sgd([p], [clew.tensor([2.0])], [], momentum=0, **options)
    assert p.item() == -1.0


def test_refusals():
    one = [clew.tensor([1.0])]
    sgd = {"weight_decay": 0, "momentum": 0, "lr": 0.5, "dampening": 0, "nesterov": False}
    with pytest.raises(TypeError, match=r"missing arguments \['maximize'\]"):
        F.sgd(one, one, [None], **sgd)
    with pytest.raises(TypeError, match=r"unknown arguments \['decay'\]"):
        F.sgd(one, one, [None], **sgd, maximize=False, decay=1)
    with pytest.raises(TypeError, match="expected params, grads, momentum_buffer"):
        F.sgd(one, one)
    with pytest.raises(NotImplementedError, match="unscale"):
        F.sgd(one, one, [None], **sgd, maximize=False, grad_scale=clew.tensor(2.0))
    for params, grads, momenta in ((one * 2, one, [None]), (one, [], [None]), (one, one, one * 2)):
        with pytest.raises(RuntimeError, match="must be as long as each other; got"):
            F.sgd(params, grads, momenta, **sgd, maximize=False)
    adam = {**BETAS, "lr": 1, "weight_decay": 0, "eps": 1e-8, "maximize": False, "amsgrad": False}
    with pytest.raises(RuntimeError, match="state_steps must be a list of tensors"):
        F.adam(one, one, one, one, [], [1], **adam)
    with pytest.raises(AssertionError, match="capturable"):
        F.adam(one, one, one, one, [], [clew.tensor(1.0)], capturable=True, **adam)
    with pytest.raises(TypeError, match="always on"):
        F.adamw(one, one, one, one, [], one, decoupled_weight_decay=False, **adam)


def test_where_programs_find_them():
    for name in CASES:
        assert _more.find(f"optim.{name}", name) is getattr(F, name)
