"""Sample inputs for every op: one file a family, one entry an op.

A family file holds ``OPS = [Op(...), ...]``. The generic suite in tests/ops runs each entry
through: forward against the reference in every dtype, derivatives of first and second order,
strided inputs, in-place and out= forms, the meta device, bad inputs. An op of the table without an
entry fails the suite.

    OPS = [
        Op("hypot", np.hypot, lambda r: [S(r.normal((3, 4)), r.normal((3, 4))), S(r.normal((2,
        1)), r.normal((3,)))],
           dtypes=FLOATS, errors=[E(S("x"), TypeError, "must be Tensor")]),
    ]

Arrays among a sample's arguments become tensors (of the dtype under test, when they are floating;
integer and bool arrays keep theirs); everything else is passed on as it is. The reference gets the
same arguments as NumPy arrays (float64 or complex128 for floating ones) and returns an array, a
number or a tuple of them.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np

FLOATS = ("float32", "float64", "float16", "bfloat16")
FLOATS_32_64 = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
INTS = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
NUMBERS = FLOATS + COMPLEX + INTS


class S:
    """One call: positional and keyword arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        def show(v: Any) -> str:
            return f"{v.dtype}{list(v.shape)}" if isinstance(v, np.ndarray) else repr(v)

        parts = [show(a) for a in self.args] + [f"{k}={show(v)}" for k, v in self.kwargs.items()]
        return f"({', '.join(parts)})"


@dataclasses.dataclass
class E:
    """A call that must raise ``error`` with a message matching ``match``."""

    sample: S
    error: type[BaseException]
    match: str


@dataclasses.dataclass
class Op:
    """How to test one op.

    name: the dotted public name ("nn.functional.gelu"), or a private one ("_softmax_backward").
    reference: a function of NumPy arrays; None when only derivatives and consistency are
        checked (give the reason in `why`).
    samples: called with an Rng; a list of S.
    dtypes: element types that floating arrays of the samples are tried in.
    integers: samples are tried with integer arrays too: the dtypes.
    grad: whether derivatives are checked; False needs no reason for results that are not floating.
    second: whether second derivatives are checked.
    rtol: factor on the usual tolerance of each dtype.
    inplace: whether the in-place form is tried (when there is one).
    errors: calls that must raise.
    """

    name: str
    reference: Callable[..., Any] | None
    samples: Callable[[Rng], list[S]]
    dtypes: tuple[str, ...] = FLOATS_32_64
    integers: tuple[str, ...] = ()
    grad: bool = True
    second: bool = True
    rtol: float = 1.0
    inplace: bool = True
    out: bool = True
    errors: list[E] = dataclasses.field(default_factory=list)
    why: str = ""


class Rng:
    """Random arrays for samples, reproducible by op name."""

    def __init__(self, seed: str) -> None:
        self.generator = np.random.default_rng(list(seed.encode()))

    def normal(self, shape: Any = (), scale: float = 1.0) -> np.ndarray:
        return np.asarray(self.generator.normal(size=shape) * scale)

    def uniform(self, shape: Any = (), low: float = 0.0, high: float = 1.0) -> np.ndarray:
        return np.asarray(self.generator.uniform(low, high, size=shape))

    def integers(self, low: int, high: int, shape: Any = ()) -> np.ndarray:
        return np.asarray(self.generator.integers(low, high, size=shape))

    def bools(self, shape: Any = ()) -> np.ndarray:
        return np.asarray(self.generator.random(shape) < 0.5)

    def complex(self, shape: Any = ()) -> np.ndarray:
        return np.asarray(self.normal(shape) + 1j * self.normal(shape))

    def distinct(self, shape: Any = ()) -> np.ndarray:
        """Values at least 0.1 apart, in random order: no ties, no kinks within a finite
        difference.
        """
        n = int(np.prod(shape))
        return np.asarray((self.generator.permutation(n) - n / 2) * 0.1 + 0.03).reshape(shape)


def also(op: Op, *names: str) -> list[Op]:
    """The op and its other names."""
    return [op] + [dataclasses.replace(op, name=name) for name in names]


def of_each_kind(r: Rng, *calls: Any, shape: Any) -> list[S]:
    """One real sample for each call, and a complex one for the first."""
    out = [S(r.normal(shape), *c.args, **c.kwargs) for c in calls]
    return [*out, S(r.complex(shape), *calls[0].args, **calls[0].kwargs)]


def ids(*values: Any, dtype: Any = np.int64) -> np.ndarray:
    return np.array(values, dtype=dtype)


def each(v: Any, nd: int) -> list[Any]:
    """A number, or one for each dim, as a list of nd numbers."""
    return [v] * nd if isinstance(v, int) else list(v) * (nd if len(v) == 1 else 1)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def load() -> dict[str, Op]:
    """All entries, by name."""
    table: dict[str, Op] = {}
    for module in pkgutil.iter_modules(__path__):
        for op in importlib.import_module(f"samples.{module.name}").OPS:
            if op.name in table:
                raise ValueError(f"two entries for {op.name}")
            table[op.name] = op
    return table
