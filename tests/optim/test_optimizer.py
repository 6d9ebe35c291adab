"""The base class: groups, options, state, hooks, saving, and errors."""

import gc
import weakref

import pytest

import clew
from clew import nn, optim
from clew.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)


def leaf(*values):
    return clew.tensor(values, requires_grad=True)


def test_groups_take_defaults():
    a, b = leaf(1.0), leaf(2.0)
    opt = optim.SGD([{"params": [a], "lr": 0.5}, {"params": b, "momentum": 0.1}], lr=0.1)
    assert [g["lr"] for g in opt.param_groups] == [0.5, 0.1]
    assert [g["momentum"] for g in opt.param_groups] == [0, 0.1]
    assert opt.param_groups[1]["params"] == [b]
    opt.add_param_group({"params": (x for x in [leaf(3.0)]), "weight_decay": 1})
    assert len(opt.param_groups) == 3 and opt.param_groups[2]["nesterov"] is False


def test_repr():
    text = repr(optim.SGD([leaf(1.0)], lr=0.5))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n")
    assert "    lr: 0.5\n" in text and text.endswith(")") and "params" not in text


def test_named_parameters():
    model = nn.Linear(2, 1)
    opt = optim.Adam(model.named_parameters())
    assert opt.param_groups[0]["param_names"] == ["weight", "bias"]
    state = opt.state_dict()
    assert state["param_groups"][0]["param_names"] == ["weight", "bias"]
    with pytest.raises(ValueError, match="names"):
        opt.add_param_group({"params": [leaf(1.0)]})


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        ([], ValueError, "empty parameter list"),
        (clew.zeros(2), TypeError, "iterable"),
        ([1.0], TypeError, "must be tensors"),
        ([{"params": {1, 2}}], TypeError, "order"),
        ([leaf(1.0), {"params": []}], TypeError, "must be tensors"),
    ],
)
def test_bad_parameters(params, error, match):
    with pytest.raises(error, match=match):
        optim.SGD(params, lr=0.1)


@pytest.mark.parametrize("allowed", [2, 3, 5])
def test_searches_along_a_line_share_the_evaluations_allowed(allowed):
    x = clew.zeros(1, dtype=clew.float64, requires_grad=True)
    opt = optim.LBFGS([x], lr=1e-7, max_eval=allowed, line_search_fn="strong_wolfe")
    calls = []

    def loss():  # a step so short that every search would go on for long
        opt.zero_grad()
        calls.append(x.item())
        value = (-x).exp().sum()
        value.backward()
        return value

    opt.step(loss)
    assert len(calls) == allowed + 1  # a search begins with one that it does not count


def test_more_bad_parameters():
    a = leaf(1.0)
    with pytest.raises(ValueError, match="non-leaf Tensor: float.*made by .* at "):
        optim.SGD([a * 2], lr=0.1)
    with pytest.raises(ValueError, match="more than one"):
        optim.SGD([{"params": [a]}, {"params": [a]}], lr=0.1)
    with pytest.warns(UserWarning, match="twice"):
        optim.SGD([a, a], lr=0.1)
    with pytest.raises(TypeError, match="dict"):
        optim.SGD([a], lr=0.1).add_param_group([a])
    with pytest.raises(ValueError, match="one parameter group"):
        optim.LBFGS([{"params": [a]}, {"params": [leaf(2.0)]}])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": -1.0}),
        ("SGD", {"momentum": -1.0}),
        ("SGD", {"weight_decay": -1.0}),
        ("SGD", {"nesterov": True}),
        ("SGD", {"nesterov": True, "momentum": 0.9, "dampening": 0.1}),
        ("SGD", {"lr": clew.ones(2)}),
        ("Adam", {"lr": -1.0}),
        ("Adam", {"betas": (1.0, 0.9)}),
        ("Adam", {"betas": (0.9, -0.1)}),
        ("Adam", {"eps": -1.0}),
        ("Adam", {"weight_decay": -1.0}),
        ("Adam", {"lr": clew.tensor(0.1), "foreach": True}),
        ("AdamW", {"betas": (1.5, 0.9)}),
        ("RMSprop", {"alpha": -1.0}),
        ("RMSprop", {"momentum": -1.0}),
        ("Adagrad", {"lr_decay": -1.0}),
        ("Adagrad", {"initial_accumulator_value": -1.0}),
        ("Adadelta", {"rho": 1.5}),
        ("Adamax", {"betas": (0.9, 1.0)}),
        ("NAdam", {"momentum_decay": -1.0}),
        ("RAdam", {"eps": -1.0}),
        ("ASGD", {"weight_decay": -1.0}),
        ("Rprop", {"etas": (1.5, 1.2)}),
        ("Adafactor", {"d": 0.5}),
        ("Adafactor", {"beta2_decay": 0.5}),
        ("Adafactor", {"eps": (-1.0, 1e-3)}),
        ("Muon", {"ns_steps": 100}),
        ("Muon", {"adjust_lr_fn": "other"}),
    ],
)
def test_bad_options(name, options):
    with pytest.raises(ValueError, match=name):
        getattr(optim, name)([clew.zeros(2, 2, requires_grad=True)], **options)


