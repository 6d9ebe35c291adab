"""Lists of tensors whose sizes differ or vary, and sequences of different lengths."""

from __future__ import annotations

import functools
import io

import pytest
from export_models import Net
from test_kept_python import agree, kept, leaves

import clew
from clew import nn
from clew.export import Dim, ExportError, export, load, save
from clew.nn import functional as F
from clew.nn.utils import rnn

pytestmark = pytest.mark.filterwarnings("ignore:onnx.export. the program relies")

B, T = Dim("b"), Dim("t")
ROWS = ({0: B}, {0: B})


def counted(*lengths):
    """Rows of 5 x 2, and a number for each."""
    return clew.randn(len(lengths), 5, 2), clew.tensor(lengths)


OTHERS = [counted(4), counted(1, 1, 2, 5), counted(3, 3), counted(2, 1)]


# ---- lists ----


def test_a_list_of_different_sizes():
    def f(x, n):
        parts = []
        for i in range(len(n)):
            k = int(n[i])
            if k > 1:
                parts.append(x[i, :k])
        return clew.cat(parts).sum(0), len(parts), parts[0], parts[-1]

    kept(f, counted(5, 1, 2), OTHERS, ROWS)


def test_what_can_be_done_with_it():
    def f(x, n):
        parts = [x[i, : int(n[i])] for i in range(len(n)) if n[i] > 1]
        total = clew.zeros(2)
        for p in parts:
            total = total + p.mean(0)
        means = clew.stack([p.mean(0) for p in parts])
        left = rnn.pad_sequence(parts, padding_value=-1.0, padding_side="left")
        return total, means, rnn.pad_sequence(parts, batch_first=True), left

    kept(f, counted(5, 1, 2), OTHERS, ROWS)


def test_a_list_that_grows_before_in_and_behind_a_loop():
    def f(x, n):
        parts = [x[0, :1].t()]
        for i in range(n.size(0)):
            p = x[i, : int(n[i])].t()
            parts.append(p)
            if p.sum() > 0:
                parts.append(p * 2)
        parts.append(x[0].t())
        return clew.cat(parts, 1), len(parts), clew.cat([p.flatten() for p in parts])

    kept(f, counted(5, 1, 2), OTHERS, ROWS)


def test_stack_and_cat_need_equal_sizes_as_they_do_in_python():
    def f(x, n):
        return clew.stack([x[i, : int(n[i])] for i in range(len(n))])

    model = Net(f)
    x, n = counted(3, 3)
    module = export(model, (x, n), dynamic_shapes=ROWS).module()
    agree(leaves(model(x, n)), leaves(module(x, n)))
    with pytest.raises(RuntimeError):
        module(*counted(3, 1))


def test_chunks_of_which_the_last_is_shorter():
    def f(x):
        out = []
        for i in range(0, x.size(0), 3):
            out.append(x[i : i + 3].softmax(0))
        return clew.cat(out)

    kept(f, (clew.randn(7, 3),), [(clew.randn(n, 3),) for n in (1, 6, 13)], ({0: B},))


def test_split_by_lengths():
    def f(x, lengths):
        parts = clew.split(x, lengths.tolist())
        sums = clew.stack([p.softmax(0).amax(0) for p in parts])
        return sums, rnn.pad_sequence(parts, batch_first=True)

    def given(*lengths):
        return clew.randn(sum(lengths), 2), clew.tensor(lengths)

    kept(f, given(1, 2, 3), [given(2, 3), given(1, 1, 6, 1), given(4)], ({0: B}, {0: T}))
    module = export(Net(f), given(1, 2, 3), dynamic_shapes=({0: B}, {0: T})).module()
    with pytest.raises(RuntimeError):  # the lengths do not add up to the rows
        module(clew.randn(7, 2), clew.tensor([2, 3]))


def test_rows_that_data_pick_of_each_image():
    def f(scores, boxes):
        out = [b[s > 0.3] for s, b in zip(scores, boxes)]
        return clew.cat(out), clew.tensor([o.shape[0] for o in out])

    def given(n, k):
        return clew.rand(n, k), clew.randn(n, k, 4)

    kept(f, given(2, 6), [given(1, 3), given(3, 9)], ({0: B, 1: T}, {0: B, 1: T}))


# ---- lists that data filter, of tensors whose sizes vary ----


