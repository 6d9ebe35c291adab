"""Models in which data decide through Python's own means, and tensors as long as data say."""

from __future__ import annotations

import bisect
import contextlib
import functools
import math
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import NamedTuple

import numpy as np

import clew
from clew import nn
from clew.nn import functional as F

KEPT, STOPPED, REFUSED, SIZED = {}, {}, {}, {}


def of(table):
    def add(f):
        table[f.__name__] = f
        return f

    return add


def refused(match):
    return lambda f: REFUSED.setdefault(f.__name__, (f, match))[0]


def which(x):
    """0, 1 or 2."""
    return int(x.sum(0).argmax())


class Layers(nn.Module):
    def __init__(self, pick):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3), nn.Tanh()])
        self.chain = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.ReLU())
        self.scales = nn.ParameterList(nn.Parameter(clew.randn(3)) for _ in range(3))
        self.listed = [nn.Linear(3, 3) for _ in range(3)]
        self.named = nn.ModuleDict({"0": nn.Tanh(), "1": nn.ReLU(), "2": nn.Sigmoid()})
        self.pick = pick

    def forward(self, x):
        return self.pick(self, x)


def layers(f):
    KEPT[f.__name__] = Layers(f)
    return f


# ---- things that data choose ----


@layers
def a_module_list(self, x):
    return self.layers[int(x.sum(0).argmax())](x)


@layers
def a_module_list_by_name(self, x):
    layer = self.layers[x.sum(0).argmax().item()]
    return layer(x) + 1


@layers
def a_list_by_a_tensor(self, x):
    return self.listed[x.sum(0).argmax()](x)


@layers
def two_lists_of_modules(self, x):
    i = which(x)
    return self.chain[i](x) * self.scales[i]


@layers
def attributes_of_what_is_chosen(self, x):
    layer = self.listed[which(x)]
    return F.linear(x, layer.weight, layer.bias)


@layers
def a_choice_among_chosen_lists(self, x):
    groups = [self.listed, self.chain, self.layers]
    return groups[which(x)][int(x.sum() > 0)](x)


@layers
def a_layer_for_each_row(self, x):
    out = []
    for row in x:
        out.append(self.layers[int(row.argmax())](row))
    return clew.stack(out)


@layers
def as_many_layers_as_data_say(self, x):
    for i in range(which(x) + 1):
        x = self.layers[i](x)
    return x


@of(KEPT)
def numbers(x):
    return x * [1.0, 2.5, -3.0][which(x)]


@of(KEPT)
def numbers_of_numpy(x):
    return x * (np.float64(2.0) if x.sum() > 0 else np.float64(3.0))


@of(KEPT)
def tensors(x):
    rows = [x[0], x[0] * 2, x[0].exp()]
    return rows[which(x)]


@of(KEPT)
def functions_from_the_end(x):
    return (clew.relu, clew.tanh, clew.exp)[-1 - which(x)](x)


@of(KEPT)
def strings(x):
    mode = ["mul", "add", "sub"][which(x)]
    if mode == "mul":
        return x * 2
    return x + 2 if mode != "sub" else x - 2


@of(KEPT)
def a_pair_by_a_bool(x):
    double = [lambda v: v, lambda v: v * 2][int(x.sum() > 0)]
    return double(x) + (1, 5)[bool(x.sum() > 0)] + (x, -x)[x.sum() > 0]


@of(KEPT)
def a_dict_of_numbers(x):
    by_flag = {True: 1.0, False: 5.0}[bool(x.sum() > 0)]
    return x * {0: 1.0, 1: 5.0, 2: -3.0}[which(x)] * by_flag


@of(KEPT)
def a_written_index(x):
    best = x.argmax(1)
    best[0] = 2 - best[1]
    return x * [1.0, 2.0, 3.0][int(best[0])]


# ---- conditions ----


@of(KEPT)
def truth_of_a_number_as_a_value(x):
    return x * (which(x) or 7) * ((which(x) and 5) + 1)


@of(KEPT)
def is_true(x):
    b = bool(x.sum() > 0)
    return x * 2 if b is True else (x if b is not False else x * 3)


