"""clew.debug.doctor: each silent mistake is found on its line, and no clean program is blamed."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from doctor_programs import CLEAN, HEADERS, MISTAKES

import clew
from clew._insight.debug.doctor.observer import Observer
from clew._insight.debug.doctor.rule import RULES

pytestmark = pytest.mark.usefixtures("young_heap")  # every program looks for its optimizers

HEADER = HEADERS["short"]


def watched(source: str, path: Path):
    """What is found in a program; rules that failed fail the test."""
    path.write_text(source, encoding="utf-8")
    names = {"__name__": "__main__"}
    observer = Observer()
    observer.install()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(source, str(path), "exec"), names)
    finally:
        observer.remove()
    found = observer.finish(failed=False)
    names.clear()  # a class of the program that something keeps would keep its models, too
    assert not observer.broken, observer.broken
    return found


@pytest.mark.at_once
@pytest.mark.parametrize("name", MISTAKES)
def test_the_mistake_is_found(name, tmp_path):
    source, line, mistake, _ = MISTAKES[name]
    found = watched(source, tmp_path / f"{name}.py")
    mine = [f for f in found if mistake in f.mistake]
    assert mine and len(mine) == len(found), [str(f) for f in found]
    assert any(c.isdigit() for c in mine[0].evidence) and mine[0].change
    if line is not None:
        assert line in [f.line for f in mine], (line, [str(f) for f in found])


@pytest.mark.parametrize("name", MISTAKES)
def test_the_clean_twin_is_not_blamed(name, tmp_path):
    found = watched(MISTAKES[name].twin, tmp_path / f"{name}_clean.py")
    assert not found, [str(f) for f in found]


@pytest.mark.parametrize("name", CLEAN)
def test_clean_programs_are_not_blamed(name, tmp_path):
    found = watched(CLEAN[name], tmp_path / f"{name}.py")
    assert not found, [str(f) for f in found]


def test_a_rate_that_rises_where_nobody_looks_is_not_0(tmp_path, monkeypatch):
    monkeypatch.setattr(Observer, "_may_spend", lambda observer, share: False)
    source = CLEAN["training_that_begins_later"]
    found = watched(source.replace("step < 8", "step < 18"), tmp_path / "later.py")
    assert not found, [str(f) for f in found]


def test_what_was_made_before_the_watch_is_named_by_its_line():
    head, rest = clew.nn.Linear(4, 2), clew.nn.Linear(4, 4)
    data = clew.utils.data.TensorDataset(clew.randn(64, 4), clew.arange(64) // 32)
    optimizer = clew.optim.SGD(head.parameters(), lr=0.1)
    loader = clew.utils.data.DataLoader(data, batch_size=8)
    here = inspect.currentframe().f_lineno
    model = clew.nn.Sequential(rest, head)
    with clew.debug.doctor() as watch:
        for x, y in loader:
            optimizer.zero_grad()
            clew.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    lines = {f.mistake: f.line for f in watch.findings}
    assert lines["parameters are in no optimizer"] == here - 2
    assert lines["the data is sorted by label and not shuffled"] == here - 1


def test_a_schedule_made_before_the_watch_that_never_steps():
    net = clew.nn.Linear(4, 1)
    optimizer = clew.optim.SGD(net.parameters(), lr=0.1)
    schedules = [
        clew.optim.lr_scheduler.StepLR(optimizer, 10),
        clew.optim.lr_scheduler.ReduceLROnPlateau(optimizer),
    ]
    for steps in (6, 60):  # where only a part is watched, it may step later
        with clew.debug.doctor() as watch:
            for _ in range(steps):
                optimizer.zero_grad()
                net(clew.randn(8, 4)).square().mean().backward()
                optimizer.step()
        found = [f.line for f in watch.findings if "never steps" in f.mistake]
        line = inspect.currentframe().f_lineno
        assert found == ([] if steps == 6 else [line - 10, line - 9])
    del schedules


def test_lines_of_installed_packages_are_not_blamed(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "train.py")])  # not `python -m pytest`'s
    source = MISTAKES["softmax_module"].source
    assert watched(source, tmp_path / "train.py")
    home = tmp_path / "site-packages" / "somebody"
    home.mkdir(parents=True)
    assert not watched(source, home / "train.py")


FOLLOWED = (
    "total_weighted_by_the_batch",
    "table_of_positions_in_double",
    "value_of_another_network_as_target",
)


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_follows_from_a_mistake_is_not_told_again(name, tmp_path):
    source = MISTAKES[name].source.replace("range(12)", "range(30)")
    found = watched(source, tmp_path / f"{name}.py")
    assert len(found) == 1, [str(f) for f in found]


@pytest.mark.parametrize(
    ("low", "high", "change"),
    [(-1, 1, "(y + 1) / 2"), (0, 255, "y / 255"), (1, 2, "y - 1")],
)
def test_the_change_for_labels_outside_fits_them(low, high, change, tmp_path):
    source = f"""{HEADER}
