"""What the comparisons with PyTorch share: conversion of values, rebinding of functions, verdicts.

Needs torch==2.13.0 beside clew, and expecttest for PyTorch's own tables.
"""

from __future__ import annotations

import collections
import functools
import json
import os
import signal
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch

import clew

DTYPES = {
    getattr(torch, n): getattr(clew, n)
    for n in (
        "bool",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    )
    if isinstance(getattr(clew, n, None), clew.dtype)
}


class Absent(Exception):
    """clew has no such name."""


class Skipped(Exception):
    """The sample says nothing about clew: sparse layouts, other devices, other dtypes."""


def lookup(path: str) -> Any:
    """clew's object of a dotted name below torch."""
    found: Any = clew
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except (AttributeError, ImportError):
            raise Absent(path) from None
    return found


@functools.cache
def _public() -> dict[int, str]:
    """PyTorch's public callables by identity: where each lives below torch."""
    found: dict[int, str] = {}
    roots = (
        "Tensor",
        "",
        "nn.functional",
        "linalg",
        "special",
        "fft",
        "masked",
        "signal.windows",
        "nn.utils",
        "nn.utils.rnn",
        "nn.init",
        "nn",
        "optim",
        "optim.lr_scheduler",
    )
    for root in roots:
        holder: Any = torch
        for part in filter(None, root.split(".")):
            holder = getattr(holder, part)
        for name in dir(holder):
            value = getattr(holder, name, None)
            if callable(value) and not isinstance(value, types.ModuleType):
                path = f"{root}.{name}" if root else name
                if id(value) not in found or not name.startswith("_"):
                    found[id(value)] = path
    return found


def path_of(f: Any, name: str = "") -> str | None:
    """The dotted name of a PyTorch function, preferring `name` where that is the same object."""
    if name:
        found: Any = torch
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is f:
            return name
    return _public().get(id(f))


def _with_seed(op: Any, *args: Any, **kwargs: Any) -> Any:
    clew.manual_seed(42)
    return op(*args, **kwargs)


@functools.cache
def _rebound_function(f: types.FunctionType) -> Any:
    names = set(f.__code__.co_names)
    for const in f.__code__.co_consts:
        if isinstance(const, types.CodeType):
            names |= set(const.co_names)
    scope = {"__builtins__": f.__globals__.get("__builtins__", __builtins__)}
    for name in names & set(f.__globals__):
        scope[name] = _with_seed if name == "wrapper_set_seed" else rebind(f.__globals__[name])
    cells = tuple(types.CellType(rebind(c.cell_contents)) for c in f.__closure__ or ())
    made = types.FunctionType(f.__code__, scope, f.__name__, None, cells)
    made.__defaults__ = tuple(rebind(v) for v in f.__defaults__ or ()) or None
    made.__kwdefaults__ = {k: rebind(v) for k, v in (f.__kwdefaults__ or {}).items()} or None
    return made


def rebind(value: Any) -> Any:
    """The value with clew in PyTorch's place: functions, and the globals and cells of lambdas."""
    if value is torch:
        return clew
    if isinstance(value, types.ModuleType):
        if value.__name__.startswith("torch."):
            return lookup(value.__name__.removeprefix("torch."))
        return value
    if isinstance(value, functools.partial):
        return functools.partial(rebind(value.func), *value.args, **value.keywords)
    path = _public().get(id(value)) if callable(value) else None
    if path is not None:
        return lookup(path)
    if isinstance(value, types.FunctionType) and (value.__module__ or "").startswith(
        "torch.testing"
    ):
        return _rebound_function(value)
    return value


def _tensor(x: torch.Tensor) -> Any:
    if x.layout is not torch.strided or x.dtype not in DTYPES or x.device.type not in TARGETS:
        raise Skipped(f"{x.layout}, {x.dtype}, {x.device}")
    if x.device.type == "meta":
        return clew.empty(tuple(x.shape), dtype=DTYPES[x.dtype], device="meta")
    if x.ndim > 32:
        raise Skipped("more dimensions than NumPy has")
    data = x.detach().resolve_conj().resolve_neg()
    size, strides, offset = tuple(data.shape), data.stride(), data.storage_offset()
    if data.numel() and (not data.is_contiguous() or offset):
        # The whole storage: as_strided may look at what lies around the view.
        data = torch.empty(0, dtype=data.dtype).set_(data.untyped_storage())
    if x.dtype is torch.bfloat16:
        t = clew.from_numpy(data.float().numpy().copy()).to(clew.bfloat16)
    else:
        t = clew.from_numpy(np.array(data.numpy(), copy=True))
    if tuple(t.shape) != size or t.stride() != strides:
        t = t.as_strided(size, strides, offset) if x.numel() else t.reshape(size)
    return t.detach().requires_grad_() if x.requires_grad else t