MODES = ["SGD", "Adam", "AdamW", "Adagrad"]


@pytest.mark.parametrize("name", MODES)
def test_implementation_options(name):
    kind = getattr(optim, name)
    results = []
    for options in ({}, {"foreach": True}, {"foreach": False}, {"fused": True}, {"fused": False}):
        w = leaf(1.0, 2.0)
        opt = kind([w], lr=0.1, **options)
        (w * w).sum().backward()
        opt.step()
        results.append(w.tolist())
    for r in results:
        assert r == pytest.approx(results[0], rel=1e-6)
    with pytest.raises(RuntimeError, match="both"):
        kind([leaf(1.0)], fused=True, foreach=True)
    with pytest.raises(RuntimeError, match="differentiable"):
        kind([leaf(1.0)], fused=True, differentiable=True)


def test_capturable_raises():
    with pytest.raises(AssertionError, match="capturable"):
        optim.Adam([leaf(1.0)], capturable=True)
    w = leaf(1.0)
    opt = optim.Adam([w])
    opt.param_groups[0]["capturable"] = True
    w.grad = clew.ones(1)
    with pytest.raises(AssertionError, match="capturable"):
        opt.step()


def test_line_search_name():
    with pytest.raises(RuntimeError, match="strong_wolfe"):
        optim.LBFGS([leaf(1.0)], line_search_fn="armijo")


def test_zero_grad():
    w = leaf(1.0, 2.0)
    opt = optim.SGD([w], lr=0.1)
    (w * w).sum().backward()
    grad = w.grad
    opt.zero_grad(set_to_none=False)
    assert w.grad is grad and grad.tolist() == [0, 0]
    opt.zero_grad()
    assert w.grad is None
    (g,) = clew.autograd.grad((w**3).sum(), w, create_graph=True)
    w.grad = g
    opt.zero_grad(set_to_none=False)
    assert w.grad.tolist() == [0, 0] and not w.grad.requires_grad


def test_closure_runs_with_gradients():
    w = leaf(1.0)
    opt = optim.SGD([w], lr=0.1)
    seen = []

    def closure():
        seen.append(clew.is_grad_enabled())
        opt.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with clew.no_grad():
        assert opt.step(closure).item() == 1
    assert seen == [True] and w.item() == pytest.approx(0.8)


def test_state_dict_is_numbered_and_detached_from_the_optimizer():
    a, b = leaf(1.0), leaf(2.0, 3.0)
    opt = optim.Adam([{"params": [a]}, {"params": [b], "lr": 0.5}])
    (a.sum() + b.sum()).backward()
    opt.step()
    state = opt.state_dict()
    assert [g["params"] for g in state["param_groups"]] == [[0], [1]]
    assert set(state["state"]) == {0, 1}
    assert state["state"][1]["step"].item() == 1
    assert state["state"][1]["exp_avg"].shape == (2,)
    other = optim.Adam([{"params": [leaf(0.0)]}, {"params": [leaf(0.0, 0.0)]}])
    other.load_state_dict(state)
    assert other.param_groups[1]["lr"] == 0.5
    other.param_groups[1]["lr"] = 7
    inner = other.state[other.param_groups[1]["params"][0]]
    inner["exp_avg"].fill_(9)
    assert state["param_groups"][1]["lr"] == 0.5
    assert state["state"][1]["exp_avg"].tolist() != [9, 9]


