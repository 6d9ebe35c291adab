"""Ways of writing Python that exports keep: as a program file and as ONNX, on unseen inputs."""

from __future__ import annotations

import contextlib
import io
import json
import operator

import export_models as models
import numpy as np
import pytest

import clew
from clew import nn
from clew.export import Dim, ExportError, export, load, save
from clew.nn import functional as F

B = Dim("b", min=1)


def leaves(x):
    if isinstance(x, (tuple, list)):
        return [y for part in x for y in leaves(part)]
    if isinstance(x, dict):
        return [y for part in x.values() for y in leaves(part)]
    return [x.detach().numpy() if isinstance(x, clew.Tensor) else x]


def agree(expected, got):
    assert len(expected) == len(got)
    for a, b in zip(expected, got):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def kept(model, example, others, shapes=None):
    """Exports both ways and compares with the model itself."""
    model = model if isinstance(model, nn.Module) else models.Net(model)
    program = export(model, example, dynamic_shapes=shapes)
    file = io.BytesIO()
    save(program, file)
    module = load(io.BytesIO(file.getvalue())).module()
    runs = [lambda xs: leaves(module(*xs))]
    try:
        import onnxruntime
    except ImportError:
        pass
    else:
        made = clew.onnx.export(model, example, dynamic_shapes=shapes)
        data = made.model_proto.SerializeToString()
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        names = [i.name for i in session.get_inputs()]
        given = [i.name for i in made.model_proto.graph.input]
        read = clew.onnx.load(io.BytesIO(data))
        runs.append(
            lambda xs: session.run(
                None, {n: x.numpy() for n, x in zip(given, xs) if n in names}
            )
        )  # fmt: skip
        runs.append(lambda xs: leaves(read(*xs)))
    for inputs in (example, *others):
        with clew.no_grad():
            expected = leaves(model(*[x.clone() for x in inputs]))
            for run in runs:
                agree(expected, run([x.clone() for x in inputs]))


def rows(*counts, shift=0.0):
    return [(clew.randn(n, 3) + s,) for n in counts for s in {shift, -shift}]


EXAMPLE = (clew.ones(4, 3),)
OTHERS = rows(1, 2, 5, 9, shift=1.5)


def check(function):
    kept(function, EXAMPLE, OTHERS, ({0: B},))


# ---- sizes that pass for constants ----


def test_sizes_behind_a_stride_are_no_constants():
    def f(x):
        y = F.conv2d(x, clew.ones(1, 1, 16, 16), stride=16)
        h, w = y.shape[-2:]
        return y.sum((-2, -1)) / (h * w), F.interpolate(y, size=(2 * h, w))

    shapes = ({2: Dim("h", min=16), 3: Dim("w", min=16, max=128)},)
    others = [(clew.randn(1, 1, h, w),) for h, w in ((80, 64), (100, 128), (31, 17))]
    kept(f, (clew.randn(1, 1, 64, 64),), others, shapes)


def test_sizes_that_slices_cut_are_no_constants():
    def f(x):
        first, last = x[:3], x[-2:, ..., :2]
        return first.sum(0) / first.shape[0], last.reshape(-1), last.shape[0] * x[None, 1:3].sum()

    kept(f, (clew.randn(4, 3),), rows(1, 2, 3, 8), ({0: B},))


def test_borders_stay_in_order_in_further_examples():
    def f(x, borders):
        return clew.bucketize(x, borders), clew.searchsorted(borders, x, right=True)

    example = clew.randn(4, 3), clew.tensor([-1.0, 0.0, 0.5])
    others = [(clew.randn(7, 3), clew.tensor([-2.0, -1.0, 0.0, 0.3, 1.0]))]
    kept(f, example, others, ({0: B}, {0: Dim("n", min=1)}))


def test_which_equal_sizes_are_one():
    every = dict.fromkeys(range(4), Dim.AUTO)

    def varying(model, *example):
        shapes = tuple({d: every[d] for d in range(x.dim())} for x in example)
        return export(model, example, dynamic_shapes=shapes).module()

    # A square image has a height and a width; its channels stay.
    conv = varying(nn.Conv2d(3, 2, 3), clew.randn(3, 3, 8, 8))
    assert conv(clew.randn(1, 3, 9, 12)).shape == (1, 2, 7, 10)
    # Time is as long as the features of the example are many.
    linear = varying(nn.Linear(4, 2), clew.randn(4, 2, 4))
    assert linear(clew.randn(7, 1, 4)).shape == (7, 1, 2)
    # Both have one batch, and a matrix that is multiplied with itself is square.
    both = varying(models.Net(lambda x, y: x @ y @ y), clew.randn(5, 4), clew.randn(4, 4))
    assert both(clew.randn(2, 7), clew.randn(7, 7)).shape == (2, 7)
    with pytest.raises(RuntimeError, match="in one input"):
        both(clew.randn(2, 7), clew.randn(7, 6))
    for n in (1, 2):  # sizes of 1 are broadcast, and no reason to let them differ
        added = varying(models.Net(lambda x, y: x + y), clew.randn(n, 3), clew.randn(n, 3))
        assert added(clew.randn(5, 3), clew.randn(5, 3)).shape == (5, 3)


