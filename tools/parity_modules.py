"""Compares clew with PyTorch's own tables of modules and optimizers, aspect by aspect.

Needs an environment with torch==2.13.0, numpy, scipy and expecttest beside clew; run as
`python tools/parity_modules.py [--only NAME] [--json FILE]`. One line a module or optimizer, a
verdict for each aspect, then a summary. Aspects of modules:

    forward    results in training and evaluation, from PyTorch's weights; buffers afterwards
    gradient   of a random product with the results, for inputs and parameters
    second     the gradient's gradient, in float64
    state      the state dict's keys, shapes and dtypes; attributes; a round trip
    repr       the printed form
    copy       a deep copy and a pickled one give the same results
    errors     the table's error inputs raise the same kind of exception, with a message

and of optimizers, in float64:

    steps      with every input of the table
    flags      foreach, fused, differentiable, maximize
    groups     parameter groups and schedulers
    state      the state dict's contents; going on from PyTorch's
    complex    the same with complex parameters
    errors     as for modules

Schedulers follow PyTorch's learning rates over 40 steps.
"""

from __future__ import annotations

import argparse
import collections
import copy
import functools
import json
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.common_modules import ModuleErrorEnum, module_db

import clew
import parity_common as common
import parity_optimizers
from parity_common import Skipped, compare, describe, leaves, to_clew, tolerance_of

warnings.simplefilter("ignore")


def remember_arguments(cls: Any) -> None:
    """Instances keep what they were made with, so that clew's can be made alike."""
    original = cls.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.__dict__["made_with"] = (args, kwargs)

    cls.__init__ = init


for layer in (torch.nn.TransformerEncoderLayer, torch.nn.TransformerDecoderLayer):
    remember_arguments(layer)


def build(cls: Any, args: Any, kwargs: Any) -> Any:
    return common.lookup(f"nn.{cls.__name__}")(*to_clew(args), **to_clew(kwargs))


def random_when_training(m: torch.nn.Module) -> bool:
    def draws(part: Any) -> bool:
        p = getattr(part, "p", 0) if "Dropout" in type(part).__name__ else 0
        return bool(p) or bool(getattr(part, "dropout", 0)) or isinstance(part, torch.nn.RReLU)

    return any(draws(part) for part in m.modules()) or "Fractional" in type(m).__name__


class Case:
    """One module input, built on both sides with the same weights."""

    def __init__(self, info: Any, k: int, sample: Any, dtype: torch.dtype, training: bool) -> None:
        made = sample.constructor_input
        self.what = f"sample {k} {describe((made.args, made.kwargs))}" + (
            " training" if training else ""
        )
        torch.manual_seed(k)
        extra = {} if "dtype" in made.kwargs else {"dtype": dtype}
        try:
            self.theirs = info.module_cls(*made.args, **made.kwargs, **extra)
        except TypeError:
            extra = {}
            self.theirs = info.module_cls(*made.args, **made.kwargs)
        self.ours = build(info.module_cls, made.args, {**made.kwargs, **extra})
        given = sample.forward_input
        self.inputs = [given.args, given.kwargs]
        self.inputs_ours = to_clew(self.inputs)
        if info.is_lazy:
            self.lazy_keys = (list(self.theirs.state_dict()), list(self.ours.state_dict()))
            with torch.no_grad(), clew.no_grad():
                self.theirs(*given.args, **given.kwargs)
                self.ours(*self.inputs_ours[0], **self.inputs_ours[1])
        self.theirs.to(dtype)
        self.ours.to(common.DTYPES[dtype])
        self.theirs.train(training)
        self.ours.train(training)
        self.before = {k: v.detach().clone() for k, v in self.theirs.state_dict().items()}
        self.random = training and random_when_training(self.theirs)

    def load(self) -> None:
        self.ours.load_state_dict({k: to_clew(v) for k, v in self.before.items()})

    def run(self) -> tuple[Any, Any]:
        self.load()
        want = self.theirs(*self.inputs[0], **self.inputs[1])
        try:
            got = self.ours(*self.inputs_ours[0], **self.inputs_ours[1])
        except Exception as e:
            raise AssertionError(f"{self.what}: {type(e).__name__}: {common.first_line(e)}") from e
        return want, got