def test_loading_converts_to_the_dtype_of_parameters():
    a = leaf(1.0)
    opt = optim.Adam([a])
    a.sum().backward()
    opt.step()
    wide = clew.zeros(1, dtype=clew.float64, requires_grad=True)
    other = optim.Adam([wide])
    other.load_state_dict(opt.state_dict())
    assert other.state[wide]["exp_avg"].dtype == clew.float64
    assert other.state[wide]["step"].dtype == clew.float32


def test_loading_what_does_not_fit():
    a = optim.SGD([leaf(1.0)], lr=0.1)
    b = optim.SGD([leaf(1.0), leaf(2.0)], lr=0.1)
    c = optim.SGD([{"params": [leaf(1.0)]}, {"params": [leaf(2.0)]}], lr=0.1)
    with pytest.raises(ValueError, match="2 parameters; got 1"):
        b.load_state_dict(a.state_dict())
    with pytest.raises(ValueError, match="number of parameter groups"):
        c.load_state_dict(a.state_dict())


def test_old_checkpoints_lack_options():
    a = leaf(1.0)
    opt = optim.Adam([a])
    state = opt.state_dict()
    state["state"] = {0: {"step": 3, "exp_avg": clew.ones(1), "exp_avg_sq": clew.ones(1)}}
    for key in ("amsgrad", "maximize", "foreach", "fused", "decoupled_weight_decay"):
        del state["param_groups"][0][key]
    opt.load_state_dict(state)
    a.sum().backward()
    opt.step()
    assert opt.state[a]["step"].item() == 4 and opt.param_groups[0]["amsgrad"] is False


def test_step_hooks():
    w = leaf(1.0)
    opt = optim.SGD([w], lr=0.1)
    log = []
    handles = [
        register_optimizer_step_pre_hook(lambda o, a, k: log.append("all before")),
        opt.register_step_pre_hook(lambda o, a, k: log.append("before")),
        opt.register_step_post_hook(lambda o, a, k: log.append("after")),
        register_optimizer_step_post_hook(lambda o, a, k: log.append("all after")),
    ]
    w.grad = clew.ones(1)
    opt.step()
    assert log == ["all before", "before", "after", "all after"]
    for h in handles:
        h.remove()
    log.clear()
    opt.step()
    assert log == []
    opt.register_step_pre_hook(lambda o, a, k: ((lambda: 42,), {}))
    assert opt.step() == 42
    opt.register_step_pre_hook(lambda o, a, k: 3)
    with pytest.raises(RuntimeError, match="pre-hook"):
        opt.step()


def test_step_hooks_get_the_optimizer_among_the_arguments():
    w = leaf(1.0)
    opt = optim.SGD([w], lr=0.1)
    seen = []

    def before(o, args, kwargs):
        seen.append((args, dict(kwargs)))
        return args, {"closure": lambda: 5}

    opt.register_step_pre_hook(before)
    opt.register_step_post_hook(lambda o, args, kwargs: seen.append((args, sorted(kwargs))))
    w.grad = clew.ones(1)
    assert opt.step() == 5
    assert seen == [((opt,), {}), ((opt,), ["closure"])]


def test_hooks_run_once_when_a_subclass_calls_super():
    class Twice(optim.SGD):
        def step(self, closure=None):
            super().step()
            return super().step(closure)

    w = leaf(1.0)
    opt = Twice([w], lr=0.1)
    log = []
    opt.register_step_post_hook(lambda o, a, k: log.append(1))
    w.grad = clew.ones(1)
    opt.step()
    assert log == [1] and w.item() == pytest.approx(0.8)


def test_a_step_that_asks_for_its_hooks():
    class Own(optim.SGD):
        @optim.Optimizer.profile_hook_step
        def step(self, closure=None):
            return "done"

    opt, log = Own([leaf(1.0)], lr=0.1), []
    opt.register_step_pre_hook(lambda o, a, k: log.append(1))
    assert opt.step() == "done" and log == [1]


def test_state_dict_hooks():
    opt = optim.SGD([leaf(1.0)], lr=0.1)
    log = []
    opt.register_state_dict_pre_hook(lambda o: log.append("pre"))
    opt.register_state_dict_post_hook(lambda o, s: {**s, "more": 1})
    opt.register_load_state_dict_pre_hook(lambda o, s: log.append(s.pop("more")))
    opt.register_load_state_dict_pre_hook(lambda o, s: log.append("first"), prepend=True)
    opt.register_load_state_dict_post_hook(lambda o: log.append("post"))
    state = opt.state_dict()
    assert state["more"] == 1
    opt.load_state_dict(state)
    assert log == ["pre", "first", 1, "post"] and state["more"] == 1