# ---- loops ----


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
def test_variables_that_change_their_kind_in_the_first_round():
    def f(x):
        total, count, scale, acc, h = 0, 0, 1, clew.zeros(()), None
        outs = []
        for row in x:
            total = total + row.sum()
            if row[0] > 0:
                count += 1
            scale *= 1.5
            acc = acc + row
            if h is None:
                h = clew.zeros(3)
            h = clew.tanh(h + row)
            outs.append(h)
        return total, count, scale, acc, h, clew.stack(outs), clew.cat(outs)

    check(f)


def test_the_first_round_is_checked():
    def f(x):
        total = 0
        for row in x:
            total = total + row.sum()
        return total

    module = export(models.Net(f), EXAMPLE, dynamic_shapes=({0: Dim("n")},)).module()
    np.testing.assert_allclose(module(clew.ones(7, 3)), 21)
    with pytest.raises(RuntimeError, match=r"test_kept_python.py.*its condition is True"):
        module(clew.ones(0, 3))


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
def test_the_best_so_far():
    def f(x):
        best = None
        for row in x:
            value = row.max()
            if best is None:
                best = value
            elif value > best:
                best = value
        while best > 1:
            scaled = best * 0.5
            best = scaled
        return best

    check(f)


def test_states_in_lists_and_dicts():
    def f(x):
        states, table, pair = [clew.zeros(3) for _ in range(2)], {"n": 0, "sum": clew.zeros(3)}, [0]
        fresh = [clew.zeros(3), clew.ones(3)]
        for t, row in enumerate(x):
            inner = row
            for i in range(2):
                states[i] = clew.tanh(inner + states[i]) if t > 1 else inner * 2
                inner = states[i]
            table["sum"] = table["sum"] * 0.5 + row
            table["n"] += 1
            pair[0] += 2
            new = []
            for s in fresh:
                new.append(s * 0.5 + row)
            fresh = new
            states[0], states[1] = states[1], states[0]
        if x.sum() > 0:
            states[0] = states[0] + 1
            fresh[1], (count, fresh[0]) = fresh[0], (3, fresh[1])
            pair[0] += count
        return states, table, pair, fresh

    check(f)


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
def test_lists_that_grow_by_addition_and_a_loop_of_one_round():
    def f(x):
        outs, more, total = [], [x[0] * 2], 0.0
        for row in x:
            total = total + row.sum()
            outs += [row * total]
            fresh = []
            fresh += [row, row]
            more.append(fresh[0] + fresh[1])
        return clew.stack(outs), clew.stack(outs, 1), clew.cat(outs), clew.stack(more), sum(outs)

    check(f)


def test_lists_that_grow_in_size():
    def f(x):
        cache = [x[:1], x[:1]]
        for row in x:
            for i in range(2):
                cache[i] = clew.cat([cache[i], row[None] * i])
        return cache

    check(f)


def changes_it(values, row):
    values[0] = values[0] + row.sum()


def test_lists_under_two_names_raise():
    def after(x):
        a = [x.sum()]
        b = a
        for row in x:
            a[0] = a[0] + row.sum()
        return b[0]

    def within(x):
        a, y = [x.sum()], x.sum()
        b = a
        for row in x:
            y = y + b[0]
            a[0] = a[0] + row.sum()
        return y

    def called(x):
        a, y = [x.sum()], x.sum()
        for row in x:
            changes_it(a, row)
            y = y + a[0]
        return y

    def branch(x):
        a = [x.sum()]
        b = a
        if x.sum() > 0:
            a[0] = x.max()
        return b[0]

    def grown(x):
        a = []
        b = a
        for row in x:
            a.append(row)
        return clew.stack(b)

    for f in (after, within, called, branch, grown):
        with pytest.raises(ExportError, match=r"changes inside .* at tests.*through another name"):
            export(models.Net(f), EXAMPLE, dynamic_shapes=({0: B},))


