"""`match`, `global`, `nonlocal`, closures and filtered lists in exported programs."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import export_models as models
import numpy as np
import pytest
from test_kept_python import B, check, kept, rows

import clew
from clew import nn
from clew.export import ExportError, export

ONE = ({0: B},)
EXAMPLE = (clew.ones(4, 3),)


# ---- match ----


def test_match_on_numbers_that_data_give():
    def f(x):
        k = int(x.sum().abs()) % 4
        match k:
            case 0:
                y = x * 2
            case 1 | 2 if x.sum() > 0:
                y = x - 5
            case n if n > 2:
                return -x * n
            case _:
                y = x + k
        return y + 1

    example = clew.ones(4, 3)
    kept(f, (example,), [(x * s,) for (x,) in rows(1, 3, 6) for s in (0.1, 1.0, -3.0)], ONE)


def test_match_on_shapes():
    def f(x):
        match x.shape:
            case (n,):
                return x * n
            case (1, width):
                return x * width
            case (n, width) if n > 4:
                return x[:4] * width
            case (n, *others):
                return x * n + len(others)

    kept(f, (clew.randn(4, 3),), rows(1, 2, 4, 5, 9), ONE)
    kept(f, (clew.randn(4),), [(clew.randn(7),)], ONE)


@dataclasses.dataclass
class Point:
    x: float
    y: float


def test_match_on_structures():
    def f(x, mode):
        match mode:
            case {"scale": s, **others} if others:
                x = x * s
            case {"scale": s}:
                x = x * -s
            case Point(0, y=b) | Point(x=b):
                x = x + b
            case [first, *_, last]:
                x = x * first + last
            case str(name):
                x = x * len(name)
            case None:
                pass
        return x

    expected = {
        4.0: {"scale": 4.0, "more": 1}, -2.0: {"scale": 2.0}, 6.0: Point(0, 5.0),
        4.5: Point(3.5, 5.0), 11.0: [2, 0, 9], 3.0: "abc", 1.0: None, 7.0: (7.0, 0.0),
    }  # fmt: skip
    for value, mode in expected.items():
        program = export(models.Net(lambda x, m=mode: f(x, m)), (clew.ones(2),)).module()
        np.testing.assert_allclose(program(clew.ones(2)), [value, value])


def test_match_leaves_a_loop():
    def f(x):
        total = clew.zeros(3)
        for row in x:
            match int(row.sum()):
                case 0:
                    continue
                case n if n > 4:
                    break
                case 3:
                    total = total + row
                case _:
                    total = total - row
        return total

    x = clew.tensor([[1.0, 1, 1], [0, 0, 0], [1, 0, 1], [3, 3, 3], [1, 1, 1]])
    kept(f, (x,), [(x[1:],), (x[:3],), (x.flip(0),), (x[1:2],)], ONE)


# ---- variables of other functions ----


def test_a_closure_reads_what_a_branch_assigned():
    def f(x):
        scale = 1.0
        times = lambda v: v * scale
        y = x + 1
        if x.sum() > 100:
            scale = 3.0
            y = times(x)
            if x.max() > 50:
                scale = scale + 1
                y = y + times(x)
        return y, times(x)

    others = [(clew.full((n, 3), v),) for n in (2, 4) for v in (30.0, 60.0, -3.0)]
    kept(f, EXAMPLE, others, ONE)


def test_a_closure_reads_what_a_plain_branch_assigned():
    def f(x, flag=True):
        scale = 1.0

        def times(v):
            return v * scale

        if flag:
            scale = 3.0
            x = times(x)
        for k in range(2):
            scale = k + 2.0
            x = times(x)
        return x

    check(f)


def test_nonlocal_variables_are_kept():
    def f(x):
        total, count = clew.zeros(3), 0

        def add(row):
            nonlocal total, count
            if row.sum() > 0:
                total = total + row
                count += 1
                return row
            return row * 0

        last = clew.zeros(3)
        for row in x:
            last = last + add(row)
        if count > 1:
            add(total)
        return total, count, last

    check(f)


def test_a_variable_that_the_branch_cannot_see():
    def each(x, function):
        for row in x:
            function(row.sum())

    def f(x):
        total = clew.zeros(())

        def add(v):
            nonlocal total
            total = total + v

        each(x, add)
        return total

    with pytest.raises(ExportError, match=r"'total', a variable of another.*total = total \+ v"):
        export(models.Net(f), EXAMPLE, dynamic_shapes=ONE)

    def once(x):
        total = clew.zeros(())

        def add(v):
            nonlocal total
            total = total + v

        for k in range(2):
            add(x.sum() + k)
        if x.sum() > 0:
            total = total * 2
        return total

    check(once)


CALLS = 0
NAMES: list[str] = []


def test_global_variables_are_afterwards_what_they_were():
    def f(x):
        global CALLS
        CALLS = 1
        if x.sum() > 0:
            CALLS = 2
            x = x * 2
        for _ in range(2):
            NAMES.append("x")
        return x * CALLS

    check(f)
    assert type(CALLS) is int


# ---- lists whose length data decide ----


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
def test_append_in_a_branch_of_a_loop():
    def f(x):
        kept, both, ends, n = [], [], [clew.zeros(3)], 0
        for row in x:
            if row.sum() > 0:
                kept.append(row * 2)
                both.append(row)
                if row[0] > 0.5:
                    ends.append(row + 1)
                    ends.append(row + 2)
            else:
                both.append(-row)
            n = n + 1
        both = clew.stack(both)
        ends = clew.stack(ends)
        if not kept:
            return clew.zeros(1, 3), both, ends, n
        return clew.stack(kept), both, ends, len(kept)

    check(f)
    program = export(models.Net(f), EXAMPLE, dynamic_shapes=ONE).module()
    assert program(clew.full((2, 3), -1.0))[0].shape == (1, 3)


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
def test_the_first_round_may_add_nothing():
    def f(x):
        best, kept = None, []
        for row in x:
            value = row.max()
            best = value if best is None else clew.maximum(best, value)
            if value > 0.5:
                kept.append(row)
        return best, len(kept), sum(r.sum() for r in kept) if len(kept) > 0 else clew.zeros(())

    check(f)


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
def test_filtered_comprehensions():
    def f(x):
        rows = [r * 2 for r in x if r.sum() > 0]
        total = sum(r[0] for r in x if r[1] > 0 and r[2] > -1)
        some = any(v > 1 for v in x[0]), all(r.sum() < 3 for r in x)
        last = clew.stack([r for r in [x[0], x[-1], x[0] + x[-1]] if r.sum() < 1] + [x[0]])
        if len(rows) > 1:
            return clew.stack(rows), total + some[0], last * some[1]
        return clew.zeros(1, 3), total + some[0], last * some[1]

    check(f)


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
def test_lists_of_a_known_number_of_elements():
    def f(x):
        outs, flags = [x[0]], []
        for k in range(3):
            x = x * 1.5 - 0.5
            if x.sum() > 0:
                outs.append(x[0] + k)
            if x.max() > 1:
                flags.append(x.max())
            else:
                flags.append(x.min())
        total = x.sum()
        for o in outs:
            total = total + o.sum()
            if total > 20:
                break
        wide = clew.cat([o[None] for o in outs]) if len(outs) > 2 else clew.zeros(1, 3)
        return clew.stack(outs), clew.stack(flags), total, wide, len(outs)

    check(f)


def test_what_a_list_of_data_s_length_cannot_do():
    def f(x):
        outs = [x[0]]
        if x.sum() > 0:
            outs.append(x[1])
        return outs[-1] * 2

    def filtered(x):
        return [r for r in [x[0], x[1]] if r.sum() > 0]

    match = r"(?s)data decide which elements a list has, since .*outs.append\(x\[1\]\).*len\(\)"
    with pytest.raises(ExportError, match=match):
        export(models.Net(f), EXAMPLE)
    with pytest.raises(ExportError, match=r"data decide which elements a list has"):
        export(models.Net(filtered), EXAMPLE)


# ---- generators ----


def halves(x, limit):
    while x.norm() > limit:
        yield x
        x = x * 0.5


def positive(x):
    yield x[0]
    for row in x:
        if row.sum() > 0:
            yield row
    yield from (r * 2 for r in [x[0], x[-1]])


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
def test_generators_in_which_data_decide():
    def f(x):
        total = clew.zeros(3)
        for h in halves(x, 0.7):
            total = total + h.sum(0)
        best = max(row.max() for row in x)
        return total, clew.stack(list(positive(x))), sum(r.sum() for r in positive(x)), best

    check(f)


def test_generators_that_no_list_replaces():
    def f(x):
        steps = halves(x, 0.7)
        return next(steps) + next(steps)

    with pytest.raises(ExportError, match=r"while x.norm\(\) > limit"):
        export(models.Net(f), EXAMPLE)

    def talks(x):
        got = yield x
        if x.sum() > 0:
            yield got

    def g(x):
        steps = talks(x)
        next(steps)
        return steps.send(x * 2)

    with pytest.raises(ExportError, match=r"if x.sum\(\) > 0"):
        export(models.Net(g), EXAMPLE)


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
def test_lists_that_grow_behind_their_loop():
    def f(x):
        outs, ends = [], []
        for row in x:
            outs.append(row)
        outs.append(x[0] * 2)
        more = [x[0], *[x[-1]], *outs, *x] + [x[0] + 1]
        for k in range(x.shape[0]):
            outs.append(x[k] - 1)
        for row in x:
            if row.sum() > 0:
                ends.append(row)
        ends.extend([x[0], x[-1]])
        rest = clew.stack(more[1:]), clew.stack(outs[::-1]), outs[1], outs[-2], len(outs[:2])
        return clew.stack(outs), clew.stack(ends), len(ends), *rest

    check(f)


def test_other_uses_of_a_list_that_grew():
    uses = (
        lambda outs: outs.pop(0), lambda outs: outs.clear(), lambda outs: outs * 2,
        lambda outs: outs == [1], lambda outs: outs.copy(), lambda outs: outs.insert(0, 1),
    )  # fmt: skip
    for use in uses:

        def f(x, use=use):
            outs = []
            for row in x:
                outs.append(row)
            return use(outs)

        with pytest.raises(ExportError, match="used in another way"):
            export(models.Net(f), EXAMPLE, dynamic_shapes=ONE)


def test_assignments_in_conditions():
    def f(x):
        n = 0
        while (norm := x.norm()) > 1:
            x = x * 0.5
            n += 1
        if (top := x.max()) > 0 and top < norm:
            return x * top, n
        return x - top, n

    check(f)


def test_assignments_in_the_test_of_a_conditional_expression():
    def f(x):
        y = x * 2 if (top := x.max()) > 0 and top < 3 else x - top
        return y + top

    check(f)

    def late(x):
        if x.max() < 3 and (low := x.min()) > -1:
            return x * low
        return x

    with pytest.raises(ExportError, match="assign with `:=`"):
        export(models.Net(late), EXAMPLE)


def test_a_model_without_arguments():
    class Grid(clew.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = clew.nn.Parameter(clew.ones(3))

        def forward(self):
            return self.w * clew.arange(3)

    kept(Grid(), (), [])


# ---- conditions of which a part must not run ----


def test_the_second_part_of_a_condition_runs_only_where_the_first_lets_it():
    def f(x):
        i = j = 0
        while i < x.shape[0] and x[i].sum() < 1:
            i += 1
        while not (j >= x.shape[0] or x[j, 0] > 0):
            j += 1
        n = int((x > 0).sum())
        if n != 0 and 10 // n > 2:
            return x * i, j
        return x[:i].sum(0, keepdim=True), j

    example = clew.tensor([[0.1, 0.2, -1], [1, 1, 1], [2, 2, 2]])
    others = [(example * s,) for s in (0.1, -1.0, 9.0)] + rows(1, 2, 5)
    kept(f, (example,), others, ONE)


def test_a_list_of_elements_becomes_a_tensor_again():
    def f(x):
        return clew.tensor(x.sum(1).tolist()) * 2, clew.tensor((x > 0).sum(1).tolist())

    check(f)


class Rounds(clew.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if x.sum() > 0:
            return x.round()
        return x.floor()

    @staticmethod
    def backward(ctx, grad):
        return grad


def test_branches_of_an_autograd_function():
    def f(x):
        return Rounds.apply(x) + 1

    check(f)
    assert vars(Rounds)["forward"].__func__.__qualname__ == "Rounds.forward"


# ---- what is as long as a size ----


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
def test_a_list_that_a_loop_in_a_branch_fills():
    def f(x):
        outs, more = [], [x[0]]
        if x.sum() > 1:
            for row in x:
                outs.append(row * 2)
                if row[0] > 0:
                    more.append(row)
        else:
            k = 0
            while k < 2 and x.max() < 0:
                k += 1
                outs.append(x[0] * k)
        return len(outs), clew.stack(more), clew.stack(outs) if outs else x

    check(f)


def test_map_filter_unbind_and_keys():
    def half(row):
        return row / 2 if row.sum() > 0 else row

    def f(x):
        rows = clew.stack(list(map(half, x)))
        last = x.unbind(0)
        pairs = sum(map(lambda a, b: a @ b, x, x.flip(0)))
        best = max(x.unbind(1), key=lambda v: v.sum().item())
        least = min([x[0], x[-1], x.mean(0)], key=lambda v: float(v.norm()))
        return rows, last[0] + last[-1], len(last), pairs, best, least

    check(f)

    def g(x):
        kept = list(filter(lambda row: row.sum() > 0, x))
        return clew.stack(kept) if kept else x[:1]

    with pytest.warns(UserWarning, match="relies on"):
        check(g)


def test_sizes_that_only_the_other_branch_has():
    def f(x):
        if x.shape[0] > 3:
            x = x[:3]
        elif x.shape[0] == 1:
            x = x.repeat(3, 1)
        else:
            x = clew.cat([x, clew.zeros(3 - x.shape[0], 3)])
        return x.flatten()

    check(f)


def test_hooks_decide_too():
    def after(module, args, out):
        return out * 2 if out.sum() > 0 else out

    def before_it(module, args):
        return (args[0] + 1,) if args[0].sum() > 0 else None

    layer = nn.Linear(3, 3)
    layer.register_forward_hook(after)
    layer.register_forward_pre_hook(before_it)
    before = list(layer._forward_hooks.values())
    with pytest.raises(ExportError, match="None in one branch|None in the other"):
        export(layer, EXAMPLE)
    layer._forward_pre_hooks.clear()
    kept(layer, EXAMPLE, rows(1, 5, shift=2.0), ONE)
    assert list(layer._forward_hooks.values()) == before


def test_whole_numbers_are_shifted():
    check(lambda x: x * ((x.shape[0] << 2) + (-x.shape[0] >> 1)))


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
def test_the_sum_of_no_tensors_has_other_dims():
    def f(x):
        rows = enumerate(x[x.sum(1) > 0].unbind())
        return sum(r * (k + 1) for k, r in rows), sum(r.sum() for r in x if r.sum() > 0)

    x = clew.ones(4, 3)
    kept(f, (x,), [(clew.cat([x, -x]),), (x[:1],)], ONE)
    program = export(models.Net(f), (x,), dynamic_shapes=ONE).module()
    with pytest.raises(RuntimeError, match=r"sum\(r \* \(k \+ 1\).*its condition is True"):
        program(-x)

    def g(x):
        return sum(r for r in [x[0], x[-1]] if r.sum() > 0) * 2

    kept(g, (x,), [(3 * x,)])
    with pytest.raises(RuntimeError, match="its condition is True"):
        export(models.Net(g), (x,)).module()(-x)


def test_a_list_of_a_branch_within_a_branch():
    def f(x):
        outs, a = [], x * 1.0
        if x.sum() > 1:
            outs.append(a[0])
            if x.max() > 2:
                k = 0
                while k < 3 and a.sum() > 0:
                    k += 1
                    outs.append(a[0] * k)
                    a = a - 0.5
        else:
            a = a + 1
        return a, len(outs), sum(o.sum() for o in outs)

    check(f)


# ---- states of loops ----


class Pair(NamedTuple):
    h: clew.Tensor
    c: clew.Tensor


@dataclasses.dataclass
class State:
    h: clew.Tensor
    steps: int = 0


def test_named_tuples_and_dataclasses_are_states():
    def f(x):
        pair, state = Pair(clew.zeros(3), clew.ones(3)), State(clew.zeros(3))
        for row in x:
            pair = Pair(clew.tanh(pair.h + row), pair.c * 0.5 + pair.h)
            if row.sum() > 0:
                state = State(state.h + row, state.steps + 1)
        return pair.h, pair.c, state.h, state.steps

    check(f)

    def unrun(x):
        state = State(x[0])
        if x.sum() > 1e6:
            for row in x:
                state = State(state.h * 2 + row, state.steps + 1)
        return state.h, state.steps

    kept(unrun, EXAMPLE, [(clew.full((n, 3), 1e6),) for n in (1, 3)], ONE)


def test_other_objects_that_a_round_changes_raise_where_they_are_read():
    def read(x):
        mode, total = "a", clew.zeros(3)
        for row in x:
            total = total + row * (2 if mode == "a" else 3)
            mode = "b"
        return total

    with pytest.raises(ExportError, match="'mode' is another str in each round"):
        export(models.Net(read), EXAMPLE, dynamic_shapes=ONE)

    def unread(x):
        total = clew.zeros(3)
        for row in x:

            def twice(v):
                return v * 2 if v.sum() > 0 else v

            mode = "b"
            total = total + twice(row) * len(mode)
        return total

    check(unread)