TARGETS = ("cpu", "meta")


def to_clew(x: Any, memo: dict[int, Any] | None = None) -> Any:
    """A PyTorch value as clew's; raises Skipped for what clew does not hold.

    Args:
        x: tensors, dtypes, modules and so on, nested.
        memo: tensors that were converted already: what is one object stays one.
    """
    memo = {} if memo is None else memo
    if isinstance(x, torch.Tensor) and id(x) in memo:
        return memo[id(x)]
    if isinstance(x, torch.nn.Module):
        args, kwargs = x.__dict__.get("made_with", ((), {}))
        return lookup(f"nn.{type(x).__name__}")(*to_clew(args, memo), **to_clew(kwargs, memo))
    if isinstance(x, torch.nn.Parameter):
        made = clew.nn.Parameter(_tensor(x.detach()), requires_grad=x.requires_grad)
        return memo.setdefault(id(x), made)
    if isinstance(x, torch.Tensor):
        return memo.setdefault(id(x), _tensor(x))
    if isinstance(x, torch.dtype):
        if x not in DTYPES:
            raise Skipped(str(x))
        return DTYPES[x]
    if isinstance(x, torch.device):
        if x.type not in TARGETS:
            raise Skipped(str(x))
        return clew.device(x.type)
    if isinstance(x, str) and x.split(":")[0] in ("cuda", "xla", "mps", "xpu"):
        raise Skipped(x)
    if isinstance(x, torch.memory_format):
        return getattr(clew, str(x).split(".")[-1])
    if isinstance(x, torch.layout):
        if x is not torch.strided:
            raise Skipped(str(x))
        return clew.strided
    if isinstance(x, torch.Generator):
        made = clew.Generator()
        made.manual_seed(x.initial_seed())
        return made
    if isinstance(x, torch.Size):
        return clew.Size(x)
    if isinstance(x, (list, tuple)):
        parts = [to_clew(v, memo) for v in x]
        return parts if isinstance(x, list) else tuple(parts)
    if isinstance(x, slice):
        return slice(to_clew(x.start), to_clew(x.stop), to_clew(x.step))
    if isinstance(x, dict):
        return type(x)((k, to_clew(v, memo)) for k, v in x.items())
    return rebind(x)


def leaves(x: Any, scalars: bool = False) -> list[Any]:
    """The tensors in nested lists, tuples and dicts; numbers and truth values too if asked."""
    if isinstance(x, (torch.Tensor, clew.Tensor)):
        return [x]
    if isinstance(x, (list, tuple)):
        return [t for v in x for t in leaves(v, scalars)]
    if isinstance(x, dict):
        return [t for v in x.values() for t in leaves(v, scalars)]
    if scalars and isinstance(x, (bool, int, float, complex)):
        return [x]
    return []


def array(t: Any) -> np.ndarray:
    t = t.detach()
    if t.dtype in (torch.bfloat16, clew.bfloat16):
        t = t.float()
    if isinstance(t, torch.Tensor):
        t = (t.clone() if t._is_zerotensor() else t).resolve_conj().resolve_neg()
    return t.numpy()