@of(KEPT)
def any_and_all(x):
    columns = [x[:, i].sum() > 0 for i in range(3)]
    if any(x[:, i].sum() > 0 for i in range(3)):
        x = x + 1
    return x * 2 if all(columns) else x - 3


@of(KEPT)
def members(x):
    found = which(x) in {0: "a", 2: "b"}
    return x * 2 if found else x * (3 if which(x) in {1, 2} else 4)


@of(KEPT)
def greatest_of_a_generator(x):
    return x + max(x[:, i].sum() for i in range(3)) - min(v * 2 for v in x[0].tolist())


@of(KEPT)
def questions_of_math(x):
    s = x.sum().item()
    if math.isnan(s) or math.isinf(s):
        return x * 0
    return x * (which(x) & 1) + 2.0 ** -which(x)


def halved(x, depth):
    if depth == 0:
        return x if x.sum() > 0 else -x
    return halved(x / 2, depth - 1)


@of(KEPT)
def a_function_that_calls_itself(x):
    return halved(x, 3)


def scaled(x, k):
    return x * k if x.sum() > 0 else x


@of(KEPT)
def a_partial(x):
    return functools.partial(scaled, k=3.0)(x)


class Caller:
    def __call__(self, x):
        return x * 2 if x.sum() > 0 else x


@of(KEPT)
def an_object_that_is_called(x):
    return Caller()(x)


@dataclass
class Pair:
    h: object
    n: int


@of(KEPT)
def a_dataclass_of_either_branch(x):
    pair = Pair(x, 1)
    if x.sum() > 0:
        pair = Pair(x * 2, 3)
    return pair.h * pair.n


@of(KEPT)
def equal_counts(x):
    up, left = int((x.sum(1) > 0).sum()), int((x[:, 0] > 0).sum())
    return x * 2 if up == left else x


class Both(NamedTuple):
    a: object
    b: object


@of(KEPT)
def a_named_tuple_of_either_branch(x):
    both = Both(x, 1)
    if x.sum() > 0:
        both = both._replace(b=3)
    return both.a * both.b


# ---- decided as the example has it: the own format checks it, ONNX refuses it ----


@of(STOPPED)
def text(x):
    return x * {"k0": 1.0, "k1": 2.0, "k2": 3.0}[f"k{which(x)}"]


@of(STOPPED)
def text_of_str(x):
    return x * 2 if str(which(x)) == "0" else x


@of(STOPPED)
def old_text(x):
    return x * {"k0": 1.0, "k1": 2.0, "k2": 3.0}["k%d" % which(x)]  # noqa: UP031


@of(STOPPED)
def a_pair_as_a_key(x):
    return x * {(0, 1): 1.0, (1, 1): 2.0, (2, 1): 3.0}[which(x), 1]


@of(STOPPED)
def keys_that_are_added(x):
    cache = {}
    cache[which(x)] = 2.0
    cache[0] = 1.0
    return x * len(cache)


@of(STOPPED)
def a_sorted_list(x):
    low, _, high = sorted([x[0, 0], x[0, 1], x[0, 2]])
    return x * low - high


@of(STOPPED)
def the_place_in_a_list(x):
    return x * ([0, 1, 2].index(which(x)) + 1)


@functools.lru_cache
def looked_up(i):
    return [1.0, 5.0, -2.0][i]


@of(STOPPED)
def a_cache(x):
    return x * looked_up(which(x))


@of(STOPPED)
def a_part_of_a_list(x):
    return x * sum([1.0, 2.0, 3.0][which(x) :])


@of(STOPPED)
def an_element_that_is_set(x):
    a = [0.0, 0.0, 0.0]
    a[which(x)] = 1.0
    return x * clew.tensor(a)


@of(STOPPED)
def an_element_that_is_taken_out(x):
    return x * [1.0, 2.0, 3.0].pop(which(x))


@of(STOPPED)
def an_array(x):
    return x * np.array([1.0, 2.0, 3.0])[which(x)]


@of(STOPPED)
def a_function_of_numpy(x):
    return x * float(np.sign(x.sum().item()))


@of(STOPPED)
def a_bisection(x):
    return x * bisect.bisect([0.0, 1.0, 2.0], x.sum().item())


@of(STOPPED)
def parts_of_as_many_rows(x):
    parts = x[: count(x) + 1].chunk(2)
    return sum(p.sum() for p in parts) * x


