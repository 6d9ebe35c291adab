"""Models of odd control flow, each with an example and inputs that take every branch."""

from __future__ import annotations

import math
from collections import namedtuple
from functools import partial, reduce

import clew
from clew import nn
from clew.export import Dim
from clew.nn import functional as F

B = Dim("b", min=1)


class CollatzWhile(nn.Module):
    """A while in a while, with counters that both change."""

    def __init__(self):
        super().__init__()
        self.step = nn.Linear(3, 3)

    def forward(self, x):
        outer = inner = 0
        while x.abs().sum() > 1.0 and outer < 6:
            k = 0
            while x.abs().max() > 0.5:
                x = x * 0.5
                k += 1
                if k == 4:
                    break
            inner += k
            x = clew.tanh(self.step(x))
            outer += 1
        return x, outer, inner


class SearchElse(nn.Module):
    """A loop with break, continue and else."""

    def forward(self, x):
        found = clew.zeros(3)
        skipped = 0
        for i in range(x.shape[0]):
            row = x[i]
            if row[0] < 0:
                skipped += 1
                continue
            if row.sum() > 2:
                found = row * 10
                break
        else:
            found = found - 1
        return found, skipped


class ReturnInNestedLoops(nn.Module):
    """Returns out of two loops."""

    def forward(self, x):
        for i in range(x.shape[0]):
            total = clew.zeros(())
            for j in range(3):
                total = total + x[i, j]
                if total > 3:
                    return x[i] * 2, i
            if total < -3:
                return -x[i], i
        return x.mean(0), -1


class TensorComprehension(nn.Module):
    """A comprehension over the rows with a condition inside an expression."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x):
        return clew.stack([self.a(r) if r.sum() > 0 else self.b(r) for r in x])


class FilteredComprehension(nn.Module):
    """A comprehension that leaves rows out."""

    def forward(self, x):
        rows = [r * 2 for r in x if r.sum() > 0]
        if len(rows) == 0:
            return clew.zeros(1, 3)
        return clew.stack(rows)


class DictOut(nn.Module):
    """A dict whose values depend on the branch."""

    def forward(self, x):
        out = {"mean": x.mean(), "kind": clew.tensor(0)}
        if x.mean() > 0:
            out["kind"] = clew.tensor(1)
            out["mean"] = out["mean"] * 2
        elif x.min() < -2:
            out = {"mean": x.min(), "kind": clew.tensor(2)}
        return out


Stats = namedtuple("Stats", "low high")


class NamedOut(nn.Module):
    """Returns named tuples from either branch."""

    def forward(self, x):
        low, high = x.min(), x.max()
        if high + low < 0:
            low, high = high, low
        pair = Stats(low, high)
        return pair._replace(high=pair.high + 1) if pair.high > 1 else pair


class AssertedRange(nn.Module):
    """An assert on data, then a computation that needs it."""

    def forward(self, x):
        assert x.shape[0] >= 1, "no rows"
        y = x.abs() + 1
        assert y.min() >= 1
        return y.log() if y.max() < 3 else y.sqrt()


class TryNan(nn.Module):
    """Raises and catches depending on data."""

    def check(self, x):
        if x.sum() < 0:
            raise ValueError("negative")
        return x.sqrt()

    def forward(self, x):
        y = x.abs() * x.sum().sign()
        try:
            return self.check(y)
        except ValueError:
            return y - 1


class Walrus(nn.Module):
    """Assignment expressions in conditions."""

    def __init__(self):
        super().__init__()
        self.f = nn.Linear(3, 3)

    def forward(self, x):
        n = 0
        while (norm := x.norm()) > 0.7 and (n := n + 1) < 5:
            x = self.f(x) * 0.9
        if (m := x.mean()) > 0:
            x = x + m
        return x, norm, n


class FString(nn.Module):
    """A key that a formatted string of a constant and of data choose."""

    def forward(self, x):
        table = {"k0": clew.ones(3), "k1": clew.full((3,), 2.0), "k2": clew.full((3,), 3.0)}
        which = int(x.abs().sum()) % 3
        return x * table[f"k{which}"]


class Defaults(nn.Module):
    """Default arguments, one of them a tensor, and keyword-only flags."""

    offset = clew.tensor([1.0, 2.0, 3.0])

    def scaled(self, x, by=2.0, *, shift=offset, negate=False):
        y = x * by + shift
        return -y if negate else y

    def forward(self, x, scale=None):
        if scale is None:
            scale = x.std(0, unbiased=False) + 1
        y = self.scaled(x / scale)
        if y.mean() > 2:
            y = self.scaled(y, 0.5, negate=True)
        return y


class Closure(nn.Module):
    """A closure over a variable that a branch has changed, with nonlocal."""

    def forward(self, x):
        count = clew.zeros(())
        scale = 1.0
        if x.sum() > 0:
            scale = 3.0

        def push(v):
            nonlocal count
            count = count + 1
            return v * scale

        y = push(x)
        if y.max() > 2:
            y = push(y)
        return y, count


class Property(nn.Module):
    """A property that computes and decides."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(clew.tensor([1.5, -0.5, 0.25]))

    @property
    def normal(self):
        return self.gain / self.gain.norm()

    @property
    def sign(self):
        return 1 if self.gain.sum() > 0 else -1

    def forward(self, x):
        y = x * self.normal * self.sign
        return y if (y * self.normal).sum() > 0 else y - self.normal