def cases(info: Any, dtype: torch.dtype, grad: bool, limit: int) -> Iterator[Case]:
    if dtype not in info.supported_dtypes("cpu"):
        raise Skipped(str(dtype))
    for training in (True, False):
        samples = info.module_inputs_func(
            info, device="cpu", dtype=dtype, requires_grad=grad, training=training
        )
        for k, sample in enumerate(samples[:limit]):
            yield Case(info, k, sample, dtype, training)


def check_forward(info: Any, dtype: torch.dtype, limit: int) -> str:
    count = 0
    for case in cases(info, dtype, False, limit):
        want, got = case.run()
        values = not case.random
        compare(leaves(want), leaves(got), case.what, tolerance_of(dtype), values)
        buffers = [dict(m.named_buffers()) for m in (case.theirs, case.ours)]
        assert list(buffers[0]) == list(buffers[1]), f"{case.what}: buffers {list(buffers[1])}"
        compare(
            list(buffers[0].values()),
            list(buffers[1].values()),
            f"{case.what} buffers",
            tolerance_of(dtype),
            values,
        )
        count += 1
    return f"ok ({count})"


def check_gradient(info: Any, dtype: torch.dtype, limit: int, second: bool = False) -> str:
    count = 0
    for case in cases(info, dtype, True, limit):
        if case.random:
            continue
        want, got = (leaves(x) for x in case.run())
        both = [*zip(leaves(case.inputs), leaves(case.inputs_ours))]
        both += list(zip(case.theirs.parameters(), case.ours.parameters()))
        pairs = [(a, b) for a, b in both if a.requires_grad]
        roots = [(a, b) for a, b in zip(want, got) if a.requires_grad]
        if not pairs or not roots:
            continue
        assert all(b.requires_grad for _, b in roots), f"{case.what}: the result requires no grad"
        torch.manual_seed(5)
        seeds = [torch.randn_like(a) for a, _ in roots]
        seeds_ours = [to_clew(x) for x in seeds]
        if second:
            for x in (*seeds, *seeds_ours):
                x.requires_grad_()
        flags = {"allow_unused": True, "create_graph": second}
        gw = torch.autograd.grad([a for a, _ in roots], [a for a, _ in pairs], seeds, **flags)
        gg = clew.autograd.grad([b for _, b in roots], [b for _, b in pairs], seeds_ours, **flags)
        compare(list(gw), list(gg), f"{case.what} gradient", 5 * tolerance_of(dtype))
        count += 1
        if second:
            everything = pairs + list(zip(seeds, seeds_ours))
            gradients = list(zip(gw, gg))
            common.second_derivative(everything, gradients, case.what, 20 * tolerance_of(dtype))
    return f"ok ({count})"


def check_state(info: Any, dtype: torch.dtype, limit: int) -> str:
    for case in cases(info, dtype, False, limit):
        if info.is_lazy:
            want, got = case.lazy_keys
            assert want == got, f"{case.what} before the first call: keys {got}, expected {want}"
        want, got = case.before, case.ours.state_dict()
        assert list(want) == list(got), f"{case.what}: keys {list(got)}, expected {list(want)}"
        compare(list(want.values()), list(got.values()), case.what, 0, values=False)
        want = [n for n, _ in case.theirs.named_parameters()]
        got = [n for n, _ in case.ours.named_parameters()]
        assert want == got, f"{case.what}: parameters {got}, expected {want}"
        for name, value in vars(case.theirs).items():
            if name.startswith("_") or isinstance(value, (torch.Tensor, torch.nn.Module)):
                continue
            if name in ("made_with", "use_nested_tensor") or callable(value):
                continue
            assert hasattr(case.ours, name), f"{case.what}: no attribute {name}"
            mine = getattr(case.ours, name)
            assert mine == to_clew(value), f"{case.what}: {name} is {mine!r}, expected {value!r}"
        result = case.ours.load_state_dict({k: to_clew(v) for k, v in case.before.items()})
        assert str(result) == "<All keys matched successfully>", f"{case.what}: {result}"
    return "ok"