net = nn.Linear(4, 1)
opt = clew.optim.Adam(net.parameters(), lr=1e-3)
y = clew.where(x[:, :1] > 0, {high}.0, {low}.0)
for step in range(4):
    opt.zero_grad()
    F.binary_cross_entropy_with_logits(net(x), y).backward()
    opt.step()
"""
    (found,) = watched(source, tmp_path / "labels.py")
    assert change in found.change


def test_evaluation_mode_from_the_beginning(tmp_path):
    source = f"""{HEADER}
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1)).eval()
opt = clew.optim.Adam(net.parameters(), lr=1e-3)
for step in range(4):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
"""
    (found,) = watched(source, tmp_path / "eval.py")
    assert found.mistake == "training goes on in evaluation mode"
    assert found.change == "call model.train() before training"


SOURCE = """
import torch
from torch import nn
torch.manual_seed(0)
net, x, y = nn.Linear(4, 3), torch.randn(16, 4), torch.arange(16) % 3
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x)SOFTMAX, y)
    loss.backward()
    opt.step()
print("done")
"""


def test_clew_run_doctor(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(Path(clew.__file__).parents[1])}
    for softmax in (".softmax(1)", ""):
        path = tmp_path / "train.py"
        path.write_text(SOURCE.replace("SOFTMAX", softmax), encoding="utf-8")
        command = [sys.executable, "-m", "clew", "run", "--doctor", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path)
        assert done.returncode == 0 and done.stdout == "done\n", done.stderr
        if softmax:
            assert "found a mistake" in done.stderr
            assert "at train.py:9: `loss = nn.functional.cross_entropy(" in done.stderr
        else:
            assert done.stderr == ""


def test_the_report_and_what_is_left_behind(capsys):
    net = clew.nn.Linear(2, 2)
    opt = clew.optim.SGD(net.parameters(), lr=0.1)
    untouched = {owner: dict(vars(owner)) for owner in (clew.optim.Optimizer, clew.nn.Module)}
    with clew.debug.doctor() as watch:
        for _ in range(5):
            opt.zero_grad()
            net(clew.randn(4, 2)).sum().backward(retain_graph=True)  # retained
            opt.step()
    assert [f.mistake for f in watch.findings] == ["retain_graph=True is not needed"]
    assert watch.findings[0].file == __file__
    told = capsys.readouterr().err
    assert "1. retain_graph=True is not needed" in told and str(watch).strip() == told.strip()
    for owner, before in untouched.items():
        assert dict(vars(owner)) == before
    assert not clew.optim.optimizer._global_pre_hooks
    with clew.debug.doctor(quiet=True) as watch, pytest.raises(RuntimeError, match="already"):
        watch.__enter__()


def test_where_nothing_steps_looking_ends_and_begins_again_with_a_step():
    x = clew.ones(2, requires_grad=True)
    opt = clew.optim.SGD([x], lr=0.1)
    observer = Observer()
    observer.install()
    looked = []
    try:
        for _ in range(100):
            (x * 2).sum().backward()
            looked.append(observer.run.looking)
        assert observer.run.backwards == 100
        opt.step()
        assert observer.run.looking
    finally:
        observer.remove()
    assert looked[:15] == [True] * 15 and sum(looked[15:]) <= 4
    assert [f.mistake for f in observer.finish(failed=False)] == []


def test_an_exception_passes_and_hooks_are_gone():
    with pytest.raises(ZeroDivisionError), clew.debug.doctor():
        raise ZeroDivisionError
    assert not clew.optim.optimizer._global_pre_hooks


def test_a_backward_from_a_leaf_hides_nothing(tmp_path):
    clew.zeros((), requires_grad=True).backward()
    found = watched(MISTAKES["scores_of_epochs_with_graphs"].source, tmp_path / "scores.py")
    assert [f.mistake for f in found] == ["an evaluation keeps the graph of every batch"]


def test_what_overflows_is_measured_without_a_warning():
    net = clew.nn.Linear(4, 3)
    opt = clew.optim.SGD(net.parameters(), lr=1e-20)
    observer = Observer()
    observer.install()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(4):
                opt.zero_grad()
                (net(clew.ones(8, 4)) * 1e20).sum().backward()
                opt.step()
            observer.finish(failed=False)
    finally:
        observer.remove()
    assert not observer.broken, observer.broken


def test_a_broken_rule_does_not_end_the_program():
    observer = Observer()
    observer.install()

    class Broken(type(observer.rules[0])):
        def finish(self):
            raise ZeroDivisionError

    RULES.remove(Broken)
    observer.rules[0] = Broken(observer.run)
    observer.remove()
    assert observer.finish(failed=False) == []
    assert [type(e) for _, e in observer.broken] == [ZeroDivisionError]


@pytest.mark.parametrize("passes", [4, 10, 40])
def test_an_optimizer_made_before_the_watch_that_never_steps(passes):
    net = clew.nn.Linear(2, 1)
    opt = clew.optim.SGD(net.parameters(), lr=0.1)
    with clew.debug.doctor(quiet=True) as watch:
        for _ in range(passes):
            net(clew.randn(4, 2)).square().sum().backward()
    # A few passes may be gathered for a step that comes after the block.
    assert [f.mistake for f in watch.findings] == ["the optimizer never steps"] * (passes > 8)
    if passes > 8:
        # Beyond 16 not every pass is looked at.
        ran = re.search(r"backward ran (at least )?(\d+) times", str(watch))
        assert ran is not None and bool(ran[1]) == (passes > 16)
        assert 16 <= int(ran[2]) < 40 if passes > 16 else int(ran[2]) == passes
    assert opt.param_groups[0]["lr"] == 0.1


def test_a_list_is_told_with_the_line_that_fills_it(tmp_path):
    source = (
        HEADER
        + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts, self.out = [], nn.Linear(4, 1)
        for _ in range(2):
            self.parts.append(nn.Linear(4, 4))
    def forward(self, x):
        for part in self.parts:
            x = part(x).tanh()
        return self.out(x)
net = Net()
opt = clew.optim.SGD(net.parameters(), lr=0.05)
for step in range(4):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
"""
    )
    (found,) = watched(source, tmp_path / "filled.py")
    line = source[: source.index("self.parts.append")].count("\n") + 1
    assert "plain list" in found.mistake and f"it is filled at {tmp_path}" in found.evidence
    assert found.evidence.endswith(f"filled.py:{line}")


