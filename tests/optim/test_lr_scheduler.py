"""Schedules against PyTorch 2.13's values, their closed forms, saving, and errors."""

import json
import math
import pathlib
import warnings

import pytest

import clew
from clew import optim
from clew.optim import lr_scheduler as L
from clew.optim.swa_utils import SWALR

CASES = json.loads((pathlib.Path(__file__).parent / "schedules.json").read_text())


def sgd(lr=0.5, **options):
    groups = [{"params": [clew.zeros(2)]}, {"params": [clew.zeros(3)], "lr": 0.2}]
    return optim.SGD(groups, lr=lr, **options)


def walk(schedule, opt, n=10):
    rates = []
    for _ in range(n):
        rates.append(opt.param_groups[0]["lr"])
        opt.step()
        schedule.step()
    return rates


def label(case):
    return f"{case['name']}-{case['optimizer']}-{len(json.dumps(case['options']))}"


@pytest.mark.parametrize("case", CASES, ids=label)
@pytest.mark.parametrize("tensor_lr", [False, True])
def test_values(case, tensor_lr):
    lr = clew.tensor(0.5, dtype=clew.float64) if tensor_lr else 0.5
    other = clew.tensor(0.2, dtype=clew.float64) if tensor_lr else 0.2
    options = {"momentum": 0.9} if case["optimizer"] == "SGD" else {}
    opt = getattr(optim, case["optimizer"])(
        [{"params": [clew.zeros(2)]}, {"params": [clew.zeros(3)], "lr": other}], lr=lr, **options
    )
    schedule = getattr(L, case["name"])(opt, **case["options"])
    for row in case["rows"]:
        groups = opt.param_groups
        got = [float(g["lr"]) for g in groups]
        assert [float(x) for x in schedule.get_last_lr()] == got
        got += [g["momentum"] if "momentum" in g else g["betas"][0] for g in groups]
        assert got == pytest.approx(row, rel=1e-9, abs=1e-12)
        opt.step()
        schedule.step()
    assert (opt.param_groups[0]["lr"] is lr) == tensor_lr  # a tensor is filled, not replaced


PLAIN = [
    c for c in CASES if c["optimizer"] == "SGD" and c["name"] not in ("CyclicLR", "OneCycleLR")
]


@pytest.mark.parametrize("case", CASES, ids=label)
def test_state_goes_on_where_it_was_saved(case):
    def make():
        options = {"momentum": 0.9} if case["optimizer"] == "SGD" else {}
        opt = getattr(optim, case["optimizer"])(
            [{"params": [clew.zeros(2)]}, {"params": [clew.zeros(3)], "lr": 0.2}], lr=0.5, **options
        )
        return opt, getattr(L, case["name"])(opt, **case["options"])

    opt, schedule = make()
    walk(schedule, opt, 7)
    state, opt_state = schedule.state_dict(), opt.state_dict()
    assert "optimizer" not in state
    new_opt, new = make()
    new_opt.load_state_dict(opt_state)
    new.load_state_dict(state)
    for row in case["rows"][7:]:
        assert [g["lr"] for g in new_opt.param_groups] == pytest.approx(row[:2], rel=1e-9)
        new_opt.step()
        new.step()


@pytest.mark.parametrize("case", [c for c in PLAIN if "Restarts" not in c["name"]], ids=label)
def test_closed_forms(case):
    """The recursive and the closed form of a schedule agree."""
    opt = sgd()
    schedule = getattr(L, case["name"])(opt, **case["options"])
    for epoch in range(1, 15):
        opt.step()
        schedule.step()
        recursive = schedule.get_last_lr()
        assert schedule.last_epoch == epoch
        assert schedule._get_closed_form_lr() == pytest.approx(recursive, rel=1e-9, abs=1e-12)
    with pytest.warns(UserWarning, match="epoch"):
        schedule.step(3)
    assert schedule.last_epoch == 3


def test_lambda_schedules():
    opt = sgd()
    schedule = L.LambdaLR(opt, [lambda e: 0.5**e, lambda e: 1 / (e + 1)])
    walk(schedule, opt, 2)
    assert schedule.get_last_lr() == pytest.approx([0.125, 0.2 / 3])
    opt = sgd()
    schedule = L.MultiplicativeLR(opt, lambda e: 0.5)
    assert walk(schedule, opt, 3) == [0.5, 0.25, 0.125]
    with pytest.raises(ValueError, match="one a group"):
        L.LambdaLR(sgd(), [lambda e: 1])

    class Decay:
        def __init__(self, rate):
            self.rate = rate

        def __call__(self, epoch):
            return self.rate**epoch

    a, b = L.LambdaLR(sgd(), Decay(0.1)), L.LambdaLR(sgd(), Decay(0.9))
    b.load_state_dict(a.state_dict())
    assert b.lr_lambdas[0].rate == 0.1
    c = L.LambdaLR(sgd(), lambda e: 1)
    assert c.state_dict()["lr_lambdas"] == [None, None]
    c.load_state_dict(c.state_dict())


