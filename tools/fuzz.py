"""Call operations with random arguments, sensible and hostile, looking for crashes.

    python tools/fuzz.py --seconds 60 --seed 1 [--only add,conv2d] [--private]

Every call must return or raise an ordinary exception; so must the backward passes, first and
second, through what it returns. A crash or an endless loop leaves the call at the end of the file
named by --log (it is written before the call runs), and the same seed finds it again. Most useful
with the sanitizer build; an exception of a type that operations never raise is reported too.
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import re
import sys
import time
from collections import Counter
from typing import Any

import clew
from clew import _C

EXPECTED = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, OverflowError)
DTYPES = [
    *[clew.float32] * 6,
    *[clew.float64] * 4,
    *[clew.int64] * 3,
    clew.bool,
    clew.uint8,
    clew.int8,
    clew.int16,
    clew.int32,
    clew.float16,
    clew.bfloat16,
    clew.complex64,
    clew.complex128,
]
HUGE = [2**45, 2**62, 2**63 - 1, -(2**63), -(2**45)]
WORDS = "constant reflect replicate circular same valid mean sum prod amax amin none left x".split()
PARAMETER = re.compile(r"(\*|[\w\[\]?]+\*? \w+)(=[^,()\[\]]+|='[^']*'|=\[[^\]]*\])?")


class Source:
    """Random arguments; one object makes one reproducible sequence."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sizes = [2, 3]

    def fresh(self) -> None:
        """Choose the sizes of the next call's tensors: a few, so that they often fit together."""
        pool = self.random.choice([[2, 3], [1, 2], [4], [3], [0, 2], [1, 3, 5], [2, 17], [8, 70]])
        self.sizes = pool

    def shape(self) -> list[int]:
        rank = self.random.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5])
        if max(self.sizes) > 5:
            rank = min(rank, 2)
        return [self.random.choice(self.sizes) for _ in range(rank)]

    def tensor(self) -> Any:
        r = self.random
        dtype = r.choice(DTYPES)
        shape = self.shape()
        if r.random() < 0.02:
            return clew.empty(shape, dtype=dtype, device="meta")
        layout = r.choice(["plain"] * 4 + ["transposed", "sliced", "expanded", "offset"])
        made = [2 * n for n in shape] if layout == "sliced" else list(shape)
        if layout == "transposed":
            made.reverse()
        if layout == "expanded" and shape:
            made[r.randrange(len(shape))] = 1
        count = 1
        for n in made:
            count *= n
        choice = r.random()
        if choice < 0.45:
            values = [r.randint(0, 3) for _ in range(count)]
        elif choice < 0.9 or not dtype.is_floating_point:
            values = [r.randint(-9, 9) / 4 for _ in range(count)]
        else:
            special = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e38, 1e-40, 1.0]
            values = [r.choice(special) for _ in range(count)]
        if dtype in (clew.bool, clew.uint8):
            values = [abs(v) for v in values]
        if not (dtype.is_floating_point or dtype.is_complex):
            values = [int(v) for v in values]
        if layout == "offset":
            values += [0, 0]
        flat = clew.tensor(values, dtype=dtype)
        if layout == "offset":
            flat = flat[2:]
        t = flat.reshape(made)
        if layout == "transposed" and made:
            t = t.permute(list(range(len(made)))[::-1])
        elif layout == "sliced":
            for d, n in enumerate(shape):
                t = t[(slice(None),) * d + (slice(0, 2 * n, 2),)]
        elif layout == "expanded":
            t = t.expand(shape)
        if (dtype.is_floating_point or dtype.is_complex) and r.random() < 0.7:
            t = t.detach().requires_grad_()
        return t

    def integer(self) -> int:
        if self.random.random() < 0.03:
            return self.random.choice(HUGE)
        return self.random.choice([-2, -1, -1, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5])

    def integers(self, length: int | None) -> Any:
        if self.random.random() < 0.2:
            return self.integer()
        if length is None or self.random.random() < 0.2:
            if self.random.random() < 0.3:
                return self.shape()
            length = self.random.randint(0, 5)
        low = 0 if self.random.random() < 0.7 else -2
        if self.random.random() < 0.9:
            return [self.random.randint(low, 3) for _ in range(length)]
        return [self.integer() for _ in range(length)]

    def value(self, kind: str) -> Any:
        r = self.random
        if r.random() < 0.01:
            return r.choice([None, "x", [], {}, object, 1.5, float("nan"), True, [None], 2**70])
        if kind.endswith("?"):
            return None if r.random() < 0.4 else self.value(kind[:-1])
        kind = kind.rstrip("*")
        if kind == "Tensor":
            return r.choice([0, 1, -2, 0.5, True, 1j]) if r.random() < 0.05 else self.tensor()
        if kind == "Tensor[]":
            return [self.tensor() for _ in range(r.randint(0, 3))]
        if kind == "int":
            return self.integer()
        if kind.startswith("int["):
            inside = kind[4:-1]
            return self.integers(int(inside) if inside else None)
        if kind == "bool":
            return r.random() < 0.5
        if kind == "float":
            return r.choice([0.0, 0.5, 1.0, -1.0, 1e-5, 2.0, float("nan"), float("inf"), 1e300])
        if kind == "Scalar":
            return r.choice([0, 1, 2, -1, 0.5, -1.5, True, 1 + 2j, float("inf"), 2**62])
        if kind == "str":
            return r.choice(WORDS)
        if kind == "dtype":
            return r.choice(DTYPES)
        return None


