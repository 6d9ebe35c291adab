"""One process of calls: everything that a call may do wrong ends here, or ends this process."""

from __future__ import annotations

import faulthandler
import gc
import json
import random
import threading
import time
import warnings
from collections import Counter
from contextlib import nullcontext
from typing import Any

import clew
from clew import nn

from . import hostile
from .arguments import Source
from .processes import bound_addresses
from .targets import Target, everything

EXPECTED = (
    RuntimeError,
    TypeError,
    ValueError,
    IndexError,
    NotImplementedError,
    OverflowError,
    AttributeError,
    KeyError,
    AssertionError,
    ImportError,
    ZeroDivisionError,
    StopIteration,
    MemoryError,
    RecursionError,
    BufferError,
)
MEMORY = 8 << 30
KEYWORDS = ["out", "dtype", "generator", "device", "\ud800", "dim"]


def describe(value: Any, depth: int = 0) -> str:
    """Short text from which the argument can be made again, up to a tensor's values."""
    if type(value) is clew.Tensor or type(value) is nn.Parameter:
        try:
            grad = ", grad" if value.requires_grad else ""
            where = ", meta" if value.device.type == "meta" else ""
            dtype = str(value.dtype).removeprefix("clew.")
            return f"<{dtype}{list(value.shape)} strides {list(value.stride())}{grad}{where}>"
        except Exception as error:
            return f"<a tensor: {type(error).__name__}>"
    if type(value) in (list, tuple) and depth < 3:
        return "[" + ", ".join(describe(v, depth + 1) for v in value) + "]"
    if type(value) in (int, float, complex, bool, str, bytes, type(None), clew.dtype):
        return ascii(value)
    return f"<{type(value).__name__}>"


def tensors_in(value: Any, depth: int = 0) -> list[Any]:
    """The tensors of a result, at any depth."""
    if isinstance(value, clew.Tensor):
        return [value]
    if type(value) in (list, tuple) and depth < 3:
        return [t for v in value for t in tensors_in(v, depth + 1)]
    return []


def follow(source: Source, result: Any, inputs: list[Any]) -> None:
    """Use what came back: print it, and go backward through it once and twice."""
    r = source.random
    found = tensors_in(result)[:50]
    outputs = [
        t for t in found if t.requires_grad and t.numel() < 100_000 and t.device.type == "cpu"
    ]
    for t in found:
        if t.numel() < 1000 and r.random() < 0.1:
            repr(t)
    leaves = [t for t in inputs if t.requires_grad and t.is_leaf and t.device.type == "cpu"]
    if not outputs or not leaves:
        return
    if r.random() < 0.05:
        for t in r.sample(outputs, 1) + r.sample(leaves, 1):
            t.register_hook(hostile.hook(r))
    grads = clew.autograd.grad(
        outputs,
        leaves,
        [clew.ones_like(t) for t in outputs],
        create_graph=True,
        allow_unused=True,
    )
    again = [g for g in grads if g is not None and g.requires_grad]
    if again:
        clew.autograd.grad(again, leaves, [clew.ones_like(g) for g in again], allow_unused=True)


class Meddling(threading.Thread):
    """Changes tensors that another thread computes with."""

    def __init__(self, seed: int) -> None:
        super().__init__(daemon=True)
        self.random = random.Random(seed)
        self.tensors: list[Any] = []
        self.over = False

    def run(self) -> None:
        r = self.random
        with warnings.catch_warnings():
            while not self.over:
                time.sleep(0)
                for t in list(self.tensors):
                    try:
                        choice = r.randrange(6)
                        if choice == 0:
                            t.data = clew.zeros([n + 1 for n in t.shape], dtype=t.dtype)
                        elif choice == 1:
                            t.detach().fill_(r.choice([0, 1, 2**31 - 1]))
                        elif choice == 2:
                            t.detach().resize_(r.choice([0, 1, 1000]))
                        elif choice == 3:
                            t.grad = None
                        elif choice == 4:
                            t.set_(clew.ones(3, dtype=t.dtype))
                        else:
                            t.data = t.data.clone()
                    except Exception:
                        pass