class IndexedExperts(nn.Module):
    """A module list that data indexes."""

    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def forward(self, x):
        i = int(x.abs().sum()) % 3
        return self.experts[i](x)


class ArgmaxExperts(nn.Module):
    """The expert of each row is found in a loop over the rows."""

    def __init__(self):
        super().__init__()
        self.route = nn.Linear(3, 3)
        self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def forward(self, x):
        out = clew.empty_like(x)
        for r in range(x.size(0)):
            w = self.route(x[r]).argmax()
            for e, expert in enumerate(self.experts):
                if w == e:
                    out[r] = expert(x[r])
        return out


class WhileTrue(nn.Module):
    """Nothing but a break ends it."""

    def forward(self, x):
        n = 0
        while True:
            x = x * 0.7
            n += 1
            if x.abs().max() < 0.5 or n > 9:
                break
            if n % 2 == 0:
                continue
            x = x - 0.01
        return x, n


class Newton(nn.Module):
    """A square root to a tolerance, with a list of the last two states."""

    def forward(self, x):
        target = x.abs() + 0.5
        states = [target, target * 0.5 + 0.5]
        while (states[1] - states[0]).abs().max() > 1e-4:
            states = [states[1], 0.5 * (states[1] + target / states[1])]
        return states[1]


class Bisect(nn.Module):
    """Updates either end of an interval."""

    def forward(self, x):
        goal = x.sigmoid().mean() * 8
        low, high = clew.zeros(()), clew.full((), 2.0)
        for _ in range(12):
            middle = (low + high) / 2
            if middle**3 < goal:
                low = middle
            else:
                high = middle
        return low, high


class Cumulative(nn.Module):
    """Grows a list in the loop, stops early, and takes both ends."""

    def forward(self, x):
        seen = []
        h = clew.zeros(3)
        for row in x:
            h = h * 0.5 + row
            seen.append(h)
            if h.sum() > 4:
                break
        return clew.stack(seen), seen[-1], len(seen)


class SwapStates(nn.Module):
    """Swaps its variables in the loop; one branch swaps them back."""

    def forward(self, x):
        a, b = x.clone(), x * 2 + 1
        for i in range(x.shape[0]):
            a, b = b, a + b[i].sum() * 0.1
            if a.mean() > 1:
                a, b = b, a
        return a, b


class ChainedComparison(nn.Module):
    """a < b < c, `in`, `not`, and a conditional in an argument."""

    def forward(self, x):
        m = x.mean()
        if -0.3 < m < 0.3:
            return F.relu(x)
        if not (m > 0) and x.numel() in (3, 6, 12):
            return clew.clamp(x, min=-1.0 if x.min() < -2 else -0.5)
        return x * (2 if m > 1 else 4)


class InPlaceBranches(nn.Module):
    """Writes to a view in one branch and to the base in the other."""

    def forward(self, x):
        y = x.clone()
        top = y[:1]
        if y.sum() > 0:
            top.mul_(3)
        else:
            y[:, 0] = 7.0
        top += 1
        return y, top.sum()


class HelperWithReturns(nn.Module):
    """Functions that return early, called from a loop and from one another."""

    @staticmethod
    def pick(v, limit=0.5):
        if v > limit:
            return v * 2
        if v < -limit:
            return -v
        return v - v

    def both(self, a, b):
        p = self.pick(a)
        return p if p > 1 else p + self.pick(b, limit=1.0)

    def forward(self, x):
        total = clew.zeros(())
        for i in range(x.shape[0]):
            total = total + self.both(x[i, 0], x[i, 1])
        return total


class Reduced(nn.Module):
    """`reduce`, `partial`, `zip`, `map` and `sum` over parts of tensors."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def forward(self, x):
        y = reduce(lambda h, layer: clew.tanh(layer(h)), self.layers, x)
        scale = partial(clew.mul, other=y.mean())
        parts = list(map(scale, y.unbind(1)))
        total = sum(p * (i + 1) for i, (p, _) in enumerate(zip(parts, self.layers)))
        if total.sum() > 0:
            total = total + max(p.max() for p in parts)
        return total


class Beam(nn.Module):
    """Grows a tensor until a data-dependent length."""

    def forward(self, x):
        out = x[:1]
        while out.shape[0] < 6 and out[-1].sum() > -1:
            out = clew.cat([out, out[-1:] * 0.5 - 0.4])
        return out, out.shape[0]


class Counter(nn.Module):
    """Keeps a count on itself, and behaves differently at the second call."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * 2 if self.calls % 2 else x * 2 + 0