def test_comprehensions_and_builtins_over_rows():
    def f(x):
        ys = clew.stack([row.relu() * 2 for row in x])
        zs = clew.cat([x[i : i + 1] * i + clew.ones(1, 3) for i in range(x.shape[0])])
        pairs = clew.stack([a * b for a, b in zip(x, ys)])
        acc = x.sum()
        for i in reversed(range(x.shape[0])):
            acc = acc * 0.5 + x[i, 0] * i
        for row in reversed(x):
            acc = acc * 0.9 + row[1]
        whole, part = divmod(x.shape[0], 3)
        best = max(x[0, 0], x[0, 1], x[0, 2]), min(x[:, 0]), max(x[:, 1])
        return ys, zs, pairs, acc, sum(x), sum([r * 2 for r in x]), whole * acc, part, best

    check(f)


def test_numbers_of_a_tensor_as_a_list():
    def f(x, lengths):
        outs, start = [], 0
        for n in lengths.tolist():
            outs.append(x[start : start + n].sum(0))
            start = start + n
        return clew.stack(outs)

    def inputs(*lengths):
        return clew.randn(sum(lengths), 3), clew.tensor(lengths)

    shapes = {0: Dim("n")}, {0: Dim("k", min=1)}
    kept(f, inputs(2, 3, 1), [inputs(1, 4), inputs(2, 2, 2, 5), inputs(7)], shapes)


# ---- decisions ----


def test_conditions_of_shapes_and_of_whole_tensors():
    def f(x):
        if clew.equal(x, x.abs()):
            return x + 1
        if clew.allclose(x, -x.abs(), atol=1e-3) and x.shape == (4, 3):
            return x * 2
        if x.shape[0] in (2, 5) or x[0].argmax().item() not in [0, 2]:
            return x * 3
        return x

    others = [*OTHERS, (clew.ones(2, 3),), (-clew.ones(4, 3),), (-clew.ones(5, 3),)]
    kept(f, (clew.randn(4, 3),), others, ({0: B},))


def test_returns_inside_with():
    def f(x):
        with clew.no_grad():
            for i in range(3):
                if x.mean() > 0.2:
                    return x - i
                x = x + 0.3
        return x * 2

    check(f)


def test_returns_inside_with_inside_a_loop():
    def f(x):
        total = x.sum(0) * 0
        for row in x:
            with clew.no_grad(), clew.enable_grad():
                if row.sum() > 1:
                    return row
                total = total + row
            if total.sum() < -9:
                break
        else:
            total = total * 2
        return total

    check(f)


def test_a_name_that_is_deleted_and_a_function_without_a_return():
    def add(y, x):
        if x.sum() > 0:
            y += 1

    def f(x):
        y = x * 2
        if x.sum() > 0:
            z = y + 1
            y = y * z
            del z
        add(y, x)
        return y

    check(f)


def test_for_else_with_break():
    def f(x):
        at = -1
        for i, row in enumerate(x):
            if row.sum() > 0.5:
                at = i
                break
        else:
            return x.sum() - 7
        return x.sum() + at

    check(f)


def test_branches_that_choose_functions_or_strings_say_so():
    def functions(x):
        f = clew.relu if x.sum() > 0 else clew.tanh
        return f(x)

    def strings(x):
        mode = "a" if x.sum() > 0 else "b"
        return x * 2 if mode == "a" else x

    for f, match in ((functions, "the function relu.*the function tanh"), (strings, "string 'a'")):
        with pytest.raises(ExportError, match=match):
            export(models.Net(f), EXAMPLE)


# ---- sizes in functions of the library ----


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.mean = nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x):
        made = clew.distributions.Categorical(logits=self.body(x))
        action = made.probs.argmax(-1)
        normal = clew.distributions.Normal(self.mean(x), clew.ones(2))
        apart = clew.distributions.Independent(normal, 1)
        return action, made.log_prob(action), made.entropy(), apart.log_prob(x[:, :2])


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
def test_distributions():
    kept(Policy().eval(), (clew.randn(5, 3),), rows(1, 2, 9), ({0: B},))


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
def test_functions_that_ask_for_sizes():
    bag = nn.EmbeddingBag(9, 4, mode="max").eval()
    mean = nn.EmbeddingBag(9, 4, mode="mean").eval()

    def f(x, k):
        n = x.shape[0]
        image = x[None, None]
        grid = F.affine_grid(clew.tensor([[[1.0, 0.2, 0.0], [0.1, 0.8, 0.1]]]), image.shape)
        pooled, places = F.max_pool2d(F.pad(image, (0, 3, 0, n)), 2, return_indices=True)
        return (
            F.cosine_similarity(x[:, None], x[None], dim=-1), F.grid_sample(image, grid),
            F.max_unpool2d(pooled, places, 2, output_size=(2 * n, 6)),
            bag(k), mean(k), clew.broadcast_tensors(x, x[:1])[1],
        )  # fmt: skip

    def inputs(n, m):
        return clew.randn(n, 3), clew.randint(0, 9, (n, m))

    kept(f, inputs(4, 5), [inputs(3, 2), inputs(7, 1), inputs(2, 9)], ({0: B}, {0: B, 1: Dim("m")}))