def check_repr(info: Any, dtype: torch.dtype, limit: int) -> str:
    for case in cases(info, dtype, False, limit):
        want, got = repr(case.theirs).replace("torch.", "clew."), repr(case.ours)
        assert want == got, f"{case.what}: {got!r}, expected {want!r}"
    return "ok"


def check_copy(info: Any, dtype: torch.dtype, limit: int) -> str:
    for case in cases(info, dtype, False, min(limit, 3)):
        case.ours.eval()
        case.load()
        for way in (copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))):
            twin = way(case.ours)
            clew.manual_seed(0)
            want = case.ours(*case.inputs_ours[0], **case.inputs_ours[1])
            clew.manual_seed(0)
            got = twin(*case.inputs_ours[0], **case.inputs_ours[1])
            for a, b in zip(leaves(want), leaves(got)):
                assert clew.allclose(a, b, equal_nan=True), f"{case.what}: a copy differs"
    return "ok"


def check_errors(info: Any, dtype: torch.dtype) -> str:
    found = info.module_error_inputs_func(
        info, device="cpu", dtype=dtype, requires_grad=False, training=True
    )
    wrong, count = [], 0
    for k, error in enumerate(found):
        made, given = error.module_error_input.constructor_input, None
        what = f"error input {k} {describe((made.args, made.kwargs))}"
        at_forward = error.error_on == ModuleErrorEnum.FORWARD_ERROR
        if at_forward:
            given = error.module_error_input.forward_input
            what += f" on {describe((given.args, given.kwargs))}"

        def attempt(ours: bool, made: Any = made, given: Any = given) -> None:
            if ours:
                m = build(info.module_cls, made.args, made.kwargs)
                if given is not None:
                    m(*to_clew(given.args), **to_clew(given.kwargs))
            else:
                m = info.module_cls(*made.args, **made.kwargs)
                if given is not None:
                    m(*given.args, **given.kwargs)

        try:
            count += common.agree_on_error(lambda: attempt(False), lambda: attempt(True), what)
        except AssertionError as e:
            wrong.append(str(e))
    assert not wrong, f"{len(wrong)} of {len(wrong) + count}: {' | '.join(wrong)}"
    return f"ok ({count})"


def examine(info: Any, limit: int) -> dict[str, str]:
    single, double = torch.float32, torch.float64
    if single not in info.supported_dtypes("cpu"):
        single = next(iter(info.supported_dtypes("cpu")))
    tasks: dict[str, Callable[[], str]] = {
        "forward": lambda: check_forward(info, single, limit),
        "gradient": lambda: check_gradient(info, single, limit),
        "state": lambda: check_state(info, single, limit),
        "repr": lambda: check_repr(info, single, limit),
        "copy": lambda: check_copy(info, single, limit),
    }
    if info.supports_gradgrad:
        tasks["second"] = lambda: check_gradient(info, double, min(limit, 12), True)
    if info.module_error_inputs_func is not None:
        tasks["errors"] = lambda: check_errors(info, single)
    return {name: common.verdict(task) for name, task in tasks.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--only", help="modules and optimizers whose name contains this")
    parser.add_argument("--limit", type=int, default=64, help="samples a module")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=120, help="processor time one may take")
    parser.add_argument("--quiet", action="store_true", help="only what fails")
    parser.add_argument("--json", help="write all verdicts to this file")
    options = parser.parse_args()
    jobs: list[tuple[str, Callable[[], dict[str, str]]]] = [
        (info.name, functools.partial(examine, info, options.limit)) for info in module_db
    ]
    jobs += parity_optimizers.jobs()
    jobs = [j for j in jobs if not options.only or options.only in j[0]]
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    results: dict[str, dict[str, str]] = {}
    for name, verdicts in common.isolated(jobs, options.jobs, options.seconds):
        results[name] = verdicts
        for aspect, text in verdicts.items():
            counts[f"{name.split('.')[0]} {aspect}"][common.outcome(text)] += 1
        common.show(name, verdicts, options.quiet)
    common.summary(counts)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(results, f, indent=1, sort_keys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
