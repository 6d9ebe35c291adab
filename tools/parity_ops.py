"""Compares clew with PyTorch's own table of operators and sample inputs, aspect by aspect.

Needs an environment with torch==2.13.0, numpy, scipy and expecttest beside clew; run as
`python tools/parity_ops.py [--only NAME] [--aspects forward,gradient] [--dtypes] [--json FILE]`.
One line an operator, a verdict for each aspect, then a summary. Aspects:

    forward    values, shapes, dtypes of all sample inputs
    gradient   of a random product with the results
    second     the gradient's gradient, in float64
    method     the Tensor method that the table names
    inplace    the in-place method: value, identity, gradient
    out        out=: the given tensor is filled, an empty one is resized, refusals agree
    errors     the table's error inputs raise the same kind of exception, with a message
    aliases    other names of the same function
    DTYPE      with --dtypes: forward (and gradient) in float64, int64, bool, complex64, bfloat16
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import clew
import parity_common as common
from parity_common import Absent, Skipped, compare, describe, leaves, to_clew, tolerance_of

warnings.simplefilter("ignore")

ASPECTS = ("forward", "gradient", "second", "method", "inplace", "out", "errors", "aliases")
OTHER_DTYPES = ("float64", "int64", "bool", "complex64", "bfloat16")

# Compared in shape, dtype and, where there are enough elements, mean and spread.
RANDOM = {
    "rand_like",
    "randn_like",
    "randint_like",
    "normal",
    "bernoulli",
    "multinomial",
    "randn",
    "randint",
    "uniform",
    "exponential",
    "cauchy",
    "geometric",
    "log_normal",
    "nn.functional.rrelu",
    "nn.functional.multi_head_attention_forward",
    "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d",
    "nn.functional.dropout",
    "nn.functional.dropout1d",
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
    "nn.functional.alpha_dropout",
    "nn.functional.feature_alpha_dropout",
    "nn.functional.gumbel_softmax",
    "svd_lowrank",
    "pca_lowrank",
}
# Their elements are whatever lay in memory.
EMPTY = {
    "empty",
    "empty_like",
    "new_empty",
    "new_empty_strided",
    "empty_permuted",
    "empty_strided",
    "resize_",
    "resize_as_",
}
# Results that are defined up to signs, phases or order: only what the table's own
# `output_process_fn_grad` leaves of them is compared.
GAUGE = {"linalg.eig", "linalg.eigh", "linalg.svd", "svd", "geqrf", "lobpcg"}


# Indices among equal elements are not specified, unless a stable order is asked for.
TIES = {"argsort", "kthvalue", "mode", "sort", "topk", "median", "nanmedian", "cummax", "cummin"}


# Where PyTorch's own answer is the odd one.
KNOWN = {
    "as_strided_scatter": "gives overwritten elements a gradient",
    "special.bessel_j0": "has 6 digits beyond 5, SciPy all",
    "special.bessel_y1": "has 6 digits beyond 5, SciPy all",
}


def settled(op: Any, sample: Any, results: list[Any]) -> list[Any]:
    """The results without indices that may point to any of several equal elements."""
    if op.name not in TIES or sample.kwargs.get("stable"):
        return results
    return [] if op.name == "argsort" else results[:1]


def internal(name: str) -> bool:
    """Whether the name is none that programs use: private functions, backward kernels, CUDA."""
    last = name.split(".")[-1]
    private = last.startswith("_") and not last.startswith("__")
    return private or name.startswith(("torch.ops", "jiterator")) or last.endswith("_backward")


def function(op: Any) -> Any:
    """clew's counterpart of op.op."""
    path = common.path_of(op.op, op.name)
    if path is not None:
        return common.lookup(path)
    found = common.rebind(op.op)
    return common.lookup(op.name) if found is op.op else found