def test_gradients_of_functions_that_have_their_own():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.map = nn.Linear(3, 3)

        def forward(self, x):
            y = self.map(x)
            scores = y[:, None].repeat(1, 2, 1).log_softmax(-1)
            text, lengths = clew.tensor([[1, 2], [1, 1]]), clew.tensor([4, 4])
            return (
                F.pdist(y), F.ctc_loss(scores, text, lengths, clew.tensor([2, 1])),
                clew.cdist(y, y + 1), F.grid_sample(y[None, None], y[None, :, None, :2]),
            )  # fmt: skip

    model, x = Model(), clew.randn(4, 3)
    file = io.BytesIO()
    save(export(model, (x,)), file)
    module = load(io.BytesIO(file.getvalue())).module()
    for a, b in zip(model(x), module(x)):
        expected, *_ = clew.autograd.grad(a.sum(), list(model.parameters()), retain_graph=True)
        got, *_ = clew.autograd.grad(b.sum(), list(module.parameters()), retain_graph=True)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:onnx.export. the program relies")
def test_transformer_with_a_mask_of_its_length():
    model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True).eval()

    def f(source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return model(source, target, tgt_mask=mask)

    def inputs(b, n, m):
        return clew.randn(b, n, 8), clew.randn(b, m, 8)

    shapes = {0: B, 1: Dim("n", min=1)}, {0: B, 1: Dim("m", min=1)}
    kept(f, inputs(2, 5, 4), [inputs(1, 3, 7), inputs(3, 8, 1)], shapes)


@pytest.mark.parametrize("name", ["frexp", "special.modified_bessel_k0", "special.bessel_j0"])
def test_functions_written_in_python_that_an_attribute_holds(name):
    function = operator.attrgetter(name)(clew)

    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.f, self.table, self.make = function, {"f": function}, clew.zeros

        def forward(self, x):
            made = self.make(len(x), 3)
            return self.f(x), self.table["f"](x + 1), made + 1

    program = export(Holder(), (clew.rand(4, 3) + 0.5,), dynamic_shapes=({0: Dim("n")},))
    for n in (2, 7):
        x = clew.rand(n, 3) + 0.5
        agree(leaves(Holder()(x)), leaves(program.module()(x)))


def test_what_only_recording_raises_names_the_line_and_a_way_round():
    def f(x):
        return x * json.loads(json.dumps(x.sum().item()))

    with pytest.raises(
        ExportError, match=r"(?s)cannot be recorded: TypeError: .*JSON.*loads\(json.*operations of"
    ):
        export(models.Net(f), (clew.rand(3),))


def try_an_index(x):
    try:
        y = x[50]
    except IndexError:
        y = x[0]
    return y


def suppress_an_index(x):
    y = x[0]
    with contextlib.suppress(IndexError):
        y = x[50]
    return y


def try_an_element(x):
    rows = [r * 2 for r in x]
    try:
        y = rows[50]
    except Exception:
        y = rows[-1]
    return y


def try_a_shape(x):
    try:
        return x.reshape(-1, 20).sum()
    except RuntimeError:
        return x.sum() * 2


@pytest.mark.parametrize("function", [try_an_index, suppress_an_index, try_an_element, try_a_shape])
def test_exceptions_that_a_varying_size_decides_are_refused(function):
    """All sizes that are compared fail alike: the handler would be the program of all sizes."""
    with pytest.raises(ExportError, match=r"(?s)Error is raised at .*the `try` at.*an `if`"):
        export(models.Net(function), (clew.randn(4, 3),), dynamic_shapes=({0: B},))


def test_exceptions_of_fixed_sizes_may_be_caught():
    kept(try_an_index, (clew.randn(4, 3),), [(clew.randn(4, 3),)])
    kept(try_a_shape, (clew.randn(4, 3),), [(clew.randn(4, 3),)])