def test_sequential_and_chained():
    opt = sgd(lr=1.0)
    schedule = L.SequentialLR(
        opt, [L.ConstantLR(opt, 0.1, total_iters=2), L.ExponentialLR(opt, 0.9)], [4]
    )
    expected = [0.1, 0.1, 1, 1, 1, 0.9, 0.81, 0.729]
    assert walk(schedule, opt, 8) == pytest.approx(expected)
    opt = sgd(lr=1.0)
    schedule = L.ChainedScheduler(
        [L.ConstantLR(opt, 0.1, total_iters=2), L.ExponentialLR(opt, 0.9)]
    )
    assert walk(schedule, opt, 4) == pytest.approx([0.1, 0.09, 0.81, 0.729])
    assert schedule.get_last_lr() == pytest.approx([0.6561, 0.2 * 0.6561])


@pytest.mark.parametrize("last", [L.ExponentialLR, L.StepLR])
def test_a_milestone_of_0_passes_over_a_schedule(last):
    """A warmup of no epochs; the rates that PyTorch 2.13 gives."""

    def schedule(opt):
        return last(opt, 0.5) if last is L.ExponentialLR else last(opt, 1, 0.5)

    opt = sgd(lr=1.0)
    warmed = L.SequentialLR(opt, [L.LinearLR(opt, 0.1, total_iters=5), schedule(opt)], [0])
    assert walk(warmed, opt, 4) == pytest.approx([1, 0.5, 0.25, 0.125])
    assert warmed.get_last_lr()[0] == pytest.approx(0.0625)
    opt = sgd(lr=1.0)
    passed = [L.LinearLR(opt, 0.1, total_iters=5), L.ConstantLR(opt, 0.2, total_iters=9)]
    twice = L.SequentialLR(opt, [*passed, schedule(opt)], [0, 2])
    assert walk(twice, opt, 4) == pytest.approx([0.2, 0.2, 1, 0.5])


def test_composed_state():
    def make():
        opt = sgd(lr=1.0)
        return opt, L.SequentialLR(
            opt, [L.LinearLR(opt, 0.1, 1.0, 4), L.CosineAnnealingLR(opt, 10)], [4]
        )

    opt, schedule = make()
    whole = walk(schedule, opt, 12)
    opt, schedule = make()
    walk(schedule, opt, 6)
    new_opt, new = make()
    new_opt.load_state_dict(opt.state_dict())
    new.load_state_dict(schedule.state_dict())
    assert walk(new, new_opt, 6) == pytest.approx(whole[6:])


def test_composed_errors():
    opt, other = sgd(), sgd()
    with pytest.raises(ValueError, match="another optimizer"):
        L.SequentialLR(opt, [L.StepLR(opt, 1), L.StepLR(other, 1)], [2])
    with pytest.raises(ValueError, match="one fewer"):
        L.SequentialLR(opt, [L.StepLR(opt, 1)], [2])
    with pytest.raises(ValueError, match="at least one"):
        L.ChainedScheduler([])
    with pytest.raises(ValueError, match="ReduceLROnPlateau"):
        L.ChainedScheduler([L.ReduceLROnPlateau(opt)])
    with pytest.raises(TypeError, match="optimizer"):
        L.SequentialLR(opt, [L.StepLR(opt, 1), 3], [2])


def test_plateau():
    opt = sgd()
    schedule = L.ReduceLROnPlateau(opt, factor=0.1, patience=2, cooldown=1, min_lr=[0.01, 0])
    rates = []
    for loss in [5, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3]:
        schedule.step(clew.tensor(float(loss)))
        rates.append(opt.param_groups[0]["lr"])
    expected = [0.5] * 4 + [0.05] * 4 + [0.01] * 5
    assert rates == pytest.approx(expected)
    assert schedule.get_last_lr()[1] == pytest.approx(0.2 * 0.1**3)


