"""Lists that grow in loops and branches, and are read there."""

from __future__ import annotations

import pytest
from export_models import Net
from test_kept_python import kept

import clew
from clew.export import Dim, ExportError, export
from clew.nn.utils import rnn

pytestmark = pytest.mark.filterwarnings("ignore:onnx.export. the program relies")

B = Dim("b")
ROWS = ({0: B},)
OTHERS = [(clew.randn(n, 3) + s,) for n in (1, 2, 5, 9) for s in (-1, 0, 1)]


def test_the_last_element_behind_an_append_in_a_branch():
    def f(x):
        xs, y = [x[0]], x[0]
        for row in x:
            if row.sum() > 0:
                xs.append(row * 2)
                y = y + xs[-1]
                if row[0] > 0:
                    xs.append(row * 3)
                y = y * xs[-1]
            else:
                y = y - xs[-1]
            y = y + xs[-1].sum()
        return y, clew.stack(xs)

    kept(f, (clew.randn(4, 3),), OTHERS, ROWS)


def test_the_length_of_a_list_in_the_loop_that_fills_it():
    def f(x):
        xs, lengths = [], clew.zeros(())
        for row in x:
            if len(xs) >= 3:
                break
            if row.sum() > 0 and len(xs) < 2:
                xs.append(row * 2)
                lengths = lengths + len(xs)
            elif not xs:
                xs.append(row)
            lengths = 2 * lengths + len(xs)
        return len(xs), lengths, clew.stack(xs)

    kept(f, (clew.randn(4, 3),), OTHERS, ROWS)


def test_the_length_of_a_list_that_an_inner_loop_fills():
    def f(x):
        xs, seen = [x[0], x[0]], clew.zeros(())
        for row in x:
            for k in range(x.shape[0]):
                if len(xs) < 6 and row[0] > x[k, 1]:
                    xs.append(row * k)
                seen = seen * 0.5 + len(xs)
            if xs and row[2] > 0:
                xs.append(-row)
            seen = seen + len(xs)
        return seen, clew.stack(xs)

    kept(f, (clew.randn(4, 3),), OTHERS, ROWS)


def test_a_while_loop_until_a_list_is_long_enough():
    def f(x):
        xs, k = [], 0
        while k < x.shape[0] and len(xs) < 3:
            if x[k].sum() > 0:
                xs.append(x[k])
            k += 1
        return k, len(xs)

    kept(f, (clew.randn(4, 3),), OTHERS, ROWS)


def test_a_list_that_a_loop_filled_grows_in_a_branch():
    def f(x):
        parts, start = [], 0
        for i in range(x.shape[0]):
            if x[i, 0] > 0:
                if i > start:
                    parts.append(x[start:i].mean(0))
                start = i + 1
        if start < x.shape[0]:
            parts.append(x[start:].mean(0))
            if x[-1, 1] > 0:
                parts.append(clew.stack(parts).sum(0) + parts[-1] * len(parts))
        elif x[0, 1] > 0:
            parts.append(x[0])
        parts.append(x[-1])
        return len(parts), clew.stack(parts)

    kept(f, (clew.randn(4, 3),), OTHERS, ROWS)


def test_such_a_list_may_be_another_one_in_the_other_branch():
    def f(x):
        parts = []
        for row in x:
            parts.append(row * 2)
        other = parts
        if x.sum() > 0:
            parts.append(x[0])
        else:
            parts = [*parts, x[-1], x[0]]
        return clew.stack(parts), clew.stack(other)

    kept(f, (clew.randn(4, 3),), OTHERS, ROWS)


def test_a_list_of_different_sizes_grows_in_a_branch():
    def f(x):
        parts = []
        for i in range(x.shape[0]):
            parts.append(x[: i + 1].sum(1))
        if x.sum() > 0:
            parts.append(x[:, 0])
        return rnn.pad_sequence(parts, batch_first=True), len(parts)

    kept(f, (clew.randn(4, 3),), OTHERS, ROWS)


def test_a_second_loop_in_a_branch_is_refused():
    def f(x):
        parts = list(x)
        if x.sum() > 0:
            for r in x:
                parts.append(r * 2)
        return clew.stack(parts)

    with pytest.raises(ExportError, match="grows again in another loop"):
        export(Net(f), (clew.randn(3, 2),), dynamic_shapes=ROWS)


def test_pad_sequence_of_a_filtered_list_of_fixed_length():
    def f(x):
        some = [x[i] for i in range(3) if x[i].sum() > 0] + [x[0]]
        ragged = [x[i, : i + 1] for i in range(3) if x[i, 0] > -3]
        return (
            rnn.pad_sequence(some, batch_first=True), rnn.pad_sequence(ragged, True, -1.0),
            rnn.pad_sequence(sequences=ragged, padding_value=2.0, padding_side="left"),
        )  # fmt: skip

    inputs = [(clew.randn(3, 3),) for _ in range(8)]
    kept(f, (clew.randn(3, 3),), inputs, None)