class Case:
    """One sample input, on both sides."""

    def __init__(self, op: Any, k: int, sample: Any) -> None:
        self.sample = sample
        self.theirs = [sample.input, sample.args, sample.kwargs]
        self.ours = to_clew(self.theirs)
        self.what = f"sample {k} {describe(tuple(self.theirs))}"
        self.process = sample.output_process_fn_grad
        self.process_ours = common.rebind(self.process)

    def call(self, f: Any, ours: bool) -> Any:
        first, args, kwargs = self.ours if ours else self.theirs
        if not ours:
            return f(first, *args, **kwargs)
        try:
            return f(first, *args, **kwargs)
        except (Absent, Skipped):
            raise
        except AttributeError:
            raise
        except Exception as e:
            raise AssertionError(f"{self.what}: {type(e).__name__}: {common.first_line(e)}") from e

    def pairs(self) -> list[tuple[Any, Any]]:
        """The inputs that want a gradient."""
        both = zip(leaves(self.theirs), leaves(self.ours))
        return [(a, b) for a, b in both if a.requires_grad]


def cases(op: Any, dtype: torch.dtype, limit: int, grad: bool) -> Iterator[Case]:
    """The sample inputs that clew can hold."""
    skipped, given = "", 0
    samples = op.sample_inputs("cpu", dtype, requires_grad=grad)
    for k, sample in enumerate(samples):
        if given == limit:
            return
        try:
            yield Case(op, k, sample)
            given += 1
        except Skipped as e:
            skipped = str(e)
    if not given:
        raise Skipped(skipped or "no samples")


def similar(want: list[Any], got: list[Any], what: str) -> None:
    """Asserts equal shapes and dtypes, and near means where there are many elements."""
    compare(want, got, what, 0, values=False)
    for w, g in zip(want, got):
        if isinstance(w, torch.Tensor) and w.numel() >= 400:
            a, b = common.array(w).astype(float), common.array(g).astype(float)
            if np.isfinite(a).all():
                near = 8 * (a.std() + b.std()) / np.sqrt(a.size) + 1e-6
                assert abs(a.mean() - b.mean()) <= near, (
                    f"{what}: mean {b.mean():.4g}, expected about {a.mean():.4g}"
                )


def check_forward(op: Any, dtype: torch.dtype, limit: int, grad: bool) -> str:
    f, count = function(op), 0
    for case in cases(op, dtype, limit, grad):
        want, got = case.call(op.op, False), case.call(f, True)
        if op.name in GAUGE:
            want, got = case.process(want), case.process_ours(got)
        want, got = leaves(want, True), leaves(got, True)
        if dtype in (torch.int64, torch.bool, torch.bfloat16) and op.name in TIES:
            compare(want, got, case.what, 0, values=False)
            want, got = settled(op, case.sample, want), settled(op, case.sample, got)
        if op.name in RANDOM or case.sample.kwargs.get("dropout_p"):
            similar(want, got, case.what)
        else:
            compare(want, got, case.what, tolerance_of(dtype), values=op.name not in EMPTY)
        count += 1
    return f"ok ({count})"


def differentiate(case: Case, want: Any, got: Any, tolerance: float, second: bool) -> None:
    """Compares gradients of processed results for the inputs; of the gradients too if asked."""
    pairs = case.pairs()
    want, got = leaves(case.process(want)), leaves(case.process_ours(got))
    assert len(want) == len(got), f"{case.what}: {len(got)} results, expected {len(want)}"
    roots = [(a, b) for a, b in zip(want, got) if a.requires_grad]
    extra = [b for a, b in zip(want, got) if b.requires_grad and not a.requires_grad]
    assert not extra, f"{case.what}: a result requires grad"
    assert all(b.requires_grad for a, b in roots if a.numel()), (
        f"{case.what}: the result requires no grad"
    )
    roots = [(a, b) for a, b in roots if b.requires_grad]
    if not pairs or not roots:
        return
    torch.manual_seed(7)
    seeds = [torch.randn_like(a) for a, _ in roots]
    ours = [to_clew(s) for s in seeds]
    if second:
        for s, o in zip(seeds, ours):
            s.requires_grad_()
            o.requires_grad_()
    ins, ins_ours = [a for a, _ in pairs], [b for _, b in pairs]
    extras = {"allow_unused": True, "create_graph": second}
    try:
        gw = list(torch.autograd.grad([a for a, _ in roots], ins, seeds, **extras))
    except RuntimeError as e:
        if "is not implemented" in str(e):
            raise Skipped("PyTorch has none") from None
        raise
    gg = list(clew.autograd.grad([b for _, b in roots], ins_ours, ours, **extras))
    compare(gw, gg, f"{case.what} gradient", tolerance * 5)
    if not second:
        return
    everything = [*zip(ins, ins_ours), *zip(seeds, ours)]
    common.second_derivative(everything, list(zip(gw, gg)), case.what, tolerance * 20)