def test_a_batch_that_is_decoded_until_all_have_ended():
    class Greedy(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.cell = nn.Embedding(10, 6), nn.GRUCell(6, 6)
            self.out = nn.Linear(6, 10)

        def forward(self, h, steps: int = 8):
            token = clew.zeros(h.size(0), dtype=clew.long)
            done = clew.zeros(h.size(0), dtype=clew.bool)
            out = []
            for _ in range(steps):
                h = self.cell(self.embed(token), h)
                token = clew.where(done, 0, self.out(h).argmax(-1))
                out.append(token)
                done = done | (token < 4)
                if done.all():
                    break
            return clew.stack(out, 1), done

    clew.manual_seed(1)
    inputs = [(clew.randn(n, 6) * s,) for n in (1, 2, 5) for s in (0.5, 3.0)]
    model = Greedy()
    assert len({model(*x)[0].shape[1] for x in inputs}) > 1
    kept(model, (clew.randn(2, 6),), inputs, ({0: B},))


def test_cat_and_stack_where_only_some_are_there():
    def f(x):
        parts = []
        if x.sum() > 0:
            parts.append(x * 2)
        if x[0].sum() > 0:
            parts.append(x * 3)
        if x[0, 0] > -100:
            parts.append(x)
        return clew.stack(parts).sum(0), clew.cat(parts, 1).shape[1], clew.cat(parts, 1).sum(1)

    inputs = [(clew.randn(n, 3) + s,) for n in (1, 2, 6) for s in (-1.0, 0.0, 1.0)]
    kept(f, (clew.randn(4, 3),), inputs, ({0: B},))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_list_that_one_branch_fills_by_append_and_the_other_by_a_loop(sign):
    def f(x):
        parts = [x[0]]
        if x.sum() > 0:
            parts.append(x[-1])
            for i in range(x.size(0)):
                parts.append(x[i])
        else:
            parts.append(x[-1] * 2)
        parts.append(x[0] * 3)
        return clew.stack(parts).abs().sum(0), len(parts)

    inputs = [(s * clew.randn(n, 2).abs(),) for s in (1, -1) for n in (1, 2, 5)]
    kept(f, (sign * clew.randn(3, 2).abs(),), inputs, ({0: B},))


def test_different_sizes_in_a_branch():
    def f(x, n):
        parts = []
        if x.sum() > 0:
            for i in range(n.size(0)):
                parts.append(x[i, : int(n[i])])
        else:
            parts.append(x[0])
        return clew.cat(parts).abs().sum(0), len(parts)

    inputs = [(s * x.abs(), n) for x, n in OTHERS for s in (1, -1)]
    x, n = counted(5, 1, 2)
    kept(f, (x.abs(), n), inputs, ROWS)


# ---- loops in loops ----


def test_append_in_the_inner_of_two_loops():
    def f(x):
        out = []
        for i in range(x.size(0)):
            for j in range(i + 1, x.size(0)):
                out.append(x[i] * x[j])
        return clew.stack(out), len(out)

    kept(f, (clew.randn(4, 3),), [(clew.randn(n, 3),) for n in (2, 3, 6)], ({0: B},))


def test_append_in_both_loops_and_only_where_data_say():
    def f(x):
        out = [x[0, :1]]
        for i in range(x.size(0)):
            out.append(x[i, :1] * 2)
            for j in range(x.size(1)):
                if x[i, j] > 0:
                    out.append(x[i, : j + 1])
        return clew.cat(out), len(out), out[2]

    inputs = [(clew.randn(n, k),) for n, k in ((2, 5), (3, 2), (6, 4))]
    kept(f, (clew.randn(4, 3),), inputs, ({0: B, 1: T},))


def test_two_lists_of_an_inner_loop():
    def f(x):
        pairs, far = [], []
        for i in range(x.size(0)):
            for j in range(x.size(0)):
                if i != j and (x[i] - x[j]).norm() < 1.5:
                    pairs.append(clew.stack([clew.tensor(i), clew.tensor(j)]))
                    far.append((x[i] - x[j]).norm())
        if len(pairs) == 0:
            return clew.zeros(0, 2, dtype=clew.long), clew.zeros(0)
        return clew.stack(pairs), clew.stack(far)

    inputs = [(clew.randn(n, 2) * s,) for n in (2, 3, 8) for s in (1.0, 50.0)]
    kept(f, (clew.randn(5, 2),), inputs, ({0: B},))


def test_a_list_that_each_round_makes_anew():
    def f(x, n):
        out = []
        for i in range(x.size(0)):
            row = []
            for j in range(int(n[i])):
                row.append(x[i, j] * j)
            out.append(clew.stack(row).sum())
        return clew.stack(out)

    kept(f, counted(5, 1, 2), OTHERS, ROWS)

    def read_later(x, n):
        row = []
        for i in range(x.size(0)):
            row = []
            for j in range(int(n[i])):
                row.append(x[i, j])
        return len(row)

    with pytest.raises(ExportError, match="'row' is another list in each round"):
        export(Net(read_later), counted(5, 1, 2), dynamic_shapes=ROWS)


def test_comprehensions_of_several_for():
    def f(x):
        products = clew.stack([a * b for a in x for b in x if b.sum() > 0])
        return products, [k * x for k in range(3) for _ in range(k)]

    inputs = [(clew.randn(n, 3) + 2,) for n in (1, 2, 6)]
    kept(f, (clew.randn(4, 3) + 2,), inputs, ({0: B},))

    def decided_before(x):
        return [a * b for a in x if a.sum() > 0 for b in x]

    with pytest.raises(ExportError, match="comprehension of several `for`, at .*for a in x if"):
        export(Net(decided_before), (clew.randn(4, 3),), dynamic_shapes=({0: B},))


def test_a_loop_that_only_a_return_ends():
    def f(a):
        x, n = a.clone(), 0
        while True:
            closer = 0.5 * (x + a / x)
            n += 1
            if (closer - x).abs().max() < 1e-6 or n > 30:
                return closer, n
            x = closer

    inputs = [(clew.rand(n) * s + 1,) for n in (1, 2, 6) for s in (0.1, 100.0)]
    kept(f, (clew.rand(3) + 1,), inputs, ({0: B},))


# ---- packed sequences ----


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("batch_first", [True, False])
def test_packed_sequences(kind, batch_first):
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = getattr(nn, kind)(
                3, 4, 2 if batch_first else 1, batch_first=batch_first, bidirectional=batch_first
            )

        def forward(self, x, lengths):
            packed = rnn.pack_padded_sequence(
                x, lengths, batch_first=batch_first, enforce_sorted=not batch_first
            )
            out, last = self.layer(packed)
            return rnn.pad_packed_sequence(out, batch_first=batch_first), last

    def given(lengths, steps):
        if not batch_first:
            lengths = sorted(lengths, reverse=True)
        n = len(lengths)
        return clew.randn(*((n, steps) if batch_first else (steps, n)), 3), clew.tensor(lengths)

    shapes = ({0: B, 1: T}, {0: B}) if batch_first else ({0: T, 1: B}, {0: B})
    inputs = [given(n, 7) for n in ([1], [4, 4], [1, 6, 5, 5], [7, 2])]
    kept(Encoder(), given([3, 5, 2], 5), inputs, shapes)


def test_packed_data_are_changed_and_padded_to_a_given_length():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(9, 3)
            self.layer, self.score = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 1)

        def forward(self, ids, lengths):
            packed = rnn.pack_padded_sequence(
                self.embed(ids), lengths, batch_first=True, enforce_sorted=False
            )
            packed = rnn.PackedSequence(F.relu(packed.data), *packed[1:])
            out, (last, _) = self.layer(packed)
            out, _ = rnn.pad_packed_sequence(out, batch_first=True, total_length=ids.size(1))
            there = clew.arange(ids.size(1))[None] < lengths[:, None]
            weights = self.score(out).squeeze(-1).masked_fill(~there, -1e9).softmax(1)
            return (weights.unsqueeze(-1) * out).sum(1), last[-1]

    def given(lengths, steps):
        return clew.randint(1, 9, (len(lengths), steps)), clew.tensor(lengths)

    inputs = [given(n, 7) for n in ([1], [7, 2], [7, 7, 1, 2])]
    kept(Model(), given([3, 5, 2], 6), inputs, ({0: B, 1: T}, {0: B}))


