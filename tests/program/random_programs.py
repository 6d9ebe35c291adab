"""Random programs, run at once and with calls that wait: the same bits, errors and draws.

A program is a list of steps that a seed decides, each of a few operations, views, writes in place,
observations, draws, branches on values, and backward. ``python tests/program/random_programs.py
COUNT [FIRST]`` runs many.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import clew
from clew import _C

UNARY = (
    "exp sin cos tanh sigmoid relu abs neg sqrt log1p square erf reciprocal sign floor "
    "softplus gelu silu expm1 rsqrt"
).split()
BINARY = "add sub mul div maximum minimum atan2 pow fmod hypot".split()
REDUCTIONS = "sum mean amax amin prod logsumexp var std norm".split()
WRITES = "add_ mul_ sub_ div_ clamp_ exp_ sin_ zero_ fill_ copy_ tanh_".split()
LARGEST = 150_000  # elements of a value


class Machine:
    """Values by number, and what was observed of them in order."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seen: list[Any] = []
        self.dtype = self.random.choice([clew.float32] * 4 + [clew.float64, clew.bfloat16])
        rows = self.random.choice([1, 2, 7, 32, 130])
        columns = self.random.choice([1, 3, 64, 65, 256, 1000])
        self.shape = (rows, columns)
        clew.manual_seed(seed)
        self.leaves = [
            (clew.rand(*shape) + 0.5).to(self.dtype).requires_grad_(self.random.random() < 0.6)
            for shape in (self.shape, self.shape, (columns,), (rows, 1), (1,))
        ]
        self.values: list[clew.Tensor] = list(self.leaves)

    def pick(self) -> clew.Tensor:
        """One of the values, the last ones more often."""
        k = min(int(self.random.expovariate(0.3)), len(self.values) - 1)
        return self.values[-1 - k]

    def fitting(self, *others: clew.Tensor) -> clew.Tensor:
        """One of the values with which the others broadcast to no great size."""
        for _ in range(8):
            x = self.pick()
            try:
                shape = clew.broadcast_shapes(x.shape, *(y.shape for y in others))
            except RuntimeError:
                continue
            if shape.numel() <= LARGEST:
                return x
        return self.leaves[4]

    def keep(self, value: clew.Tensor) -> None:
        """A further value; some earlier one may be forgotten."""
        self.values.append(value if value.numel() <= LARGEST else value.reshape(-1)[:1000])
        if self.random.random() < 0.3 and len(self.values) > 8:
            del self.values[self.random.randrange(len(self.leaves), len(self.values) - 1)]

    def unary(self) -> None:
        name = self.random.choice(UNARY)
        x = self.pick()
        f: Callable[..., Any] = getattr(x, name, None) or getattr(clew.nn.functional, name)
        self.keep(f() if hasattr(x, name) else f(x))

    def binary(self) -> None:
        x = self.pick()
        number = self.random.choice([2, -0.5, 3.25, True])
        y = number if self.random.random() < 0.3 else self.fitting(x)
        name = self.random.choice(BINARY)
        self.keep(getattr(clew, name)(x, y) if not isinstance(y, (int, float)) else x * y + y)

    def ternary(self) -> None:
        x = self.pick()
        y = self.fitting(x)
        z = self.fitting(x, y)
        form = self.random.randrange(4)
        if form == 0:
            self.keep(clew.where(x > y, y, z))
        elif form == 1:
            self.keep(clew.addcmul(x, y, z, value=0.5))
        elif form == 2:
            self.keep(clew.lerp(x, y.to(x.dtype), 0.25))
        else:
            self.keep(x.clamp(-2, 2) * y)

    def reduce(self) -> None:
        x = self.pick()
        name = self.random.choice(REDUCTIONS)
        keepdim = self.random.random() < 0.7
        dim = self.random.randrange(-x.dim(), x.dim()) if x.dim() else None
        if dim is None or (name not in ("prod", "norm") and self.random.random() < 0.2):
            whole = clew.logsumexp(x.reshape(-1), 0) if name == "logsumexp" else getattr(x, name)()
            self.keep(whole)
        else:
            self.keep(getattr(clew, name)(x, dim=dim, keepdim=keepdim))

    def row_wise(self) -> None:
        x = self.pick()
        if not x.dim():
            return
        form = self.random.randrange(4)
        if form == 0:
            self.keep(x.softmax(-1))
        elif form == 1:
            self.keep(x - x.mean(-1, keepdim=True))
        elif form == 2:
            self.keep(x / (x * x).sum(-1, keepdim=True).sqrt())
        else:
            self.keep(x.log_softmax(self.random.randrange(x.dim())))

    def product(self) -> None:
        x, y = self.pick(), self.pick()
        if x.dim() == 2 and y.dim() == 2 and x.shape[0] * y.shape[0] < 20_000:
            if x.shape[1] == y.shape[1]:
                self.keep(x @ y.t())
        elif x.dim() == 2 and y.dim() == 1 and x.shape[1] == y.shape[0]:
            self.keep(x @ y)

    def view(self) -> None:
        x = self.pick()
        form = self.random.randrange(6)
        if form == 0 and x.dim() == 2:
            self.keep(x.t())
        elif form == 1 and x.dim():
            self.keep(x[: max(1, x.shape[0] // 2)])
        elif form == 2 and x.dim():
            self.keep(x[..., ::2])
        elif form == 3 and x.is_contiguous():
            self.keep(x.view(-1))
        elif form == 4:
            if x.shape in ((self.shape[1],), (self.shape[0], 1), (1,)):
                self.keep(x.expand(self.shape))
            else:
                self.keep(x.flip(0) if x.dim() else x)
        else:
            self.keep(x.unsqueeze(self.random.randrange(x.dim() + 1)))

    def write(self) -> None:
        x = self.pick()
        if x.requires_grad and x.is_leaf:
            x = x.detach().clone()
            self.values.append(x)
        if self.random.random() < 0.5 and x.dim() and x.shape[0] > 1:
            x = x[1:]
        name = self.random.choice(WRITES)
        if name in ("add_", "mul_", "sub_", "div_"):
            getattr(x, name)(self.random.choice([2.0, self.pick()]))
        elif name == "clamp_":
            x.clamp_(-1, 1)
        elif name == "fill_":
            x.fill_(0.25)
        elif name == "copy_":
            x.copy_(self.pick())
        else:
            getattr(x, name)()

    def index(self) -> None:
        x = self.pick()
        if not x.dim() or not x.numel():
            return
        at = clew.randint(0, x.shape[0], (3,))
        form = self.random.randrange(4)
        if form == 0:
            self.keep(x[at])
        elif form == 1:
            self.keep(clew.cat([x, x[at]]))
        elif form == 2:
            self.keep(x.cumsum(0))
        else:
            self.keep(clew.stack([x, x], self.random.randrange(x.dim() + 1)).sum(0))

    def draw(self) -> None:
        x = self.pick()
        form = self.random.randrange(4)
        if form == 0:
            self.keep(clew.nn.functional.dropout(x, 0.3))
        elif form == 1:
            self.keep(x + clew.randn(x.shape).to(x.dtype))
        elif form == 2:
            self.keep(clew.rand_like(x) * x)
        else:
            self.keep(clew.bernoulli(x.detach().sigmoid()) * x)

    def observe(self) -> None:
        x = self.pick()
        form = self.random.randrange(4)
        if form == 0 and x.numel():
            self.seen.append(x.detach().reshape(-1)[0].item())
        elif form == 1:
            self.seen.append(repr(x.detach()))
        elif form == 2:
            self.seen.append(x.detach().float().numpy().copy())
        else:
            self.seen.append(bool((x.detach() > 0).any()))

    def branch(self) -> None:
        x = self.pick()
        if x.detach().float().mean() > 0.4:
            self.keep(x * 2)
        else:
            self.keep(x.sin() + x)

    def mode(self) -> None:
        x = self.pick()
        with clew.no_grad():
            self.keep(x * 1.5 + 0.25)
        self.keep(self.pick().detach())

    def backward(self) -> None:
        x = self.pick()
        if not x.requires_grad:
            return
        form = self.random.randrange(3)
        if form == 0:
            x.sum().backward(retain_graph=True)
            return
        wanted = [leaf for leaf in self.leaves if leaf.requires_grad]
        grads = clew.autograd.grad(
            x.sum(), wanted, create_graph=form == 2, retain_graph=True, allow_unused=True
        )
        self.values += [g for g in grads if g is not None]

    def step(self) -> None:
        """One of the above; errors are observations, too."""
        kinds = [self.unary] * 6 + [self.binary] * 6 + [self.reduce] * 3 + [self.row_wise] * 3
        kinds += [self.ternary, self.ternary, self.view, self.view, self.write, self.write]
        kinds += [self.product, self.index, self.draw, self.observe, self.branch, self.mode]
        kinds += [self.backward]
        kind = self.random.choice(kinds)
        try:
            kind()
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
            self.seen.append((kind.__name__, type(error).__name__))

    def finish(self) -> list[Any]:
        """Everything there is."""
        self.seen += [clew.rand(1).item()]  # the state of the draws
        self.seen += [x.detach().double().numpy() for x in self.values]
        grads = [x.grad if x.is_leaf else None for x in self.leaves]
        self.seen += [None if g is None else g.double().numpy() for g in grads]
        self.seen += [(layout(x), x.dtype) for x in self.values]
        return self.seen


def layout(x: clew.Tensor) -> list[tuple[int, int]]:
    """Sizes and strides; the stride of a single element tells nothing."""
    return [(n, s if n > 1 else 0) for n, s in zip(x.shape, x.stride(), strict=True)]


def run(machine: Any, steps: tuple[int, int], least: int | None) -> list[Any]:
    """What a program of so many steps lets one see, with calls that wait from a size on."""
    before = _C._defer(least)
    try:
        for _ in range(machine.random.randint(*steps)):
            machine.step()
    finally:
        _C._defer(before)
    if machine.random.random() < 0.5:
        _C._run_deferred()
    seen: list[Any] = machine.finish()
    return seen


def compare_runs(
    make: Callable[[int], Any],
    steps: tuple[int, int],
    sizes: list[int],
    same: Callable[[Any, Any], bool],
    seed: int,
    threads: int,
) -> None:
    """Raises where waiting makes a difference; the seed picks a size from which on calls wait."""
    clew.set_num_threads(threads)
    least = random.Random(seed).choice(sizes)
    eager, waited = run(make(seed), steps, None), run(make(seed), steps, least)
    assert len(eager) == len(waited), f"seed {seed}: another number of observations"
    for k, (a, b) in enumerate(zip(eager, waited, strict=True)):
        run_as = f"seed {seed}, {threads} threads, least {least}, observation {k} of {len(eager)}"
        assert same(a, b), f"{run_as}: {a} {b}"


def main(compare: Callable[[int, int], None]) -> int:
    """Runs the programs that the command line asks for, COUNT [FIRST]; how many differ."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    bad = 0
    for number in range(first, first + count):
        if "-v" in sys.argv:
            print(number, flush=True)
        try:
            compare(number, 1 + number % 2)
        except AssertionError as problem:
            bad += 1
            print(str(problem)[:400].replace("\n", " "), flush=True)
    print(f"{count} programs, {bad} differ")
    return bad


def same(a: Any, b: Any) -> bool:
    """Equal, with the same bits (NaN has many)."""
    if hasattr(a, "shape"):
        same_bits = (a == b) | ((a != a) & (b != b))
        return bool(a.shape == b.shape and same_bits.all())
    if isinstance(a, float) and a != a:
        return isinstance(b, float) and b != b
    return bool(a == b)


def compare(seed: int, threads: int = 2) -> None:
    """Raises where waiting makes a difference."""
    compare_runs(Machine, (5, 60), [0, 0, 100, 16384], same, seed, threads)


if __name__ == "__main__":
    sys.exit(main(compare) > 0)