class Recursion(nn.Module):
    """Recursion as deep as data says."""

    def halve(self, x):
        if x.abs().max() < 0.5:
            return x
        return self.halve(x * 0.5)

    def forward(self, x):
        return self.halve(x)


class DictOfStates(nn.Module):
    """A dict of states that a loop reads and writes, with a ternary in the key."""

    def forward(self, x):
        state = {"even": clew.zeros(3), "odd": clew.zeros(3), "n": 0}
        for i, row in enumerate(x):
            key = "even" if i % 2 == 0 else "odd"
            state[key] = state[key] + row
            if row.max() > 1:
                state["n"] += 1
        return state["even"] - state["odd"], state["n"]


class MathOnItems(nn.Module):
    """Python numbers from data through `math` and back."""

    def forward(self, x):
        v = x.abs().mean().item()
        w = math.sqrt(v) + math.floor(v * 3) + abs(-v) ** 2
        n = min(max(int(w), 1), 4)
        return x * w, x[:1].expand(n, 3), round(w)


class WithBlocks(nn.Module):
    """`with` around decisions, and a finally."""

    def forward(self, x):
        with clew.no_grad():
            if x.sum() > 0:
                y = x * 2
            else:
                y = x - 1
        try:
            z = y.abs().log1p()
            if z.max() > 1:
                z = z / z.max()
        finally:
            y = y + 1
        return y + z


class MatchCase(nn.Module):
    """`match` on a number that data gives."""

    def forward(self, x):
        match int(x.abs().sum()) % 3:
            case 0:
                return x * 2
            case 1:
                return x - 5
            case _:
                return -x


class LoopElseReturn(nn.Module):
    """`while ... else` with a return, and `del`."""

    def forward(self, x):
        k = 0
        while k < x.shape[0]:
            row = x[k]
            if row.min() < -1.5:
                return row, k
            del row
            k += 1
        else:
            x = x + 100
        return x[0], k


class UnboundAfterLoop(nn.Module):
    """The loop's variables live on behind it."""

    def forward(self, x):
        for i, row in enumerate(x):
            last = row * (i + 1)
            if last.sum() > 3:
                break
        return last, i


class Sorted(nn.Module):
    """Python's `sorted`, `any`, `all` on numbers from data."""

    def forward(self, x):
        values = sorted([x[0, 0].item(), x[0, 1].item(), x[0, 2].item()])
        if any(v > 1 for v in values):
            return x * values[0]
        if all(v < 0 for v in values):
            return x - values[2]
        return x + values[1]


class Strings(nn.Module):
    """A mode, kept as a string, that data changes and a later branch reads."""

    def forward(self, x):
        mode = "relu"
        if x.mean() > 0.5:
            mode = "tanh"
        elif x.mean() < -0.5:
            mode = "sigmoid"
        return getattr(clew, mode)(x) if mode != "relu" else F.relu(x)


class StarArgs(nn.Module):
    """Unpacks what a branch has made."""

    def join(self, first, *others, weight=1.0):
        for o in others:
            first = first + weight * o
        return first

    def forward(self, x):
        parts = (x, x * 2)
        kw = {"weight": 2.0}
        if x.sum() > 0:
            parts = (*parts[::-1],)
            kw["weight"] = 0.5
        first, *rest = parts
        return self.join(first, *rest, **kw)


def rows(*pairs):
    """Batches of (rows, shift)."""
    return [(clew.randn(n, 3) + s,) for n, s in pairs]


SPREAD = (
    (1, 0.0),
    (2, 3.0),
    (5, -3.0),
    (4, 1.0),
    (7, -1.0),
    (3, 0.3),
    (6, 0.0),
    (1, -2.0),
    (2, 0.8),
)
ODD = [
    CollatzWhile, SearchElse, ReturnInNestedLoops, TensorComprehension, FilteredComprehension,
    DictOut, NamedOut, AssertedRange, TryNan, Walrus, FString, Defaults, Closure, Property,
    IndexedExperts, ArgmaxExperts, WhileTrue, Newton, Bisect, Cumulative, SwapStates,
    ChainedComparison, InPlaceBranches, HelperWithReturns, Reduced, Beam, Counter, Recursion,
    DictOfStates, MathOnItems, WithBlocks, MatchCase, LoopElseReturn, UnboundAfterLoop, Sorted,
    Strings, StarArgs,
]  # fmt: skip