def test_elements_are_replaced_and_taken_from_a_list_that_a_loop_filled():
    def f(x):
        xs = [r * 2 for r in x]
        xs.append(x[0])
        xs[0] = xs[0] + xs[-1]
        xs[-1] = x[0] - 1
        last = xs.pop()
        return clew.stack([*xs, last]), len(xs), last

    kept(f, (clew.randn(4, 3),), OTHERS, ROWS)


def test_a_path_that_is_traced_back_and_reversed():
    def f(x):
        score, back = x[0], []
        for t in range(1, len(x)):
            score, i = (score[:, None] + x[t]).max(0)
            back.append(i)
        last = score.argmax()
        path = [last]
        for i in reversed(back):
            last = i[last]
            path.append(last)
        path.reverse()
        path.append(last)
        return clew.stack(path), len(path), score.max()

    kept(f, (clew.randn(4, 3),), OTHERS, ROWS)


def test_a_list_of_different_sizes_is_not_reversed_in_place():
    def f(x, lengths):
        parts, start = [], 0
        for n in lengths.tolist():
            parts.append(x[start : start + n])
            start += n
        parts.reverse()
        return clew.cat(parts)

    lengths = clew.tensor([1, 3])
    with pytest.raises(ExportError, match=r"another way.*\.reverse\(\)"):
        export(Net(f), (clew.randn(4, 3), lengths), dynamic_shapes=(ROWS[0], {0: Dim("n")}))


def test_the_last_element_is_replaced_in_the_loop():
    def f(x):
        xs, count = [x[0]], clew.zeros(())
        for row in x:
            if row.sum() > 0:
                xs.append(row)
            else:
                xs[-1] = xs[-1] + row * 2
            if row[0] > 0:
                xs[-1] = xs[-1] * 3
            xs[-1] = xs[-1] - 1
            count = 2 * count + len(xs)
        return clew.stack(xs), len(xs), count

    kept(f, (clew.randn(4, 3),), OTHERS, ROWS)


def test_the_last_element_is_replaced_behind_an_append():
    def f(x):
        xs = [x[0, :1]]
        for i in range(x.shape[0]):
            xs.append(x[i, :1])
            xs[-1] = xs[-1] * 2
            if x[i, 0] > 0 and i > 0:
                xs.append(x[:i, 0])
                xs[-1] = clew.cat([xs[-1], x[i, :2]])
        return clew.cat(xs), len(xs)

    kept(f, (clew.randn(4, 3),), OTHERS, ROWS)


def test_the_last_element_of_what_may_be_empty_is_not_assigned():
    def f(x):
        xs = []
        for row in x:
            if row.sum() > 0:
                xs.append(row)
            else:
                xs[-1] = row
        return clew.stack(xs)

    with pytest.raises(ExportError, match="an element is assigned"):
        export(Net(f), (clew.ones(4, 3),), dynamic_shapes=ROWS)


def test_writes_into_elements_that_earlier_rounds_have_appended():
    def last(x):
        xs = [x[0] * 1]
        for i in range(x.shape[0]):
            if x[i].sum() > 0:
                xs.append(x[i] * 2)
            else:
                xs[-1].add_(1)
        return clew.stack(xs)

    def carried(x):
        xs, t = [x[0] * 1], x[0] * 1
        for i in range(x.shape[0]):
            t.view(-1).mul_(2)
            t = x[i] * 2
            if x[i].sum() > 0:
                xs.append(t)
        return clew.stack(xs)

    def within(x):
        xs = []
        for i in range(x.shape[0]):
            t = x[i] * 2
            if x[i].sum() > 0:
                xs.append(t)
            t += 1
        return clew.stack([*xs, x[0]])

    shapes = ({0: B, 1: Dim("c")},)  # with elements of varying size, the list is a copy
    for f in (last, carried):
        with pytest.raises(ExportError, match="written to in a later round"):
            export(Net(f), (clew.randn(4, 3),), dynamic_shapes=shapes)
    module = export(Net(within), (clew.randn(4, 3),), dynamic_shapes=shapes).module()
    for (x,) in [*OTHERS, (clew.randn(5, 2),)]:
        assert clew.equal(module(x), within(x))


def test_a_cache_by_size_is_refused_with_what_to_write():
    cache = {}

    def f(x):
        n = x.shape[0]
        if n not in cache:
            cache[n] = clew.arange(n)
        return x[:, 0] + cache[n]

    with pytest.raises(ExportError, match=r"cache\[n\] = (.|\n)*computed anew in each run"):
        export(Net(f), (clew.randn(4, 3),), dynamic_shapes=ROWS)


def test_a_tensor_of_a_list_that_may_be_empty():
    def f(x):
        out, run = [], 0
        for row in x:
            if row[0] > 0:
                run += 1
            elif run > 0:
                out.append(run)
                run = 0
        if run > 2:
            out.append(run)
        return clew.tensor(out, dtype=clew.int64), len(out)

    kept(f, (clew.randn(4, 3),), [*OTHERS, (-clew.ones(3, 3),), (clew.ones(3, 3),)], ROWS)