def check_gradient(op: Any, dtype: torch.dtype, limit: int, second: bool = False) -> str:
    f, count = function(op), 0
    for case in cases(op, dtype, limit, True):
        want, got = case.call(op.op, False), case.call(f, True)
        low = dtype is torch.bfloat16 and op.name in TIES | {"msort"}
        if op.name in RANDOM or low or case.sample.kwargs.get("dropout_p"):
            continue
        try:
            differentiate(case, want, got, tolerance_of(dtype), second)
        except (AssertionError, Absent, Skipped):
            raise
        except Exception as e:
            raise AssertionError(
                f"{case.what} gradient: {type(e).__name__}: {common.first_line(e)}"
            ) from e
        count += 1
    return f"ok ({count})"


def check_method(op: Any, dtype: torch.dtype, limit: int) -> str:
    method = op.get_method()
    name = getattr(method, "__name__", "<lambda>")
    f = common.rebind(method)
    if name != "<lambda>" and f is method:
        f = common.lookup(f"Tensor.{name}")
    count = 0
    for case in cases(op, dtype, limit, False):
        if not isinstance(case.sample.input, torch.Tensor):
            continue
        want, got = case.call(method, False), case.call(f, True)
        if op.name in GAUGE:
            want, got = case.process(want), case.process_ours(got)
        compare(
            leaves(want, True),
            leaves(got, True),
            case.what,
            tolerance_of(dtype),
            values=op.name not in RANDOM | EMPTY,
        )
        count += 1
    return f"ok ({count})"


def check_inplace(op: Any, dtype: torch.dtype, limit: int) -> str:
    method = op.get_inplace()
    f = common.rebind(method)
    if f is method:
        f = common.lookup(f"Tensor.{method.__name__}")
    grad = op.supports_autograd and op.supports_inplace_autograd and dtype.is_floating_point
    count = 0
    for case in cases(op, dtype, limit, grad):
        if case.sample.broadcasts_input or not isinstance(case.sample.input, torch.Tensor):
            continue
        x, y = case.sample.input.clone(), case.ours[0].clone()
        args, kwargs = case.sample.args, case.sample.kwargs
        try:
            want = method(x, *args, **kwargs)
        except Exception as e:
            error = e
            common.agree_on_error(
                lambda: throw(error), lambda: f(y, *case.ours[1], **case.ours[2]), case.what
            )
            continue
        try:
            got = f(y, *case.ours[1], **case.ours[2])
        except Exception as e:
            raise AssertionError(f"{case.what}: {type(e).__name__}: {common.first_line(e)}") from e
        if want is x:
            assert got is y, f"{case.what}: the result is not the tensor itself"
        values = op.name not in RANDOM | EMPTY
        compare([want], [got], case.what, tolerance_of(dtype), values)
        if grad and values:
            differentiate(case, want, got, tolerance_of(dtype), False)
        count += 1
    return f"ok ({count})"


def throw(e: BaseException) -> None:
    raise e


def filled_like(x: Any, ours: bool, shape: Any = None, dtype: Any = None) -> Any:
    make = clew.full if ours else torch.full
    kind = dtype or x.dtype
    if ours:
        kind = common.DTYPES[kind]
    return make(tuple(x.shape if shape is None else shape), 1, dtype=kind)


