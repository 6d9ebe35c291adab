"""Random programs of what passes over rows are made of, at once and waiting: the same bits.

Unlike those of random_programs, their values have one shape, its rows, its columns or one element,
in many dtypes, and the values are dropped as they are used, so that results take their bytes over.
``python -m program.random_passes COUNT [FIRST]`` runs many.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import clew
from clew import _C
from program.random_programs import compare_runs, main

UNARY = "exp sin tanh sigmoid relu abs neg sqrt log1p square reciprocal sign floor erf".split()
BINARY = "add sub mul maximum minimum".split()
COMPARE = "lt le gt ge eq ne".split()
WRITES = "add_ mul_ sub_ exp_ tanh_ zero_ copy_ clamp_ neg_".split()
COLUMNS = [64, 65, 96, 128, 250, 256, 500, 512, 1000, 1024, 2048, 4096, 20_000]
MOST, LEAST = 200_000, 3000  # elements
FLOATS = [clew.float32] * 6 + [clew.float64] * 2 + [clew.bfloat16]
OTHERS = [clew.int64, clew.int32, clew.uint8, clew.bool, clew.complex64]


class Machine:
    """Values of one shape, of its rows, of its columns, and numbers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seen: list[Any] = []
        columns = self.random.choice(COLUMNS)
        least, most = -(-LEAST // columns), MOST // columns
        rows = self.random.choice([1, 2, 3, 4, 16, 64, 100, 128, 256, 257, 1000])
        rows = max(least, min(rows, most))
        if self.random.random() < 0.3:
            rows = self.random.randint(least, most)
        lead = (2, rows // 2) if rows % 2 == 0 and self.random.random() < 0.2 else (rows,)
        self.shape, self.rows, self.columns = (*lead, columns), (*lead, 1), columns
        self.dtype = self.random.choice(FLOATS)
        clew.manual_seed(seed)
        shapes = [self.shape, self.shape, self.rows, (columns,), (), (1,) * len(self.shape)]
        self.leaves = [
            clew.randn(s, dtype=clew.float64)
            .to(self.any_float())
            .requires_grad_(self.random.random() < 0.5)
            for s in shapes
        ]
        self.index = clew.randint(0, columns, self.rows)
        self.full: list[clew.Tensor] = list(self.leaves[:2])
        self.row: list[clew.Tensor] = [self.leaves[2]]
        self.few: list[clew.Tensor] = list(self.leaves[3:])
        self.kept: list[clew.Tensor] = []
        if self.random.random() < 0.4:
            self.full.append(clew.randn(*self.shape).mul(3).to(self.random.choice(OTHERS)))

    def any_float(self) -> Any:
        return self.dtype if self.random.random() < 0.85 else self.random.choice(FLOATS)

    def one(self, values: list[clew.Tensor]) -> clew.Tensor:
        """One of the values, the last ones more often; it may be its last use."""
        k = min(int(self.random.expovariate(0.6)), len(values) - 1)
        x = values[-1 - k]
        if len(values) > 3 and self.random.random() < 0.35:
            del values[-1 - k]
        return x

    def real(self, x: clew.Tensor) -> clew.Tensor:
        return x if x.is_floating_point() else x.abs() if x.is_complex() else x.to(self.dtype)

    def place(self, x: clew.Tensor) -> None:
        """Keeps a result where its shape belongs."""
        values = {self.shape: self.full, self.rows: self.row}.get(tuple(x.shape), self.few)
        values.append(x)
        if len(values) > 7:
            del values[self.random.randrange(len(values) - 1)]

    def other(self) -> clew.Tensor | float:
        """What broadcasts to any value."""
        k = self.random.random()
        if k < 0.35:
            return self.one(self.full)
        if k < 0.6:
            return self.one(self.row)
        if k < 0.8:
            fitting = [x for x in self.few if x.dim() == 0 or x.shape[-1] in (1, self.columns)]
            return self.random.choice(fitting)
        return self.random.choice([2, 0.5, -1.25, 3])

    def unary(self) -> None:
        x = self.one(self.full if self.random.random() < 0.7 else self.row)
        self.place(getattr(self.real(x), self.random.choice(UNARY))())

    def binary(self) -> None:
        x = self.one(self.full if self.random.random() < 0.75 else self.row)
        y = self.other()
        name = self.random.choice(BINARY)
        if not isinstance(y, clew.Tensor):
            self.place(x * y if self.random.random() < 0.5 else y - self.real(x))
        elif name in ("maximum", "minimum", "sub"):
            self.place(getattr(clew, name)(self.real(x), self.real(y)))
        else:
            self.place(getattr(clew, name)(x, y))

    def divide(self) -> None:
        x, y = self.real(self.one(self.full)), self.other()
        self.place(x / (self.real(y).abs() + 0.5) if isinstance(y, clew.Tensor) else x / y)

    def mask(self) -> None:
        x = self.real(self.one(self.full))
        y = self.other()
        y = self.real(y) if isinstance(y, clew.Tensor) else y
        where = getattr(x, self.random.choice(COMPARE))(y)
        z = self.one(self.full)
        form = self.random.randrange(6)
        if form == 0:
            self.place(clew.where(where, x, z))
        elif form == 1:
            self.place(z * where)
        elif form == 2:
            self.place(self.real(z).masked_fill(where, self.random.choice([0.0, -1e9, 2.5])))
        elif form == 3:
            self.place(where)
        elif form == 4:
            self.place(~where & (self.real(z) > 0))
        else:
            self.place(clew.where(where, self.one(self.few[:1] + self.row[-1:]), x))

    def ternary(self) -> None:
        x = self.real(self.one(self.full))
        y, z = self.real(self.one(self.full)), self.real(self.one(self.full))
        form = self.random.randrange(5)
        number = self.random.choice([v for v in self.few if v.dim() == 0] or self.leaves[4:5])
        if form == 0:
            self.place(clew.addcmul(x, y, z, value=0.5))
        elif form == 1:
            self.place(clew.addcmul(x, y.to(x.dtype), self.real(number).to(x.dtype)))
        elif form == 2:
            self.place(clew.lerp(x, y.to(x.dtype), 0.25))
        elif form == 3:
            self.place(clew.lerp(x, y.to(x.dtype), self.real(number).to(x.dtype)))
        else:
            self.place(x.clamp(-1, 1) * y)

    def reduce(self) -> None:
        x = self.real(self.one(self.full))
        name = self.random.choice("sum sum mean amax amin logsumexp var".split())
        self.place(getattr(x, name)(-1, keepdim=True))

    def down(self) -> None:
        x = self.real(self.one(self.full))
        dims = tuple(range(x.dim() - 1))
        self.place(getattr(x, self.random.choice(["sum", "mean"]))(dims))

    def total(self) -> None:
        x = self.real(self.one(self.full if self.random.random() < 0.7 else self.row))
        self.place(getattr(x, self.random.choice(["sum", "mean"]))())

    def normal(self) -> None:
        x = self.real(self.one(self.full))
        form = self.random.randrange(4)
        if form == 0:
            self.place(x.softmax(-1))
        elif form == 1:
            self.place(x.log_softmax(-1))
        elif form == 2:
            c = x - x.mean(-1, keepdim=True)
            self.place(c / clew.sqrt((c * c).mean(-1, keepdim=True) + 1e-5))
        else:
            self.place(clew.nn.functional.layer_norm(x, (self.columns,)))

    def pick(self) -> None:
        x = self.one(self.full)
        index = self.index
        if self.random.random() < 0.2:
            index = index.to(clew.int32).to(clew.int64)
        if self.random.random() < 0.6:
            self.place(x.gather(-1, index))
        else:
            number = clew.zeros((), dtype=self.dtype) + self.random.choice([0.0, 1.5])
            r = self.real(self.one(self.row)).to(self.dtype)
            self.place(number.expand(self.shape).scatter_add(-1, index, r))

    def loss(self) -> None:
        x = self.real(self.one(self.full))
        shifted = x - x.detach().amax(-1, keepdim=True)
        logs = shifted - clew.log(clew.exp(shifted).sum(-1, keepdim=True))
        loss = (-logs.gather(-1, self.index)).mean()
        self.place(loss)
        if loss.requires_grad and self.random.random() < 0.7:
            loss.backward(retain_graph=True)

    def whole(self) -> None:
        """At once, so its result has bytes."""
        x = self.real(self.one(self.full))
        self.place(x.cumsum(-1) if self.random.random() < 0.5 else x.flip(-1))

    def write(self) -> None:
        x = self.one(self.full if self.random.random() < 0.7 else self.row)
        x = x.detach()
        if self.random.random() < 0.6:
            x = x.clone()
        x = self.real(x) if self.random.random() < 0.7 else x
        name = self.random.choice(WRITES)
        if name in ("add_", "sub_", "mul_"):
            y = self.one(self.full if x.shape == self.shape else self.row)
            getattr(x, name)(y if self.random.random() < 0.6 else 2)
        elif name == "copy_":
            x.copy_(self.one(self.full if x.shape == self.shape else self.row))
        elif name == "clamp_":
            x.clamp_(-1, 1)
        elif name in ("exp_", "tanh_") and not x.is_floating_point():
            x.neg_() if x.dtype != clew.bool else x.zero_()
        elif name == "neg_" and x.dtype == clew.bool:
            x.zero_()
        else:
            getattr(x, name)()
        self.place(x)

    def view(self) -> None:
        x = self.one(self.full)
        form = self.random.randrange(5)
        if form == 0:
            self.kept.append(x.reshape(-1)[1:])
        elif form == 1:
            self.kept.append(x.transpose(0, -1))
        elif form == 2:
            self.place((x.transpose(0, -1) * 2).transpose(0, -1))
        elif form == 3:
            self.place(x.reshape(-1).view(self.shape))
        else:
            self.kept.append(x.detach().view(-1)[::3] if x.is_contiguous() else x.mT)
        if len(self.kept) > 3:
            del self.kept[0]

    def use_view(self) -> None:
        if self.kept:
            x = self.kept.pop()
            self.kept.append(self.real(x) * 2 + 1)

    def cast(self) -> None:
        x = self.one(self.full if self.random.random() < 0.7 else self.row)
        to = self.random.choice(FLOATS + OTHERS[:4])
        self.place((self.real(x).clamp(-100, 100) if to in OTHERS else self.real(x)).to(to))

    def drop(self) -> None:
        for values in (self.full, self.row, self.kept):
            if len(values) > 2:
                del values[self.random.randrange(len(values))]

    def backward(self) -> None:
        x = self.one(self.full)
        if x.requires_grad and x.is_floating_point():
            (x * 0.5).sum().backward(retain_graph=True)

    def observe(self) -> None:
        x = self.one(self.full).detach()
        form = self.random.randrange(4)
        if form == 0:
            self.seen.append(bits(x.reshape(-1)[:3]))
        elif form == 1:
            self.seen.append(bits(self.one(self.row)))
        elif form == 2 and x.dtype == clew.float32:
            self.kept.append(clew.from_numpy(x.numpy()))  # shares its bytes
        else:
            _C._run_deferred()

    def step(self) -> None:
        kinds: list[Callable[[], None]] = [self.unary] * 6 + [self.binary] * 8 + [self.mask] * 4
        kinds += [self.divide] * 2 + [self.ternary] * 3 + [self.reduce] * 5 + [self.down] * 2
        kinds += [self.total] * 2 + [self.normal] * 2 + [self.pick] * 3 + [self.loss] * 2
        kinds += [self.whole] * 3 + [self.write] * 4 + [self.view] * 2 + [self.use_view]
        kinds += [self.cast] * 2 + [self.drop] * 3 + [self.backward] + [self.observe]
        kind = self.random.choice(kinds)
        try:
            kind()
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
            self.seen.append((kind.__name__, type(error).__name__, str(error)[:80]))

    def finish(self) -> list[Any]:
        self.seen += [bits(x) for x in self.full + self.row + self.few + self.kept]
        self.seen += [None if x.grad is None else bits(x.grad) for x in self.leaves]
        return self.seen


def bits(x: clew.Tensor) -> Any:
    """A tensor's elements as numbers that NumPy has."""
    x = x.detach()
    return (x.double() if x.dtype == clew.bfloat16 else x).numpy().copy()


def same(a: Any, b: Any) -> bool:
    """Equal, with the same bits (NaN has many)."""
    if hasattr(a, "shape"):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        parts = [(a.real, b.real), (a.imag, b.imag)]
        return all(same_bits(x, y) for x, y in parts)
    return bool(a == b)


def same_bits(a: Any, b: Any) -> bool:
    equal = (a == b) & (np.signbit(a) == np.signbit(b)) if a.dtype.kind == "f" else a == b
    return bool((equal | ((a != a) & (b != b))).all())


def compare(seed: int, threads: int = 2) -> None:
    """Raises where waiting makes a difference."""
    compare_runs(Machine, (4, 40), [0, 0, 0, 1000], same, seed, threads)


if __name__ == "__main__":
    sys.exit(main(compare) > 0)