def test_seeding_is_seen_by_a_name_that_was_taken_before():
    seed, net = clew.manual_seed, clew.nn.Sequential(clew.nn.Linear(4, 8), clew.nn.Dropout(0.5))
    opt = clew.optim.SGD(net.parameters(), lr=0.01)
    with clew.debug.doctor(quiet=True) as watch:
        for _ in range(6):
            seed(3)
            opt.zero_grad()
            net(clew.ones(8, 4)).square().mean().backward()
            opt.step()
    assert [f.mistake for f in watch.findings] == [
        "the same random numbers are drawn in every step"
    ]


# What a line is asked for that has run forty times since the last backward, on tensors that are
# alike; each with what is found then.
OFTEN = {
    "shapes": (
        "are broadcast against each other",
        "times(net(x), target).mean()",
        "times(net(x), target[:, 0]).mean()",
    ),
    "dtypes": (
        "float64 creeps in",
        "plus(net(x), target).mean()",
        "plus(net(x), target.double()).mean()",
    ),
    "integers": (
        "integer division where a fraction was meant",
        "times(clew.arange(40, 80), 2)",
        "times(clew.arange(1, 41) // 50, 2.0)",
    ),
    "divergence": (
        "log_softmax missing before kl_div",
        "divergence(wide(x).log_softmax(1), shares)",
        "divergence(wide(x).softmax(1), shares)",
    ),
    "swapped": (
        "input and target of a loss are swapped",
        "entropy(wide(x), F.one_hot(labels, 3).float())",
        "entropy(F.one_hot(labels, 3).float(), wide(x))",
    ),
    "advantage": (
        "the advantage is not detached from its critic",
        "times(wide(x)[:, 0] * 1.0, wide(x)[:, 1] * 1.0).mean()",
        "times(scores(), target[:, 0] - net(x)[:, 0]).mean()",
    ),
    "term": (
        "a term of the loss is made of gradients that were not recorded",
        "plus(net(x).mean(), net(x).mean())",
        "plus(net(x).mean(), steepness())",
    ),
}