def arguments(source: Source, target: Target) -> tuple[list[Any], dict[str, Any]]:
    """Values for the parameters, some of the optional ones left out."""
    r = source.random
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for p in target.parameters:
        keyword = p.keyword
        if p.optional and r.random() < (0.9 if target.module else 0.6):
            if p.name == "*":
                continue
            keyword = True
            if r.random() < (0.9 if target.module else 0.6):
                continue
        if p.name != "*" and (keyword or named):
            named[p.name] = source.value(p.kind)
        else:
            positional.append(source.value(p.kind))
    if r.random() < 0.02 and named:
        named[r.choice(KEYWORDS)] = source.value("any")
    if r.random() < 0.02:
        positional.append(source.value("any"))
    return positional, named


def call(source: Source, target: Target, positional: list[Any], named: dict[str, Any]) -> None:
    """One call and what follows from it."""
    r = source.random
    spoiled = r.random() < 0.02
    hooks = (
        clew.autograd.graph.saved_tensors_hooks(lambda t: t, hostile.unpack(r))
        if spoiled
        else nullcontext()
    )
    mode = r.random()
    context = (
        clew.no_grad()
        if mode < 0.03
        else clew.inference_mode()
        if mode < 0.06
        else clew.autocast("cpu", dtype=clew.bfloat16)
        if mode < 0.08
        else nullcontext()
    )
    inputs = tensors_in(positional) + tensors_in(list(named.values()))
    with hooks, context:
        result = target.function(*positional, **named)
        if target.module:
            given = [source.tensor() for _ in range(r.choice([1, 1, 1, 2, 3]))]
            inputs = [*given, *result.parameters()]
            result = result(*given)
    follow(source, result, inputs)


def run(seed: int, calls: int, first: int, options: dict[str, Any]) -> None:
    """Make calls first ... calls - 1; the log holds the one in progress."""
    bound_addresses(MEMORY)
    faulthandler.enable()
    warnings.simplefilter("ignore")
    clew.set_num_threads(2)
    targets = everything(options["private"])
    if options["only"]:
        wanted = set(options["only"].split(","))
        targets = [t for t in targets if t.name in wanted or t.name.rpartition(".")[2] in wanted]
    meddling = Meddling(seed) if options["threads"] else None
    if meddling:
        meddling.start()
    unexpected: Counter[str] = Counter()
    returned = 0
    # Messages that name a parameter look through all objects, the collector does so, too: what was
    # imported would be most of them.
    gc.collect()
    gc.freeze()
    dtype = clew.get_default_dtype()
    with open(options["log"], "w", encoding="utf-8") as log:
        for number in range(first, calls):
            # Each call can be made again alone: its arguments come from its own number.
            source = Source(hash((seed, number)), options["hostility"])
            target = source.random.choice(targets)
            source.fresh()
            clew.manual_seed(number)
            positional, named = [], {}
            text = target.name
            try:
                positional, named = arguments(source, target)
                shown = [describe(v) for v in positional]
                shown += [f"{key!a}={describe(v)}" for key, v in named.items()]
                text = f"{target.name}({', '.join(shown)})"
                log.seek(0)
                log.truncate()
                log.write(json.dumps([number, text]))
                log.flush()
                if meddling:
                    meddling.tensors = [t for t in tensors_in(positional) if t.numel() < 10**6]
                call(source, target, positional, named)
                returned += 1
            except EXPECTED as error:
                words = str(error)[:300].lower()
                if "internal" in words or "please report" in words:
                    unexpected[f"{text}: {type(error).__name__}: {str(error)[:200]}"] += 1
            except Exception as error:
                unexpected[f"{text}: {type(error).__name__}: {str(error)[:200]}"] += 1
            if clew.get_default_dtype() is not dtype:
                clew.set_default_dtype(dtype)
    if meddling:
        meddling.over = True
    print(json.dumps({"calls": calls - first, "returned": returned, "unexpected": unexpected}))