def test_packed_gradients_and_wrong_lengths():
    layer = nn.GRU(3, 4, batch_first=True)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x, lengths):
            packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            return self.layer(packed)[1]

    x, lengths = clew.randn(3, 5, 3), clew.tensor([3, 5, 2])
    file = io.BytesIO()
    save(export(Model(), (x, lengths), dynamic_shapes=({0: B, 1: T}, {0: B})), file)
    file.seek(0)
    module = load(file).module()
    x, lengths = clew.randn(2, 6, 3), clew.tensor([6, 1])
    want = clew.autograd.grad(Model()(x, lengths).sum(), layer.weight_ih_l0)[0]
    got = clew.autograd.grad(module(x, lengths).sum(), module.layer.weight_ih_l0)[0]
    clew.testing.assert_close(got, want)
    for wrong in ([6, 0], [7, 1]):
        with pytest.raises(RuntimeError, match="recorded for a case"):
            module(x, clew.tensor(wrong))


def test_sequences_of_inputs_are_packed_and_unpacked():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.LSTM(3, 4)

        def forward(self, a, b, c):
            out, _ = self.layer(rnn.pack_sequence([a, b, c], enforce_sorted=False))
            return [u.sum(0) for u in rnn.unpack_sequence(out)], rnn.pad_packed_sequence(out)[0]

    def given(*lengths):
        return tuple(clew.randn(n, 3) for n in lengths)

    shapes = ({0: Dim("k")}, {0: Dim("m")}, {0: Dim("n")})
    model = Model()
    module = export(model, given(3, 5, 2), dynamic_shapes=shapes).module()
    for x in (given(1, 1, 9), given(7, 2, 4), given(2, 2, 2)):
        agree(leaves(model(*x)), leaves(module(*x)))