def test_own_optimizer():
    class Plain(Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            with clew.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is not None:
                            p.sub_(group["lr"] * p.grad)

    w = leaf(1.0)
    opt = Plain([w], 0.25)
    (w * w).sum().backward()
    opt.step()
    assert w.item() == 0.5
    with pytest.raises(NotImplementedError):
        Optimizer([leaf(1.0)], {}).step()


def test_required_options():
    class Needs(Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": optim.optimizer.required})

    assert Needs([{"params": [leaf(1.0)], "lr": 1}]).param_groups[0]["lr"] == 1
    with pytest.raises(ValueError, match="'lr'"):
        Needs([leaf(1.0)])


def test_an_optimizer_is_freed_with_its_schedule():
    opt = optim.SGD([leaf(1.0)], lr=0.1)
    schedule = optim.lr_scheduler.StepLR(opt, 1)
    reference = weakref.ref(opt)
    del opt, schedule
    gc.collect()
    assert reference() is None


def test_repr_parts_groups_by_an_empty_line():
    opt = optim.SGD([{"params": [leaf(1.0)]}, {"params": [leaf(2.0)], "lr": 0.5}], lr=0.1)
    first, second = repr(opt).split("\n\n")
    assert first.startswith("SGD (\nParameter Group 0\n    dampening: 0\n")
    assert second.startswith("Parameter Group 1\n") and second.endswith("weight_decay: 0\n)")


def test_lbfgs_refuses_a_group_that_comes_later():
    opt = optim.LBFGS([leaf(1.0)])
    with pytest.raises(ValueError, match="one parameter group only"):
        opt.add_param_group({"params": [leaf(2.0)]})
    assert len(opt.param_groups) == 1


def test_asgd_takes_a_tensor_lr_with_foreach():
    steps = []
    for lr in (0.25, clew.tensor(0.25)):
        w = leaf(2.0)
        opt = optim.ASGD([w], lr=lr, foreach=True)
        for _ in range(2):
            opt.zero_grad()
            (w * w).sum().backward()
            opt.step()
        steps.append(w.item())
    assert steps[0] == steps[1] != 2.0


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(optim.NAdam, clew.bfloat16), (optim.NAdam, clew.complex64), (optim.ASGD, clew.complex64)],
)
def test_a_loaded_state_of_half_or_complex_parameters_goes_on(kind, dtype):
    def steps(opt, w, n):
        for _ in range(n):
            opt.zero_grad()
            w.abs().square().sum().backward()
            opt.step()

    w = clew.tensor([1.0, -2.0]).to(dtype).requires_grad_()
    opt = kind([w], lr=0.125)
    steps(opt, w, 2)
    other = w.detach().clone().requires_grad_()
    resumed = kind([other], lr=0.125)
    resumed.load_state_dict(opt.state_dict())
    steps(opt, w, 2)
    steps(resumed, other, 2)
    difference = (w - other).abs().max().item()
    assert difference < (0.02 if dtype is clew.bfloat16 else 1e-6)


def test_a_wrapper_that_makes_nothing_of_its_own_is_no_optimizer_to_global_hooks():
    class Wrapper(clew.optim.Optimizer):
        def __init__(self, optimizer):
            self.optimizer = optimizer

        def step(self, closure=None):
            return self.optimizer.step(closure)

    w = clew.ones(2, requires_grad=True)
    inner = clew.optim.SGD([w], lr=0.1)
    seen = []
    handle = clew.optim.optimizer.register_optimizer_step_post_hook(lambda o, *_: seen.append(o))
    try:
        w.sum().backward()
        Wrapper(inner).step()
    finally:
        handle.remove()
    assert seen == [inner]


def test_hooks_see_an_optimizer_that_was_unpickled_before_any_was_made():
    class Own(clew.optim.SGD):
        def step(self, closure=None):
            return None

    w = clew.ones(2, requires_grad=True)
    own = Own.__new__(Own)  # as pickle does, with the state of one of another process
    own.__setstate__(clew.optim.SGD([w], lr=0.1).__dict__)
    seen = []
    handle = clew.optim.optimizer.register_optimizer_step_post_hook(lambda o, *_: seen.append(o))
    try:
        w.sum().backward()
        own.step()
    finally:
        handle.remove()
    assert seen == [own]
