"""State dicts have the keys, types, dtypes and shapes that PyTorch's have, so files go both ways.

state_kinds.json holds them as PyTorch 2.13 has them after four steps of an optimizer, and what the
state dicts of its schedulers hold after five steps.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import clew
from clew import optim
from clew.optim import lr_scheduler as schedules

KINDS = json.loads((Path(__file__).parent / "state_kinds.json").read_text())

SCHEDULERS = {
    "LambdaLR": lambda o: schedules.LambdaLR(o, lambda e: 0.9**e),
    "MultiplicativeLR": lambda o: schedules.MultiplicativeLR(o, lambda e: 0.9),
    "StepLR": lambda o: schedules.StepLR(o, 2),
    "MultiStepLR": lambda o: schedules.MultiStepLR(o, [2, 4, 4, 7], 0.5),
    "ConstantLR": lambda o: schedules.ConstantLR(o, 0.5, 4),
    "LinearLR": lambda o: schedules.LinearLR(o, 0.3, 1.0, 7),
    "ExponentialLR": lambda o: schedules.ExponentialLR(o, 0.9),
    "Cosine": lambda o: schedules.CosineAnnealingLR(o, 6, 0.001),
    "Poly": lambda o: schedules.PolynomialLR(o, 7, 2.0),
    "Warm": lambda o: schedules.CosineAnnealingWarmRestarts(o, 3, 2),
    "OneCycle": lambda o: schedules.OneCycleLR(o, 0.5, total_steps=20),
    "OneCycle3": lambda o: schedules.OneCycleLR(
        o, 0.5, total_steps=20, three_phase=True, anneal_strategy="linear"
    ),
    "Cyclic": lambda o: schedules.CyclicLR(o, 0.01, 0.1, 3, 2),
    "Cyclic2": lambda o: schedules.CyclicLR(o, 0.01, 0.1, 3, mode="triangular2"),
    "Cyclice": lambda o: schedules.CyclicLR(o, 0.01, 0.1, 3, mode="exp_range", gamma=0.9),
    "CyclicS": lambda o: schedules.CyclicLR(
        o, 0.01, 0.1, 3, scale_fn=lambda x: 0.5**x, scale_mode="iterations"
    ),
    "Plateau": lambda o: schedules.ReduceLROnPlateau(o, patience=1),
    "Plateaum": lambda o: schedules.ReduceLROnPlateau(
        o, "max", patience=0, cooldown=1, threshold_mode="abs"
    ),
    "Seq": lambda o: schedules.SequentialLR(
        o, [schedules.ConstantLR(o, 0.1, 3), schedules.ExponentialLR(o, 0.9)], [4]
    ),
    "Chained": lambda o: schedules.ChainedScheduler(
        [schedules.ConstantLR(o, 0.1, 3), schedules.ExponentialLR(o, 0.9)], o
    ),
    "SWALR": lambda o: optim.swa_utils.SWALR(o, 0.01, anneal_epochs=6),
}


def problem(name):
    start = [[0.1 * (i * 3 + j) - 0.5 for j in range(4)] for i in range(3)]
    if name == "SparseAdam":
        table = clew.nn.Embedding(3, 4, sparse=True, _weight=clew.tensor(start))
        return [table.weight], lambda: table(clew.tensor([0, 2, 0])).square().sum()
    w = clew.nn.Parameter(clew.tensor(start))
    if name == "Muon":
        return [w], lambda: (w @ w.T - clew.eye(3)).square().sum()
    b = clew.nn.Parameter(clew.tensor([0.3, -0.2, 0.7]))
    x = clew.tensor([[0.5, -1.0, 2.0, 0.3], [1.0, 0.2, -0.7, 0.9]])
    return [w, b], lambda: ((x @ w.T + b).tanh() - 0.3).square().sum()


def kind_of(value):
    if isinstance(value, clew.Tensor):
        return [value.dtype.name, list(value.shape)]
    return type(value).__name__


@pytest.mark.parametrize("label", sorted(KINDS["optimizers"]))
def test_states_of_optimizers(label):
    wanted = KINDS["optimizers"][label]
    options = {
        k: clew.tensor(v["tensor"]) if isinstance(v, dict) else v
        for k, v in wanted["options"].items()
    }
    params, loss = problem(wanted["class"])
    opt = getattr(optim, wanted["class"])(params, **options)

    def closure():
        opt.zero_grad()
        value = loss()
        value.backward()
        return value

    for _ in range(4):
        opt.step(closure)
    found = opt.state_dict()
    got = {str(k): {n: kind_of(v) for n, v in s.items()} for k, s in found["state"].items()}
    assert got == wanted["state"]
    group = {k: repr(v) for k, v in found["param_groups"][0].items() if k != "params"}
    assert group == wanted["group"] and list(group) == list(wanted["group"])


def test_every_scheduler_is_here():
    assert SCHEDULERS.keys() == KINDS["schedulers"].keys()


@pytest.mark.parametrize("label", sorted(KINDS["schedulers"]))
def test_states_of_schedulers(label):
    opt = optim.SGD([clew.nn.Parameter(clew.zeros(2))], lr=0.1, momentum=0.9)
    schedule = SCHEDULERS[label](opt)
    for i in range(5):
        opt.step()
        schedule.step(*([1.0 + i % 3 * 0.1] if label.startswith("Plateau") else []))
    assert {k: repr(v) for k, v in schedule.state_dict().items()} == KINDS["schedulers"][label]