def test_plateau_modes():
    def reduced(values, **options):
        opt = sgd()
        schedule = L.ReduceLROnPlateau(opt, patience=0, **options)
        for v in values:
            schedule.step(v)
        return opt.param_groups[0]["lr"] != 0.5

    assert reduced([1.0, 1.0]) and not reduced([1.0, 0.9])
    assert reduced([1.0, 0.95], threshold=0.1) and not reduced([1.0, 0.85], threshold=0.1)
    absolute = {"threshold": 0.1, "threshold_mode": "abs"}
    assert reduced([10.0, 9.95], **absolute) and not reduced([10.0, 9.85], **absolute)
    assert reduced([1.0, 0.9], mode="max") and not reduced([1.0, 1.1], mode="max")
    assert reduced([10.0, 10.05], mode="max", **absolute)
    assert reduced([1.0, float("nan")])
    assert not reduced([1.0, 1.0], eps=1)


@pytest.mark.parametrize("rates", [[0.1], [0.1, 0.2, 0.3]])
def test_one_value_a_group(rates):
    with pytest.raises(ValueError, match="must have 2 values"):
        L.CyclicLR(sgd(), 0.01, rates)


def test_plateau_new_groups_and_errors():
    opt = sgd()
    schedule = L.ReduceLROnPlateau(opt, patience=0, min_lr=0.01)
    opt.add_param_group({"params": [clew.zeros(1)], "lr": 1.0})
    schedule.step(1.0)
    schedule.step(1.0)
    assert [g["lr"] for g in opt.param_groups] == pytest.approx([0.05, 0.02, 0.1])
    for options in ({"factor": 1.0}, {"mode": "up"}, {"threshold_mode": "x"}, {"min_lr": [0]}):
        with pytest.raises(ValueError, match="ReduceLROnPlateau"):
            L.ReduceLROnPlateau(sgd(), **options)


def test_order_of_calls_is_checked():
    opt = sgd()
    schedule = L.StepLR(opt, 1)
    with pytest.warns(UserWarning, match=r"before `optimizer\.step\(\)`"):
        schedule.step()
    opt = sgd()
    schedule = L.StepLR(opt, 1)
    opt.step = lambda: None
    with pytest.warns(UserWarning, match="replaced"):
        schedule.step()
    opt = sgd()
    opt.step = lambda: 7  # before the schedule is made
    schedule = L.StepLR(opt, 1)
    assert opt.step() == 7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()
    opt = sgd()
    schedule = L.StepLR(opt, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        walk(schedule, opt, 3)
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()


def test_resuming_needs_initial_lr():
    with pytest.raises(KeyError, match="initial_lr"):
        L.StepLR(sgd(), 1, last_epoch=3)
    opt = sgd()
    for group in opt.param_groups:
        group["initial_lr"] = 1.0
        group["lr"] = 1.0
    schedule = L.ExponentialLR(opt, 0.5, last_epoch=3)
    assert schedule.last_epoch == 4
    walk(schedule, opt, 1)
    assert schedule.get_last_lr() == [0.5, 0.5]


def test_cosine_of_a_resumed_schedule():
    opt = sgd()
    for group in opt.param_groups:
        group["initial_lr"] = 1.0
    schedule = L.CosineAnnealingLR(opt, 10, 0.5, last_epoch=3)
    with pytest.warns(UserWarning, match="get_last_lr"):
        assert schedule.get_lr() == pytest.approx([0.75 + 0.25 * math.cos(0.4 * math.pi)] * 2)


def test_warm_restarts_between_epochs():
    opt = sgd(lr=1.0)
    schedule = L.CosineAnnealingWarmRestarts(opt, 4, 2)
    for where, expected in ((0.5, 0.125), (2.5, 0.625), (4, 0.0), (8, 0.5), (12, 0.0), (20, 0.5)):
        schedule.step(where)
        value = (1 + math.cos(math.pi * expected)) / 2
        assert opt.param_groups[0]["lr"] == pytest.approx(value)
    with pytest.raises(ValueError, match="negative"):
        schedule.step(-1)


def test_warm_restarts_resume_in_a_later_cycle():
    opt = sgd(lr=1.0)
    for group in opt.param_groups:
        group["initial_lr"] = 1.0
    L.CosineAnnealingWarmRestarts(opt, 3, last_epoch=7)
    # Epoch 8 of cycles of 3 is the last of its cycle.
    assert opt.param_groups[0]["lr"] == pytest.approx((1 + math.cos(math.pi * 2 / 3)) / 2)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda o: L.StepLR(3, 1), TypeError),
        (lambda o: L.ConstantLR(o, factor=2), ValueError),
        (lambda o: L.LinearLR(o, start_factor=0), ValueError),
        (lambda o: L.LinearLR(o, end_factor=2), ValueError),
        (lambda o: L.CosineAnnealingWarmRestarts(o, 0), ValueError),
        (lambda o: L.CosineAnnealingWarmRestarts(o, 1, 0), ValueError),
        (lambda o: L.CosineAnnealingWarmRestarts(o, 1, 1, "a"), ValueError),
        (lambda o: L.CyclicLR(o, 0.1, 0.2, mode="x"), ValueError),
        (lambda o: L.CyclicLR(o, [0.1], 0.2), ValueError),
        (lambda o: L.OneCycleLR(o, 0.1), ValueError),
        (lambda o: L.OneCycleLR(o, 0.1, total_steps=0), ValueError),
        (lambda o: L.OneCycleLR(o, 0.1, epochs=1, steps_per_epoch=-1), ValueError),
        (lambda o: L.OneCycleLR(o, 0.1, total_steps=5, pct_start=2), ValueError),
        (lambda o: L.OneCycleLR(o, 0.1, total_steps=5, anneal_strategy="x"), ValueError),
        (lambda o: SWALR(o, 0.1, anneal_strategy="x"), ValueError),
        (lambda o: SWALR(o, 0.1, anneal_epochs=-1), ValueError),
    ],
)
def test_bad_arguments(make, error):
    with pytest.raises(error):
        make(sgd())