@pytest.mark.parametrize("name", OFTEN)
def test_a_line_that_ran_often(name, tmp_path):
    mistake, clean, wrong = OFTEN[name]
    source = f"""{HEADER}
net, wide = nn.Linear(4, 1), nn.Linear(4, 3)
opt = clew.optim.SGD([*net.parameters(), *wide.parameters()], lr=1e-4)
shares = wide(x).detach().softmax(1)
def times(a, b):
    return a * b
def plus(a, b):
    return a + b
def divergence(a, b):
    return F.kl_div(a, b, reduction="batchmean")
def entropy(a, b):
    return F.cross_entropy(a, b)
def scores():
    policy = clew.distributions.Categorical(logits=wide(x))
    return policy.log_prob(policy.sample())
def steepness():
    given = x.clone().requires_grad_()
    return clew.autograd.grad(net(given).square().sum(), given)[0].square().mean()
for step in range(6):
    opt.zero_grad()
    loss = net(x).square().mean() + wide(x).square().mean()
    for _ in range(40):
        {clean}
    more = CALLED
    (loss + more if more.requires_grad else loss).backward()
    opt.step()
"""
    found = watched(source.replace("CALLED", wrong), tmp_path / "wrong.py")
    assert [f.mistake for f in found if mistake in f.mistake], [str(f) for f in found]
    found = watched(source.replace("CALLED", clean), tmp_path / "clean.py")
    assert not [f.mistake for f in found if mistake in f.mistake], [str(f) for f in found]


def test_rules_that_need_few_calls_of_a_line():
    few = Observer()._few
    assert {"add", "mul", "tanh", "relu", "nn.functional.linear", "matmul"} <= few
    # These look at values, or at what came before.
    assert not {"sub", "div", "sqrt", "pow", "where", "xlogy", "_cross_entropy", "std"} & few


def test_small_operations_cost_a_few_calls():
    """A line's calls beyond the first few are not shown."""
    seen = []
    observer = Observer()
    ask = observer._ask
    observer._ask = lambda rules, event, *args: (seen.append(event), ask(rules, event, *args))
    x, w = clew.ones(8, 8, requires_grad=True), clew.ones(8, 8)
    observer.install()
    try:
        h = x
        for _ in range(100):
            h = (h * w + x).tanh()
        h.sum().backward()
    finally:
        observer.remove()
    # The first product is that of a leaf, all others are of what tanh() gave.
    assert seen.count("operation") == 8 + 8 + 8 + 1