def second_derivative(
    pairs: list[tuple[Any, Any]], gradients: list[tuple[Any, Any]], what: str, tolerance: float
) -> None:
    """Compares the gradients of a random product with gradients, for the given inputs.

    Args:
        pairs: what to differentiate for, PyTorch's and clew's.
        gradients: the gradients, recorded; PyTorch may record one that depends on nothing.
    """
    kept = [(a, b) for a, b in gradients if a is not None and a.requires_grad]
    if not kept:
        return
    torch.manual_seed(11)
    outer = [torch.randn_like(a) for a, _ in kept]
    ins, ins_ours = [a for a, _ in pairs], [b for _, b in pairs]
    try:
        want = torch.autograd.grad([a for a, _ in kept], ins, outer, allow_unused=True)
    except RuntimeError as e:
        if "is not implemented" in str(e):
            raise Skipped("PyTorch has none") from None
        raise
    mine = [(b, to_clew(o)) for (_, b), o in zip(kept, outer) if b is not None and b.requires_grad]
    got: Any = [None] * len(ins)
    if mine:
        roots, seeds = [b for b, _ in mine], [o for _, o in mine]
        got = list(clew.autograd.grad(roots, ins_ours, seeds, allow_unused=True))
    for k, (w, g) in enumerate(zip(want, got)):
        if w is not None and g is not None and bool(w.isnan().any()):
            # Where PyTorch's formula gives up, a number is as good.
            got[k] = clew.where(to_clew(w.isnan()), to_clew(w), g)
    compare(list(want), list(got), f"{what} second derivative", tolerance)