def check_out(op: Any, dtype: torch.dtype, limit: int) -> str:
    f, count = function(op), 0
    for case in cases(op, dtype, min(limit, 6), False):
        want = case.call(op.op, False)
        if not isinstance(want, (torch.Tensor, tuple, list)):
            continue
        parts = [want] if isinstance(want, torch.Tensor) else list(want)
        if not all(isinstance(p, torch.Tensor) for p in parts):
            continue

        def make(ours: bool, **changes: Any) -> Any:
            made = [filled_like(p, ours, **changes) for p in parts]
            if isinstance(want, torch.Tensor):
                return made[0]
            return type(want)(made) if type(want) is list else tuple(made)

        try:
            op.op(case.theirs[0], *case.theirs[1], **case.theirs[2], out=make(False))
        except Exception:
            continue
        for shape in (None, (0,)):
            target = make(True, shape=shape)
            try:
                got = f(case.ours[0], *case.ours[1], **case.ours[2], out=target)
            except Exception as e:
                raise AssertionError(
                    f"{case.what} out= of shape {shape or 'right'}: "
                    f"{type(e).__name__}: {common.first_line(e)}"
                ) from e
            held = leaves(target)
            assert all(a is b for a, b in zip(leaves(got), held)), (
                f"{case.what}: not the out tensor"
            )
            if op.name in GAUGE:
                want_, held = case.process(want), case.process_ours(got)
                compare(leaves(want_), leaves(held), f"{case.what} out=", tolerance_of(dtype))
            else:
                values = op.name not in RANDOM | EMPTY
                compare(parts, held, f"{case.what} out=", tolerance_of(dtype), values)
        if count == 0:
            for kind in (torch.int64, torch.float64, torch.complex64):
                theirs, ours = make(False, dtype=kind), make(True, dtype=kind)
                # Which conversions are refused, and how, differs among PyTorch's kernels.
                try:
                    op.op(case.theirs[0], *case.theirs[1], **case.theirs[2], out=theirs)
                    raised = False
                except Exception:
                    raised = True
                try:
                    f(case.ours[0], *case.ours[1], **case.ours[2], out=ours)
                except (RuntimeError, TypeError):
                    if all(torch.can_cast(p.dtype, kind) for p in parts) and not raised:
                        raise
                    continue
                if raised and not all(torch.can_cast(p.dtype, kind) for p in parts):
                    raise AssertionError(f"{case.what} out= of {kind}: no error")
                if not raised:
                    if op.name not in RANDOM | EMPTY | GAUGE:
                        what = f"{case.what} out= of {kind}"
                        compare(leaves(theirs), leaves(ours), what, tolerance_of(dtype))
        count += 1
    return f"ok ({count})"


def check_errors(op: Any) -> str:
    f, count, wrong = function(op), 0, []
    for k, error in enumerate(op.error_inputs("cpu")):
        s = error.sample_input
        theirs = [s.input, s.args, s.kwargs]
        try:
            ours = to_clew(theirs)
        except (Skipped, Absent):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                common.agree_on_error(
                    lambda: op.op(s.input, *s.args, **s.kwargs),
                    lambda: f(ours[0], *ours[1], **ours[2]),
                    f"error input {k} {describe(tuple(theirs))}",
                )
            count += 1
        except AssertionError as e:
            wrong.append(str(e))
    assert not wrong, f"{len(wrong)} of {count + len(wrong)}: {' | '.join(wrong)}"
    return f"ok ({count})"


def check_aliases(op: Any, dtype: torch.dtype) -> str:
    found = []
    for alias in op.aliases:
        f = common.lookup(alias.name.removeprefix("torch."))
        for case in cases(op, dtype, 3, False):
            want, got = case.call(alias.op, False), case.call(f, True)
            if op.name not in GAUGE | RANDOM | EMPTY:
                compare(leaves(want), leaves(got), f"{alias.name} {case.what}", tolerance_of(dtype))
        for variant in (alias.method_variant, alias.inplace_variant):
            name = getattr(variant, "__name__", None)
            if callable(variant) and name and not name.startswith("<"):
                common.lookup(f"Tensor.{name}")
        found.append(alias.name)
    return f"ok ({', '.join(found)})"


