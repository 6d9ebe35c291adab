"""Random arguments, sensible and hostile, for any parameter of a public function.

One Source makes one reproducible sequence: the same seed gives the same calls.
"""

from __future__ import annotations

import random
from typing import Any

import clew

from . import hostile

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
LAYOUTS = ["plain"] * 5 + ["transposed", "sliced", "expanded", "offset", "overlapping"]
ANY = ["Tensor", "Tensor", "int", "int[]", "float", "bool", "str"]
QUARTERS = [n / 4 for n in range(-9, 10)]
HUGE = [2**45, 2**62, 2**63 - 1, -(2**63), -(2**45)]
WORDS = "constant reflect replicate circular same valid mean sum prod amax amin none left x".split()


class Source:
    """Random arguments; one object makes one reproducible sequence."""

    def __init__(self, seed: int, hostility: float = 0.02) -> None:
        self.random = random.Random(seed)
        self.hostility = hostility
        self.like = None
        self.sizes = [2, 3]

    def fresh(self) -> None:
        """Choose the sizes of the next call's tensors: a few, so that they often fit together."""
        pool = self.random.choice([[2, 3], [1, 2], [4], [3], [0, 2], [1, 3, 5], [2, 17], [8, 70]])
        self.sizes = pool
        # Half of the tensors of a call are like the one before, so that most calls get far.
        self.like: tuple[list[int], Any] | None = None

    def shape(self) -> list[int]:
        rank = self.random.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5])
        if max(self.sizes) > 5:
            rank = min(rank, 2)
        return [self.random.choice(self.sizes) for _ in range(rank)]

    def tensor(self) -> Any:
        r = self.random
        shape, dtype = self.shape(), r.choice(DTYPES)
        if self.like and r.random() < 0.5:
            shape = list(self.like[0])
        if self.like and r.random() < 0.6:
            dtype = self.like[1]
        self.like = shape, dtype
        if r.random() < 0.02:
            return clew.empty(shape, dtype=dtype, device="meta")
        layout = r.choice(LAYOUTS)
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
            values = r.choices(range(4), k=count)
        elif choice < 0.9 or not dtype.is_floating_point:
            values = r.choices(QUARTERS, k=count)
        else:
            special = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e38, 1e-40, 1.0]
            values = r.choices(special, k=count)
        if dtype in (clew.bool, clew.uint8):
            values = [abs(v) for v in values]
        if not (dtype.is_floating_point or dtype.is_complex):
            values = [int(v) for v in values]
        if layout == "offset":
            values += [0, 0]
        flat = clew.tensor(values, dtype=dtype)
        if layout == "overlapping" and len(shape) > 0 and count > 0:
            strides = [r.choice([0, 1, 1, 2]) for _ in shape]
            reach = 1 + sum((n - 1) * step for n, step in zip(shape, strides))
            return clew.tensor((values * reach)[:reach], dtype=dtype).as_strided(shape, strides)
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
        if r.random() < self.hostility:
            return hostile.value(r, self.tensor)
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
        if kind == "extent":
            return r.choice([*self.sizes, 1, 2, 4])
        if kind == "device":
            return r.choice([None, "cpu", "cpu", "meta", clew.device("cpu")])
        if kind == "memory_format":
            return r.choice([clew.contiguous_format, clew.preserve_format, clew.channels_last])
        if kind == "generator":
            return r.choice([None, clew.Generator()])
        if kind == "any":
            return self.value(r.choice(ANY))
        return None