def test_unpad_sequence_and_pad_sequence_of_inputs():
    def unpadded(x, n):
        return clew.stack([p.mean(0) for p in rnn.unpad_sequence(x, n, batch_first=True)])

    kept(unpadded, counted(5, 1, 2), OTHERS, ROWS)

    def padded(a, b, c):
        return rnn.pad_sequence([a, b, c], batch_first=True, padding_value=-1.0)

    def given(*lengths):
        return tuple(clew.randn(n, 2) for n in lengths)

    shapes = ({0: Dim("k")}, {0: Dim("m")}, {0: Dim("n")})
    kept(padded, given(3, 5, 2), [given(1, 1, 9), given(7, 2, 3), given(2, 2, 2)], shapes)


# ---- which sizes vary, found by trying ----


def traced(model, args, others):
    made = clew.jit.trace(model, args)
    for x in (args, *others):
        agree(leaves(model(*x)), leaves(made(*x)))


def test_sizes_that_are_equal_in_the_example_and_mean_different_things():
    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 4)

        def forward(self, x, mask, labels):
            return F.cross_entropy(self.layer(x) * mask[:, None], labels)

    def given(n):
        return clew.randn(n, 3), clew.ones(n), clew.arange(n) % 4

    traced(Loss(), given(3), [given(1), given(5), given(2)])


def test_a_square_mask_of_a_square_input():
    def given(n, k):
        return clew.randn(n, k), clew.randn(n, k) > 0

    traced(Net(lambda x, m: x.masked_fill(m, 0)), given(3, 3), [given(1, 4), given(5, 2)])


def test_a_batch_that_indexing_would_let_differ():
    def f(x, ids):
        return x.scatter(1, ids, x.gather(1, ids) * 2)

    def given(n, k):
        return clew.randn(n, 8), clew.stack([clew.randperm(8)[:k] for _ in range(n)])

    traced(Net(f), given(2, 3), [given(1, 1), given(3, 5)])


def test_only_the_sizes_that_cannot_vary_are_fixed():
    def f(q, k):  # the number of heads is a Python number
        slopes = clew.tensor([2.0 ** -(i + 1) for i in range(q.size(1))])
        far = clew.arange(k.size(2))[None] - clew.arange(q.size(2))[:, None]
        return (q @ k.mT + slopes[:, None, None] * far).softmax(-1)

    def given(n, length, others):
        return clew.randn(n, 4, length, 3), clew.randn(n, 4, others, 3)

    traced(Net(f), given(2, 5, 6), [given(1, 1, 1), given(1, 7, 2), given(3, 2, 8)])