def _close(want: np.ndarray, got: np.ndarray, tolerance: float) -> str | None:
    finite = np.abs(want[np.isfinite(want)]) if want.dtype != bool else want
    scale = max(1.0, float(finite.max())) if finite.size else 1.0
    if np.allclose(got, want, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
        return None
    kind = complex if want.dtype.kind in "fcV" else int
    with np.errstate(all="ignore"):
        off = np.abs(np.asarray(got, complex) - np.asarray(want, complex))
    same = np.isnan(np.asarray(got, complex)) & np.isnan(np.asarray(want, complex))
    at = int(np.argmax(np.where(same, -1, np.nan_to_num(off, nan=np.inf))))
    a, b = np.ravel(got)[at], np.ravel(want)[at]
    return f"values differ: {kind(a) if kind is int else a} where PyTorch has {b} (element {at})"


def compare(
    want: list[Any], got: list[Any], what: str, tolerance: float, values: bool = True
) -> None:
    """Asserts equal numbers, shapes, dtypes and values of two lists of tensors and numbers."""
    assert len(want) == len(got), f"{what}: {len(got)} results, expected {len(want)}"
    for w, g in zip(want, got):
        if w is None or g is None:  # gradients: absent counts as zero
            assert g is None or not array(g).any(), f"{what}: unexpected gradient"
            assert w is None or not array(w).any(), f"{what}: missing gradient"
            continue
        if not isinstance(w, torch.Tensor):
            assert not isinstance(g, clew.Tensor), f"{what}: a Tensor, expected {w!r}"
            if not values:
                continue
            same = g == w or (isinstance(w, (float, complex)) and np.allclose(g, w, equal_nan=True))
            assert same and isinstance(g, type(w)), f"{what}: {g!r}, expected {w!r}"
            continue
        assert isinstance(g, clew.Tensor), f"{what}: {type(g).__name__}, expected a Tensor"
        assert tuple(w.shape) == tuple(g.shape), (
            f"{what}: shape {tuple(g.shape)}, expected {tuple(w.shape)}"
        )
        assert DTYPES.get(w.dtype) is g.dtype, f"{what}: dtype {g.dtype}, expected {w.dtype}"
        if values and w.device.type != "meta":
            wrong = _close(array(w), array(g), tolerance)
            assert wrong is None, f"{what}: {wrong}"


def tolerance_of(dtype: torch.dtype) -> float:
    return {
        torch.float64: 1e-7,
        torch.complex128: 1e-7,
        torch.float32: 2e-4,
        torch.complex64: 2e-4,
    }.get(dtype, 2e-2)


def describe(x: Any) -> str:
    if isinstance(x, torch.Tensor):
        return f"{str(x.dtype)[6:]}{list(x.shape)}"
    if isinstance(x, (list, tuple)):
        return "(" + ", ".join(describe(v) for v in x) + ")"
    if isinstance(x, dict):
        return "{" + ", ".join(f"{k}={describe(v)}" for k, v in x.items()) + "}"
    text = repr(x)
    return text if len(text) < 60 else text[:57] + "..."


_FAMILIES = (TypeError, IndexError, KeyError, NotImplementedError, AttributeError, AssertionError)


def family(e: BaseException) -> str:
    """The kind of an exception as programs distinguish it."""
    if type(e).__name__ == "LinAlgError":
        return "LinAlgError"
    for kind in _FAMILIES:
        if isinstance(e, kind):
            return kind.__name__
    for kind in (ValueError, RuntimeError):
        if isinstance(e, kind):
            return kind.__name__
    return type(e).__name__


def agree_on_error(theirs: Callable[[], Any], ours: Callable[[], Any], what: str) -> bool:
    """Asserts that clew raises as PyTorch does; False where PyTorch raises nothing."""
    try:
        theirs()
        return False
    except Exception as e:
        want = e
    try:
        ours()
    except (Absent, Skipped):
        raise
    except Exception as e:
        got = e
    else:
        raise AssertionError(
            f"{what}: no error; PyTorch: {type(want).__name__}: {first_line(want)}"
        )
    assert family(got) == family(want), (
        f"{what}: {type(got).__name__} ({first_line(got)}), expected {type(want).__name__} "
        f"({first_line(want)})"
    )
    assert str(got).strip(), f"{what}: {type(got).__name__} without a message"
    return True


def first_line(e: BaseException) -> str:
    return (str(e).strip().splitlines() or [""])[0][:160]


def verdict(f: Callable[[], str]) -> str:
    """What f answers, or why it could not: 'absent: name', 'FAILED kind: message', '-'."""
    try:
        return f()
    except Absent as e:
        return f"absent: {e}"
    except Skipped as e:
        return f"- ({e})"
    except AttributeError as e:
        if "clew does not have it" in str(e) or "has no attribute" in str(e):
            return f"absent: {first_line(e)}"
        return f"FAILED AttributeError: {first_line(e)}"
    except Exception as e:
        return f"FAILED {type(e).__name__ + ': ' if str(e) else repr(e)}{str(e)[:4000]}".strip()


def outcome(text: str) -> str:
    """'ok', 'absent', '-' or 'FAILED' of a verdict."""
    return text.split()[0].rstrip(":") if text else "-"


def isolated(
    jobs: Iterable[tuple[str, Callable[[], dict[str, str]]]], workers: int, seconds: int
) -> Iterable[tuple[str, dict[str, str]]]:
    """Runs each job in a forked process, so that a crash or a hang is one more verdict.

    Args:
        jobs: label and function; the function's dict of verdicts comes back.
        workers: how many run at once.
        seconds: of processor time that one may take.

    Yields: label and verdicts, in the order of the jobs.
    """
    running: list[tuple[str, int, Any]] = []
    rest = iter(jobs)

    def start() -> bool:
        for label, job in rest:
            read, write = os.pipe()
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                os.close(read)
                signal.alarm(4 * seconds)
                import resource

                resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
                torch.set_num_threads(1)
                with os.fdopen(write, "w") as pipe:
                    json.dump(job(), pipe)
                os._exit(0)
            os.close(write)
            running.append((label, pid, os.fdopen(read)))
            return True
        return False

    while len(running) < workers and start():
        pass
    while running:
        label, pid, pipe = running.pop(0)
        text = pipe.read()
        pipe.close()
        _, status = os.waitpid(pid, 0)
        start()
        if status == 0 and text:
            yield label, json.loads(text)
        else:
            code = os.waitstatus_to_exitcode(status)
            why = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            kind = "took too long" if -code in (signal.SIGALRM, signal.SIGXCPU) else "died"
            yield label, {"run": f"FAILED {kind} ({why})"}


def show(name: str, verdicts: dict[str, str], quiet: bool) -> None:
    """Prints one line for what passes and one for each aspect that does not."""
    passing = [a for a, v in verdicts.items() if v.startswith("ok")]
    failing = [(a, v) for a, v in verdicts.items() if not v.startswith(("ok", "-"))]
    if quiet and not failing:
        return
    print(f"{name:45} {' '.join(passing)}")
    for aspect, text in failing:
        print(f"    {aspect:9} {text}")
    sys.stdout.flush()


def summary(counts: dict[str, collections.Counter[str]]) -> None:
    """Prints how many pass, for each aspect."""
    for aspect, counter in sorted(counts.items(), key=lambda c: ("private" in c[0], c[0])):
        total = counter.total() - counter["-"]
        share = f"{100 * counter['ok'] / total:5.1f}%" if total else "     -"
        detail = ", ".join(f"{n} {k}" for k, n in counter.most_common())
        print(f"{aspect:25} {share} of {total}: {detail}")
