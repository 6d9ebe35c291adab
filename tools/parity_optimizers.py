"""The comparisons of optimizers and schedulers that parity_modules.py runs."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db

import clew
import parity_common as common
from parity_common import Skipped, compare, describe, to_clew

TOLERANCE = 1e-9


class Problem:
    """A small loss with the same parameters on one side or the other."""

    def __init__(self, t: Any, matrices: bool, dtype: str = "float64") -> None:
        self.t = t
        g = torch.Generator().manual_seed(1)
        kind = getattr(torch, dtype)
        shapes = [(4, 3), (3, 5)] if matrices else [(4, 3), (3,), ()]
        raw = [torch.randn(s, generator=g, dtype=kind) for s in shapes]
        self.targets = [torch.randn(s, generator=g, dtype=kind) for s in shapes]
        self.scales = [torch.rand(s, generator=g, dtype=torch.float64) + 0.5 for s in shapes]
        if t is clew:
            raw, self.targets, self.scales = map(to_clew, (raw, self.targets, self.scales))
        self.params = [t.nn.Parameter(p) for p in raw]

    def loss(self) -> Any:
        parts = zip(self.params, self.targets, self.scales)
        first = self.params[0].abs().square().mean()
        return sum((s * (p - q).abs().square()).sum() for p, q, s in parts) + first.sin()

    def step(self, optimizer: Any, sparse: bool = False) -> None:
        def closure() -> Any:
            optimizer.zero_grad()
            value = self.loss()
            value.backward()
            if sparse:  # half of the rows have gradients
                for p in self.params:
                    if p.ndim:
                        p.grad[::2] = 0
                    if self.t is torch:
                        p.grad = p.grad.to_sparse(min(p.ndim, 1))
            return value

        optimizer.step(closure)

    def both(self, other: Problem, what: str) -> None:
        compare(
            [p.detach() for p in self.params],
            [p.detach() for p in other.params],
            what,
            # PyTorch holds some factors in float32 there.
            1e-6 if "foreach" in what or "Tensor lr" in what else TOLERANCE,
        )


def clean(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in kwargs.items() if k != "capturable"}


def make(info: Any, t: Any, params: Any, kwargs: dict[str, Any]) -> Any:
    if t is torch:
        return info.optim_cls(params, **kwargs)
    return common.lookup(f"optim.{info.name}")(params, **to_clew(kwargs))


def follow(info: Any, kwargs: dict[str, Any], what: str, dtype: str = "float64") -> None:
    a, b = (Problem(t, info.name == "Muon", dtype) for t in (torch, clew))
    sparse = info.only_supports_sparse_grads
    if sparse:
        a.params, b.params = a.params[:2], b.params[:2]
    first = make(info, torch, a.params, kwargs)
    second = make(info, clew, b.params, kwargs)
    for k in range(8):
        a.step(first, sparse)
        b.step(second, sparse)
        a.both(b, f"{what} step {k}")


def inputs(info: Any) -> list[Any]:
    return [i for i in info.optim_inputs_func(device="cpu") if not i.kwargs.get("capturable")]


def check_steps(info: Any) -> str:
    found = inputs(info)
    for i in found:
        follow(info, i.kwargs, i.desc)
    return f"ok ({len(found)})"


def check_flags(info: Any) -> str:
    done = []
    for flag in (*info.supported_impls, "maximize"):
        for value in (True, False):
            if info.name in ("LBFGS", "SparseAdam") and flag != "maximize":
                continue
            theirs = {} if flag in ("fused", "differentiable") else {flag: value}
            try:
                info.optim_cls([torch.nn.Parameter(torch.ones(2, 2))], **{flag: value})
            except TypeError:
                continue
            a, b = (Problem(t, info.name == "Muon") for t in (torch, clew))
            sparse = info.only_supports_sparse_grads
            if sparse:
                a.params, b.params = a.params[:2], b.params[:2]
            first = make(info, torch, a.params, theirs)
            second = make(info, clew, b.params, {flag: value})
            if flag == "differentiable" and value:
                continue
            for _ in range(4):
                a.step(first, sparse)
                b.step(second, sparse)
            a.both(b, f"{flag}={value}")
        done.append(flag)
    return f"ok ({', '.join(done)})"


def check_groups(info: Any) -> str:
    if not info.supports_param_groups:
        return "- (one group only)"
    count = 0
    for entry in info.scheduler_inputs:
        a, b = (Problem(t, info.name == "Muon") for t in (torch, clew))
        sparse = info.only_supports_sparse_grads
        if sparse:
            a.params, b.params = a.params[:2], b.params[:2]
        made = []
        for t, problem in ((torch, a), (clew, b)):
            groups = [{"params": problem.params[:1], "lr": 0.01}, {"params": problem.params[1:]}]
            optimizer = make(info, t, groups, {"lr": 0.001})
            wrap: Callable[[Any], Any] = common.rebind if t is clew else (lambda f: f)
            made.append((optimizer, [wrap(f)(optimizer) for f in entry]))
        for k in range(12):
            for problem, (optimizer, schedulers) in zip((a, b), made):
                problem.step(optimizer, sparse)
                for s in schedulers:
                    s.step(1.0) if type(s).__name__ == "ReduceLROnPlateau" else s.step()
            rates = [[float(g["lr"]) for g in o.param_groups] for o, _ in made]
            assert max(abs(x - y) for x, y in zip(*rates)) < 1e-9, f"rates {rates[1]}, {rates[0]}"
            a.both(b, f"groups, schedulers, step {k}")
        count += 1
    return f"ok ({count})"


def check_state(info: Any) -> str:
    for i in inputs(info):
        a, b = (Problem(t, info.name == "Muon") for t in (torch, clew))
        sparse = info.only_supports_sparse_grads
        if sparse:
            a.params, b.params = a.params[:2], b.params[:2]
        first = make(info, torch, a.params, i.kwargs)
        second = make(info, clew, b.params, i.kwargs)
        for _ in range(3):
            a.step(first, sparse)
            b.step(second, sparse)
        want, got = first.state_dict(), second.state_dict()
        groups = zip(want["param_groups"], got["param_groups"])
        for g, h in groups:
            missing, extra = set(g) - set(h), set(h) - set(g)
            assert not missing, f"{i.desc}: param_groups lack {sorted(missing)}"
            assert not extra, f"{i.desc}: param_groups have {sorted(extra)}"
            for key in g:
                x, y = to_clew(g[key]), h[key]
                if isinstance(y, clew.Tensor):
                    assert clew.equal(x, y), f"{i.desc}: {key} is {y}, expected {x}"
                else:
                    assert x == y, f"{i.desc}: {key} is {y!r}, expected {x!r}"
        assert list(want["state"]) == list(got["state"]), f"{i.desc}: {list(got['state'])}"
        for index, entry in want["state"].items():
            mine = got["state"][index]
            assert set(entry) == set(mine), (
                f"{i.desc}: state has {sorted(mine)}, expected {sorted(entry)}"
            )
            for key, value in entry.items():
                if isinstance(value, torch.Tensor):
                    limit = 1e-6 if "Tensor lr" in i.desc or info.name == "LBFGS" else TOLERANCE
                    compare([value], [mine[key]], f"{i.desc}: state {key}", limit)
        # Each goes on from the other's state.
        third = make(info, clew, b.params, i.kwargs)
        third.load_state_dict(to_clew(want))
        for _ in range(3):
            a.step(first, sparse)
            b.step(third, sparse)
        a.both(b, f"{i.desc}: after loading PyTorch's state")
    return "ok"


def check_complex(info: Any) -> str:
    if not info.supports_complex or info.only_supports_sparse_grads or info.name == "Muon":
        return "- (not supported)"
    for i in inputs(info):
        follow(info, i.kwargs, f"complex, {i.desc}", "complex128")
    return "ok"


def copied(x: Any) -> Any:
    """Fresh lists and dicts: optimizers write into the groups they are given."""
    if isinstance(x, list):
        return [copied(v) for v in x]
    return {k: copied(v) for k, v in x.items()} if isinstance(x, dict) else x


def attempt(info: Any, error: Any, t: Any, kind: torch.dtype) -> None:
    """Constructs and steps; raises a UserWarning where one is given."""
    given = error.optimizer_error_input
    params = given.params
    if params is None:
        params = [torch.nn.Parameter(torch.ones(2, 3, dtype=kind))]
    params = copied(params) if t is torch else to_clew(params)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        optimizer = make(info, t, params, given.kwargs)
        if error.error_on == OptimizerErrorEnum.STEP_ERROR:
            for group in optimizer.param_groups:
                for p in group["params"]:
                    p.grad = t.ones_like(p)
            optimizer.step()


def check_errors(info: Any) -> str:
    wrong, count = [], 0
    for kind in (torch.float32,):
        for error in info.optim_error_inputs_func(device="cpu", dtype=kind):
            if info.name == "LBFGS" and error.error_on == OptimizerErrorEnum.STEP_ERROR:
                continue
            given = error.optimizer_error_input
            what = f"{given.desc} {describe(given.kwargs)}"
            run = functools.partial(attempt, info, error, kind=kind)
            try:
                count += common.agree_on_error(
                    lambda run=run: run(torch), lambda run=run: run(clew), what
                )
            except Skipped:
                continue
            except AssertionError as e:
                wrong.append(str(e))
    assert not wrong, f"{len(wrong)} of {len(wrong) + count}: {' | '.join(wrong)}"
    return f"ok ({count})"


def examine(info: Any) -> dict[str, str]:
    checks = {
        "steps": check_steps,
        "flags": check_flags,
        "groups": check_groups,
        "state": check_state,
        "complex": check_complex,
        "errors": check_errors,
    }
    return {name: common.verdict(lambda f=f: f(info)) for name, f in checks.items()}


# A few settings of every scheduler.
SCHEDULERS: dict[str, Callable[[Any, Any], Any]] = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda e: 0.9**e),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.95),
    "StepLR": lambda s, o: s.StepLR(o, 7, gamma=0.3),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [3, 11, 11], gamma=0.5),
    "ConstantLR": lambda s, o: s.ConstantLR(o, factor=0.2, total_iters=6),
    "LinearLR": lambda s, o: s.LinearLR(o, start_factor=0.1, end_factor=0.8, total_iters=9),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, total_iters=20, power=2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, T_max=13, eta_min=0.001),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.001),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.001, 0.1, 5, 7, mode="triangular2"),
    "CyclicLR exp": lambda s, o: s.CyclicLR(o, 0.001, 0.1, 4, mode="exp_range", gamma=0.97),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=50, three_phase=True),
    "OneCycleLR linear": lambda s, o: s.OneCycleLR(
        o, 0.1, epochs=5, steps_per_epoch=9, anneal_strategy="linear"
    ),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9)], milestones=[5]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9)], optimizer=o
    ),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o, "max", 0.3, 2, cooldown=1, eps=1e-9),
}


def check_schedule(name: str) -> str:
    built = []
    for t in (torch, clew):
        p = t.nn.Parameter(t.zeros(2))
        o = t.optim.SGD([{"params": [p]}], lr=0.05, momentum=0.9)
        built.append((o, SCHEDULERS[name](t.optim.lr_scheduler, o)))
    for k in range(40):
        rates = []
        for o, s in built:
            rates.append((o.param_groups[0]["lr"], o.param_groups[0]["momentum"]))
            o.step()
            s.step(float(k % 7)) if "Plateau" in name else s.step()
        assert all(abs(x - y) < 1e-12 for x, y in zip(*rates)), (
            f"step {k}: {rates[1]}, expected {rates[0]}"
        )
    keys = [set(s.state_dict()) for _, s in built]
    hidden = {k for k in keys[0] ^ keys[1] if k.startswith("_") and k != "_last_lr"}
    assert not (keys[0] ^ keys[1]) - hidden, f"state: {sorted(keys[0] ^ keys[1])} on one side only"
    return "ok"


def jobs() -> list[tuple[str, Callable[[], dict[str, str]]]]:
    found = [(f"optim.{info.name}", functools.partial(examine, info)) for info in optim_db]
    for name in SCHEDULERS:

        def schedule(name: str = name) -> dict[str, str]:
            return {"rates": common.verdict(lambda: check_schedule(name))}

        found.append((f"lr_scheduler.{name}", schedule))
    return found