def examine(op: Any, options: argparse.Namespace) -> dict[str, str]:
    """The verdicts of one operator."""
    dtype, limit = getattr(torch, options.dtype), options.limit
    supported = op.supported_dtypes("cpu")
    graded = (
        op.supports_autograd
        and (dtype.is_floating_point or dtype.is_complex)
        and dtype in op.supported_backward_dtypes("cpu")
    )
    tasks: dict[str, Callable[[], str]] = {}
    if dtype in supported:
        tasks["forward"] = lambda: check_forward(op, dtype, limit, graded)
        if graded:
            tasks["gradient"] = lambda: check_gradient(op, dtype, limit)
        double = torch.float64
        if op.supports_gradgrad and double in op.supported_backward_dtypes("cpu") and graded:
            tasks["second"] = lambda: check_gradient(op, double, min(limit, 12), True)
        if op.get_method():
            tasks["method"] = lambda: check_method(op, dtype, min(limit, 8))
        if op.get_inplace():
            tasks["inplace"] = lambda: check_inplace(op, dtype, min(limit, 12))
        if op.supports_out:
            tasks["out"] = lambda: check_out(op, dtype, limit)
        if op.error_inputs_func is not None:
            tasks["errors"] = lambda: check_errors(op)
        if op.aliases:
            tasks["aliases"] = lambda: check_aliases(op, dtype)
    if options.dtypes:
        for name in OTHER_DTYPES:
            other = getattr(torch, name)
            if other not in supported or other is dtype:
                continue

            def both(other: torch.dtype = other) -> str:
                said = check_forward(op, other, min(limit, 12), False)
                if op.supports_autograd and other in op.supported_backward_dtypes("cpu"):
                    check_gradient(op, other, min(limit, 12))
                return said

            tasks[name] = both
    chosen = options.aspects.split(",") if options.aspects else None
    verdicts = {
        name: common.verdict(task)
        for name, task in tasks.items()
        if chosen is None or name in chosen or name in OTHER_DTYPES
    }
    if op.name in KNOWN:
        for name, text in verdicts.items():
            if text.startswith("FAILED") and "values differ" in text:
                verdicts[name] = f"- (PyTorch {KNOWN[op.name]})"
    return verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--only", help="operators whose name contains this")
    parser.add_argument("--aspects", help="comma-separated; all of them by default")
    parser.add_argument("--dtypes", action="store_true", help="other dtypes, too")
    parser.add_argument("--limit", type=int, default=40, help="samples an operator")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--seconds", type=int, default=60, help="processor time an operator may take"
    )
    parser.add_argument("--quiet", action="store_true", help="only what fails")
    parser.add_argument("--json", help="write all verdicts to this file")
    options = parser.parse_args()
    if wrong := set((options.aspects or "forward").split(",")) - set(ASPECTS) - set(OTHER_DTYPES):
        parser.error(f"no such aspect: {', '.join(sorted(wrong))}")
    chosen = [
        op
        for op in sorted(op_db, key=lambda op: (op.name, op.variant_test_name))
        if (not options.only or options.only in op.name) and not op.name.startswith("jiterator")
    ]

    def label(op: Any) -> str:
        return op.name + (f" ({op.variant_test_name})" if op.variant_test_name else "")

    jobs = [(label(op), lambda op=op: examine(op, options)) for op in chosen]
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    results: dict[str, dict[str, str]] = {}
    for op, (name, verdicts) in zip(chosen, common.isolated(jobs, options.jobs, options.seconds)):
        results[name] = verdicts
        group = "private names" if internal(op.name) else ""
        for aspect, text in verdicts.items():
            counts[(aspect + " " + group).strip()][common.outcome(text)] += 1
        common.show(name, verdicts, options.quiet)
    common.summary(counts)
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"operators": results}, f, indent=1, sort_keys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