def test_momentum_is_needed_to_cycle_it():
    opt = optim.Adagrad([clew.zeros(1)])
    with pytest.raises(ValueError, match="momentum or betas"):
        L.CyclicLR(opt, 0.1, 0.2)
    with pytest.raises(ValueError, match="momentum or betas"):
        L.OneCycleLR(opt, 0.1, total_steps=3)


def test_one_cycle_ends():
    opt = sgd()
    schedule = L.OneCycleLR(opt, 0.1, total_steps=3, cycle_momentum=False)
    walk(schedule, opt, 3)
    with pytest.raises(ValueError, match="3 steps"):
        schedule.step()


def test_cyclic_with_own_scale():
    opt = sgd(lr=1.0)
    schedule = L.CyclicLR(
        opt, 0.0, 1.0, 2, scale_fn=lambda i: 0.5, scale_mode="iterations", cycle_momentum=False
    )
    assert walk(schedule, opt, 4) == pytest.approx([0, 0.25, 0.5, 0.25])
    state = schedule.state_dict()
    assert state["_scale_fn_custom"] is None
    schedule.load_state_dict(state)
    assert schedule.scale_fn(3) == 0.5


def test_own_schedule():
    class Sawtooth(L.LRScheduler):
        def get_lr(self):
            return [lr * (1 + self.last_epoch % 3) for lr in self.base_lrs]

    opt = sgd(lr=1.0)
    assert walk(Sawtooth(opt), opt, 4) == [1, 2, 3, 1]
    assert L._LRScheduler is L.LRScheduler


def test_swa_schedule():
    opt = sgd(lr=1.0)
    schedule = SWALR(opt, swa_lr=[0.1, 0.5], anneal_epochs=4, anneal_strategy="linear")
    got = walk(schedule, opt, 7)
    assert got == pytest.approx([1.0, 0.775, 0.55, 0.325, 0.1, 0.1, 0.1])
    assert schedule.get_last_lr()[1] == pytest.approx(0.5)
    opt = sgd(lr=1.0)
    schedule = SWALR(opt, swa_lr=0.0, anneal_epochs=4)
    cos = [(1 + math.cos(math.pi * i / 4)) / 2 for i in range(5)]
    assert walk(schedule, opt, 5) == pytest.approx(cos)


@pytest.mark.parametrize(
    "make",
    [
        lambda o: L.LambdaLR(o, lambda epoch: 0.9**epoch),
        lambda o: L.MultiplicativeLR(o, lambda epoch: 0.9),
        lambda o: L.CosineAnnealingWarmRestarts(o, 3),
        lambda o: L.CyclicLR(o, 0.1, 0.2, cycle_momentum=False),
    ],
)
def test_a_group_that_came_after_the_schedule_is_not_passed_over(make):
    optimizer = optim.SGD([clew.ones(1, requires_grad=True)], lr=0.1)
    schedule = make(optimizer)
    optimizer.add_param_group({"params": [clew.ones(1, requires_grad=True)], "lr": 0.5})
    optimizer.step()
    with pytest.raises(ValueError, match="one rate a parameter group"):
        schedule.step()