class Kind(IntEnum):
    A = 0
    B = 1
    C = 2


@of(STOPPED)
def an_enum(x):
    return x if Kind(which(x)) is Kind.A else x * 2


@of(STOPPED)
def a_fraction(x):
    return x * float(Fraction(which(x), 2))


@of(STOPPED)
def a_repeated_list(x):
    return x * (sum([2.0] * which(x)) + len("a" * which(x)))


# ---- exceptions, identity, iterators, attributes ----


def checked(x):
    if x.sum() > 0:
        raise ValueError("positive")
    return x * 2


@refused("ValueError is raised at .*if x.sum.. > 0.*the `try` at.*try:.*in an `if`")
def a_raise_that_is_caught(x):
    try:
        return checked(x)
    except ValueError:
        return x - 1


@refused("AssertionError is raised at .*assert x.sum")
def an_assert_that_is_caught(x):
    try:
        assert x.sum() > 0
        y = x * 2
    except AssertionError:
        y = x - 1
    return y


@refused("ValueError is raised at .*the `try` at .*suppress")
def a_raise_that_is_suppressed(x):
    y = x
    with contextlib.suppress(ValueError):
        if x.sum() > 0:
            raise ValueError
        y = x * 2
    return y


@refused("IndexError is raised at .*k = ")
def an_index_that_may_be_missing(x):
    try:
        k = [1.0, 2.0][which(x)]
    except IndexError:
        k = 7.0
    return x * k


@refused("KeyError is raised at .*k = ")
def a_key_that_may_be_missing(x):
    try:
        k = {0: 1.0, 1: 2.0}[which(x)]
    except KeyError:
        k = 7.0
    return x * k


@refused("ZeroDivisionError is raised at .*k = ")
def a_division_that_may_fail(x):
    try:
        k = 1 / which(x)
    except ZeroDivisionError:
        k = 7.0
    return x * k


@refused("LinAlgError is raised at .*and the `try` at .*try:")
def a_matrix_that_may_be_none_such(x):
    a = x.T @ x - 100 * clew.eye(3)
    try:
        return clew.linalg.cholesky(a)
    except RuntimeError:
        return a


@refused("values leave as NumPy .*float.x.numpy")
def a_refusal_that_is_caught(x):
    try:
        return x * float(x.numpy().max())
    except Exception:
        return x


@refused(r"grad\(\) within a model cannot be kept, at .*autograd")
def a_gradient(x):
    with clew.enable_grad():
        y = x.detach().requires_grad_()
        (g,) = clew.autograd.grad((y**3).sum(), y)
    return g


@refused(r"vmap\(\) within a model cannot be kept, at .*vmap")
def a_mapped_function(x):
    return clew.vmap(lambda r: clew.where(r.sum() > 0, r, -r))(x)


@of(SIZED)
def parts_of_different_sizes(x):
    start, parts = 0, []
    counts = clew.bincount(x.argmax(1) + x.argmin(1), minlength=2).tolist()
    for n in counts:
        parts.append(x[start : start + n])
        start += n
    return clew.cat(parts)


@refused("`is` asks at .*z is y")
def which_of_two(x):
    y = x * 2
    z = y if x.sum() > 0 else x
    return z + 1 if z is y else z


@refused("an iterator that was made before goes on.*k = next")
def an_iterator_in_a_branch(x):
    it = iter([1.0, 2.0, 3.0])
    k = next(it)
    if x.sum() > 0:
        k = next(it)
    return x * k * next(it)


@refused("a dict of the keys .'dim'. after one branch and a dict of the keys .. after the other")
def keys_of_a_branch(x):
    kw = {}
    if x.sum() > 0:
        kw["dim"] = 0
    return x.softmax(**{"dim": 1, **kw})


class Counting(nn.Module):
    """Counts its runs."""

    def __init__(self):
        super().__init__()
        self.runs = 0

    def forward(self, x):
        self.runs += 1
        return x * self.runs


class Remembering(nn.Module):
    """Keeps what it first saw, in a dict."""

    def __init__(self):
        super().__init__()
        self.seen = {}

    def forward(self, x):
        if "mean" not in self.seen:
            self.seen["mean"] = x.mean()
        return x + self.seen["mean"]