def test_a_batch_that_stands_in_different_dims():
    class Stream(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.gru = nn.Conv1d(2, 3, 4), nn.GRU(3, 4, batch_first=True)

        def forward(self, x, state):
            x = clew.cat([state["last"], x], -1)
            out, h = self.gru(self.conv(x).transpose(1, 2), state["h"])
            return out, {"last": x[..., -3:], "h": h}

    def given(n, steps):
        return clew.randn(n, 2, steps), {"last": clew.randn(n, 2, 3), "h": clew.randn(1, n, 4)}

    traced(Stream(), given(2, 5), [given(1, 1), given(3, 9)])


def test_a_size_of_one_that_must_stay():
    def f(x, rows):
        return x.expand(rows.size(0), -1, -1) * rows[:, :1, None]

    def given(n, k):
        return clew.randn(1, 2, k), clew.randn(n, 4)

    traced(Net(f), given(2, 5), [given(1, 5), given(5, 3)])


def test_sizes_that_shrink_alone_and_grow_together():
    def f(x, ids):
        return clew.zeros(x.size(0), 7).scatter_add(1, ids, x)

    def given(n, k):
        return clew.randn(n, k), clew.randint(0, 7, (n, k))

    traced(Net(f), given(2, 4), [given(1, 1), given(4, 9)])


# ---- the last element of a list that grows ----


def test_the_last_element_in_a_loop():
    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.GRUCell(3, 4)

        def forward(self, x):
            states = [clew.zeros(x.size(0), 4)]
            for t in range(x.size(1)):
                states.append(self.cell(x[:, t], states[-1]))
            return clew.stack(states[1:], 1), states[-1]

    inputs = [(clew.randn(n, k, 3),) for n, k in ((1, 1), (3, 7))]
    kept(Steps(), (clew.randn(2, 4, 3),), inputs, ({0: B, 1: T},))


def test_the_last_element_that_data_appended():
    def f(x):
        far, before = [x[0]], []
        for row in x:
            before.append(far[-1])
            far.append(far[-1] * 0.5 + row)
            if row[0] > 0:
                far.append(row)
        return clew.stack(far), clew.stack(before)

    inputs = [(clew.randn(n, 2) + s,) for n in (1, 4, 9) for s in (-2, 0, 2)]
    kept(f, (clew.randn(6, 2),), inputs, ({0: B},))


def test_the_last_element_of_another_size_in_each_round():
    def f(x):
        levels = [x]
        while min(levels[-1].shape[-2:]) > 3:
            levels.append(F.avg_pool2d(levels[-1], 2))
        return levels[-1], len(levels)

    shapes = ({2: Dim("h"), 3: Dim("w")},)
    inputs = [(clew.randn(1, 1, *s),) for s in ((3, 9), (40, 33), (6, 7))]
    kept(f, (clew.randn(1, 1, 13, 16),), inputs, shapes)


def test_no_other_element_in_a_loop():
    def f(x):
        out = [x[0]]
        for row in x:
            out.append(out[0] + row)
        return clew.stack(out)

    with pytest.raises(ExportError, match="append.. and the last element are kept there"):
        export(Net(f), (clew.randn(3, 2),), dynamic_shapes=({0: B},))


def test_parts_that_are_as_many_as_a_size_says():
    def f(x):
        parts = clew.stack([p.sum(0) for p in x.split(2)])
        return parts, functools.reduce(lambda a, p: a + p.amax(0), x.split(3), x[0])

    kept(f, (clew.randn(5, 3),), [(clew.randn(n, 3),) for n in (1, 2, 4, 9)], ({0: B},))


def test_reduce_is_a_loop():
    def f(x):
        def step(total, row):
            return total * 0.5 + row if row.sum() > 0 else total - row

        return functools.reduce(step, x, clew.zeros(3)), functools.reduce(step, x)

    inputs = [(clew.randn(n, 3) + s,) for n in (1, 2, 6) for s in (-1, 0, 1)]
    kept(f, (clew.randn(4, 3),), inputs, ({0: B},))


def test_sizes_of_indices_of_triangles():
    def f(x):
        i, j = clew.triu_indices(x.size(0), x.size(1), 1)
        return x[i, j] / i.shape[0], x[i, j].shape[0]

    kept(f, (clew.randn(4, 3),), [(clew.randn(n, 3),) for n in (1, 2, 9)], ({0: B},))


def test_lambdas_that_end_in_parentheses():
    f = lambda x: x * 2 if 0 < x.mean() < 1 else (x if -1 <= x.mean() <= 0 else x * 0)
    inputs = [(clew.full((n, 3), v),) for n in (1, 4) for v in (0.5, -0.5, 2.0)]
    kept(f, (clew.full((2, 3), 0.5),), inputs, ({0: B},))