def parameters(signature: str) -> list[tuple[str, str, bool, bool]]:
    """Kind, name, whether it has a default and whether it is keyword-only, of each parameter."""
    inside = signature[signature.index("(") + 1 : signature.index(") ->")]
    found = []
    keyword = False
    for text, default in PARAMETER.findall(inside):
        if text == "*":
            keyword = True
            continue
        kind, name = text.split(" ")
        found.append((kind, name, bool(default), keyword))
    return found


def describe(value: Any) -> str:
    """Short text from which the argument can be made again, up to a tensor's values."""
    if isinstance(value, clew.Tensor):
        grad = ", grad" if value.requires_grad else ""
        where = ", meta" if value.device.type == "meta" else ""
        dtype = str(value.dtype).removeprefix("clew.")
        return f"<{dtype}{list(value.shape)} strides {list(value.stride())}{grad}{where}>"
    if isinstance(value, list):
        return "[" + ", ".join(describe(v) for v in value) + "]"
    return repr(value)


def tensors_in(value: Any) -> list[Any]:
    """The tensors of a result, at any depth."""
    if isinstance(value, clew.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v)]
    return []


def follow(source: Source, result: Any, inputs: list[Any]) -> None:
    """Use what came back: print it, and go backward through it once and twice."""
    outputs = [
        t
        for t in tensors_in(result)
        if t.requires_grad and t.numel() < 100_000 and t.device.type == "cpu"
    ]
    for t in tensors_in(result):
        if t.numel() < 1000 and source.random.random() < 0.1:
            repr(t)
    leaves = [t for t in inputs if t.requires_grad and t.device.type == "cpu"]
    if not outputs or not leaves:
        return
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


def main() -> int:
    """Return 1 if an operation raised what it should not."""
    options = argparse.ArgumentParser(description="Call operations with random arguments.")
    options.add_argument("--seconds", type=float, default=30)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", default="", help="names, with commas between them")
    options.add_argument("--skip", default="", help="names, with commas between them")
    options.add_argument("--private", action="store_true", help="the operations named _... too")
    options.add_argument("--log", default="fuzz.log", help="the call that runs now")
    options.add_argument("--hang", type=float, default=30, help="seconds a call may take")
    chosen = options.parse_args()

    only = set(chosen.only.split(",")) - {""}
    skip = set(chosen.skip.split(",")) - {""}
    ops = []
    for name in dir(_C.ops):
        if name.startswith("__") or name in skip or (only and name not in only):
            continue
        if name.startswith("_") and not (chosen.private or only):
            continue
        function = getattr(_C.ops, name)
        ops += [(name, function, parameters(s)) for s in function.signatures]

    source = Source(chosen.seed)
    stop = time.monotonic() + chosen.seconds
    calls = returned = backward = 0
    unexpected: Counter[str] = Counter()
    succeeded: set[str] = set()
    with open(chosen.log, "w", encoding="utf-8") as log:
        while time.monotonic() < stop:
            name, function, declared = source.random.choice(ops)
            source.fresh()
            positional: list[Any] = []
            named: dict[str, Any] = {}
            for kind, parameter, has_default, keyword in declared:
                if has_default and source.random.random() < 0.5:
                    keyword = True
                    if source.random.random() < 0.5:
                        continue
                if keyword or named:
                    named[parameter] = source.value(kind)
                else:
                    positional.append(source.value(kind))
            text = ", ".join(
                [describe(v) for v in positional]
                + [f"{key}={describe(v)}" for key, v in named.items()]
            )
            log.seek(0)
            log.truncate()
            log.write(f"{calls}: {name}({text})\n")
            log.flush()
            faulthandler.dump_traceback_later(chosen.hang, exit=True)
            calls += 1
            try:
                result = function(*positional, **named)
                returned += 1
                succeeded.add(name)
                follow(source, result, tensors_in(positional) + tensors_in(list(named.values())))
                backward += 1
            except EXPECTED as error:
                if "internal" in str(error).lower() or "report" in str(error).lower():
                    unexpected[f"{name}({text}): {type(error).__name__}: {error}"] += 1
            except Exception as error:
                unexpected[f"{name}({text}): {type(error).__name__}: {error}"] += 1
            faulthandler.cancel_dump_traceback_later()
    never = sorted({name for name, _, _ in ops} - succeeded)
    print(
        f"{calls} calls of {len({o[0] for o in ops})} operations, {returned} returned, seed "
        f"{chosen.seed}"
    )
    print(f"never succeeded: {' '.join(never) if never else 'none'}")
    for text, count in unexpected.most_common(40):
        print(f"  {count}x {text[:600]}")
    return 1 if unexpected else 0


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