class Noting(nn.Module):
    """Keeps something that no run reads."""

    def __init__(self):
        super().__init__()
        self.last, self.log = None, []

    def forward(self, x):
        self.last = x.mean()
        self.log.append(x.shape[0])
        return x * 2


# ---- as long as data say ----


def count(x):
    return int((x.sum(1) > 0).sum())


def up(x):
    return x.sum(1) > 0


@of(SIZED)
def reshaped(x):
    y = x.reshape(-1, 1 + 2 * int(x.sum() > 0))
    return x / y.shape[0], x * y.shape[1], y.mean(0).sum()


@of(SIZED)
def cut(x):
    y, z = x[: count(x)], x[:, : 1 + int(x[0].argmax())]
    return y.sum(0) / (y.shape[0] + 1), y.numel() * x, z.sum(1) / z.shape[1]


@of(SIZED)
def padded(x):
    y = F.pad(x, (0, 0, 0, 4 - count(x)))
    return y.sum(0) / y.shape[0]


@of(SIZED)
def narrowed(x):
    y = x.narrow(0, 0, count(x))
    return y.sum(0) / (y.shape[0] + 1)


@of(SIZED)
def the_greatest(x):
    y = x.topk(1 + int(x[0].argmax()), dim=1)[0]
    return y.sum(1) / y.shape[1]


@of(SIZED)
def repeated(x):
    y, z = x.repeat(count(x) + 1, 1), x[None].expand(count(x) + 1, 4, 3)
    return y.sum(0) / y.shape[0], z.sum(0) / z.shape[0]


@of(SIZED)
def made(x):
    y, z, e = clew.arange(count(x)), clew.zeros(count(x), 3), clew.eye(count(x) + 1)
    line = clew.linspace(0, 1, count(x) + 1)
    return y.sum() + y.shape[0] * x, z.shape[0] * x, e.sum() / e.shape[0], line.sum() / len(line)


@of(SIZED)
def rows_of_a_mask(x):
    y = x[up(x)]
    return y.sum(0) / (y.shape[0] + 1), y.mean(0), y.var(0), clew.var_mean(y, 0)[1]


@of(SIZED)
def places_of_a_mask(x):
    y, (z,) = up(x).nonzero(), clew.where(up(x))
    i = y[:, 0]
    return y.shape[0] * x, x[z].sum(0) / (len(z) + 1), x.index_select(0, i).shape[0] * x[i].sum(0)


@of(SIZED)
def further_from_a_mask(x):
    m = x[up(x)]
    flat, column, turned = m.flatten(), m.reshape(-1, 1), m.T
    product, both, new = m @ m.T, clew.stack([m, m]), m.new_zeros(m.shape[0], 2)
    whole = clew.cat([m, x])
    return (
        flat.shape[0] * x, column.shape[0] * x, turned.shape[1] * x, product.shape[1] * x,
        both.shape[1] * x, new.shape[0] * x, whole.sum(0) / whole.shape[0],
        (m @ clew.ones(3, 3) + 1).numel() * x,
    )  # fmt: skip


@of(SIZED)
def windows_of_a_mask(x):
    y = F.avg_pool1d(F.pad(x[up(x)].T[None], (2, 2)), 2)
    z = F.interpolate(x[None, None], size=(count(x) + 1, 3))
    return y.sum() / (y.shape[2] + 1), z.sum() / z.shape[2]


@of(SIZED)
def elements_of_a_mask(x):
    y = x.masked_select(x > -0.5)
    z = clew.unique(x.argmax(1))
    w = x.repeat_interleave(x.argmax(1), 0)
    return y.sum() / (len(y) + 1), z.shape[0] * x, w.sum(0) / (w.shape[0] + 1)


@of(SIZED)
def split(x):
    a, _ = x.split([count(x), 4 - count(x)])
    return a.sum(0) / (a.shape[0] + 1)


@of(SIZED)
def shortened(x):
    y = x
    while y.abs().sum() > 6 and y.shape[0] > 1:
        y = y[1:]
    z = x[1:] if x.sum() > 0 else x
    return y.sum(0) / y.shape[0], z.sum(0) / z.shape[0]
