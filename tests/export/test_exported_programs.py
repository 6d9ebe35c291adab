"""Exported programs: what they compute, on inputs that the export has not seen."""

from __future__ import annotations

import io
from pathlib import Path

import export_models as models
import numpy as np
import pytest

import clew
from clew import nn
from clew.export import Dim, ExportError, export, load, save


def parts(result):
    return result if isinstance(result, (tuple, list)) else (result,)


def agree(a, b, tolerance=1e-5):
    a, b = parts(a), parts(b)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        if isinstance(x, clew.Tensor):
            assert x.dtype == y.dtype and x.shape == y.shape
            np.testing.assert_allclose(
                x.detach().numpy(), y.detach().numpy(), rtol=tolerance, atol=tolerance
            )
        else:
            assert x == y


def stored(program):
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    return load(file)


@pytest.mark.parametrize("name", models.CASES)
def test_models_agree_with_eager_on_unseen_sizes(name):
    case, model, example, unseen = models.make(name)
    program = export(model, example, dynamic_shapes=case.shapes)
    text = str(program)
    assert (text.startswith("def forward(") and "models.py:" in text) or name == "mlp"
    module = stored(program).module()
    for inputs in unseen:
        with clew.no_grad():
            agree(model(*[x.clone() for x in inputs]), module(*inputs))


@pytest.mark.parametrize("name", ["mlp", "lstm by hand", "early return", "experts", "flow"])
def test_gradients(name):
    case, model, example, unseen = models.make(name)
    module = stored(export(model, example, dynamic_shapes=case.shapes)).module()
    for inputs in unseen[:4]:
        model.zero_grad()
        module.zero_grad()
        sum(x.sum() for x in parts(model(*inputs))).backward()
        sum(x.sum() for x in parts(module(*inputs))).backward()
        expected = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
        got = {n: p.grad for n, p in module.named_parameters() if p.grad is not None}
        assert expected.keys() == got.keys() and expected
        for n in expected:
            np.testing.assert_allclose(expected[n], got[n], rtol=1e-5, atol=1e-6)


def test_every_branch_is_taken():
    _, model, example, _ = models.make("early return")
    module = export(model, example, dynamic_shapes=({0: Dim("b")},)).module()
    seen = set()
    clew.manual_seed(3)
    for shift in (-3, -1, -0.3, 0.2, 0.5, 2, 4):
        x = clew.randn(4, 3) + shift
        seen.add(1 if x.mean() > 1 else 2 if x.mean() > 0 else 3)
        agree(model(x), module(x))
    assert seen == {1, 2, 3}


class Net(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.w = nn.Parameter(clew.tensor([1.0, 2.0, 3.0]))

    def forward(self, *args):
        return self.function(self, *args)


def both(function, example, *others, shapes=None):
    """Exports a function and compares it with itself on the example and on other inputs."""
    net = Net(function)
    module = stored(export(net, example, dynamic_shapes=shapes)).module()
    for inputs in (example, *others):
        agree(net(*[x.clone() for x in inputs]), module(*[x.clone() for x in inputs]))
    return module


BATCH = {"args": ({0: Dim("b")},)}


def test_writes_and_views():
    def f(self, x):
        y = x.clone()
        y[:, 0] = 5
        y.t()[1].mul_(2)
        view = y.view(-1)
        y += 1
        view[2] -= 3
        first = y.split(1, 1)[2]
        first[0].zero_()
        return y * self.w, view.sum()

    both(f, (clew.randn(3, 3),), (clew.randn(5, 3),), shapes=({0: Dim("b")},))


def test_writes_in_branches_and_loops():
    def f(self, x):
        y = clew.zeros_like(x)
        if x.sum() > 0:
            y[0] = x[0]
        else:
            y[0] = -x[0]
            y = y * 2
        for i in range(1, x.shape[0]):
            y[i] = y[i - 1] + x[i]
        return y

    other = clew.randn(6, 3)
    both(f, (clew.ones(3, 3),), (other,), (-other,), (other[:1],), shapes=({0: Dim("b")},))


def test_nested_loops_and_else():
    def f(self, x):
        total, n = clew.zeros(()), 0
        for row in x:
            for k in range(n, x.shape[1]):
                if row[k] < 0:
                    continue
                if row[k] > 2:
                    break
                total = total + row[k]
            else:
                n += 1
        while n > 0:
            n -= 1
            total = total * 1.5
        else:
            total = total + 1
        return total, n

    shapes = ({0: Dim("b"), 1: Dim("t")},)
    inputs = [(clew.randn(n, t) * 1.5,) for n, t in ((1, 1), (4, 5), (6, 2), (3, 8))]
    both(f, (clew.randn(3, 4),), *inputs, shapes=shapes)


def test_return_inside_a_loop():
    def f(self, x):
        for i in range(x.shape[0]):
            if x[i].sum() > 1:
                return x[i] * 2, i
        return x[0], -1

    inputs = [(clew.full((n, 3), v),) for n, v in ((1, 1.0), (4, -1.0), (5, 0.1))]
    both(f, (clew.randn(3, 3),), *inputs, (clew.tensor([[0.0] * 3, [1.0] * 3]),),
         shapes=({0: Dim("b")},))  # fmt: skip


def test_sizes_in_arithmetic():
    import math

    def f(self, x):
        n, t = x.shape
        half = t // 2
        scale = 1 / math.sqrt(t) if t > 3 else float(n)
        grid = clew.arange(t, dtype=clew.float32) / max(t - 1, 1)
        y = x[:, :half] * scale
        return y.sum(1) + grid.mean(), clew.full((n, 2), t), len(x), min(n, 4)

    inputs = [(clew.randn(n, t),) for n, t in ((1, 2), (6, 9), (5, 3))]
    both(f, (clew.randn(2, 4),), *inputs, shapes=({0: Dim("b"), 1: Dim("t")},))


def test_boolean_operators_and_conditions():
    def f(self, x):
        big = x.max() > 1 and not (x.min() < -1)
        y = x * 2 if big or x.sum() < 0 else x / 2
        if 0 < x[0, 0] < 1:
            y = y + 10
        return y, int(x.sum()), float(x[0, 0])

    inputs = [(clew.full((2, 3), v),) for v in (-2.0, 0.5, 1.5, 3.0)]
    both(f, (clew.randn(2, 3),), *inputs)


def test_buffers_change_as_in_eager():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    before = {k: v.clone() for k, v in model.state_dict().items()}
    module = export(model, (clew.randn(5, 3),), dynamic_shapes=({0: Dim("b")},)).module()
    for k, v in model.state_dict().items():
        assert clew.equal(v, before[k])
    x = clew.randn(7, 3)
    other = stored(export(model, (clew.randn(5, 3),), dynamic_shapes=({0: Dim("b")},))).module()
    agree(model(x), other(x))
    state = other.state_dict()
    for k, v in model.state_dict().items():
        np.testing.assert_allclose(v, state[k], rtol=1e-6)
    assert set(module.state_dict()) == set(state)


# ---- what raises ----


def sums(x):
    for row in (x[0], x[1]):
        yield float(row.sum())


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (lambda self, x: x * next(sums(x)), "makes a Python value of data"),
        (lambda self, x: clew.tensor(x.detach().numpy() * 2), "leave as NumPy"),
        (lambda self, x: x[: int(np.sqrt(len(x)))], "varies"),
    ],
)
def test_what_cannot_be_kept_names_the_line(function, match):
    with pytest.raises(ExportError, match=match) as error:
        export(Net(function), (clew.randn(3, 3),), dynamic_shapes=({0: Dim("b")},))
    assert "test_exported_programs.py:" in str(error.value)


def test_side_effects_in_branches_raise():
    seen = []

    def f(self, x):
        if x.sum() > 0:
            self.count = 1
        return x

    def g(self, x):
        if x.sum() > 0:
            seen.append(x)
        return x

    def h(self, x):
        if x.sum() > 0:
            y = x
        else:
            y = None
        return y

    for function, match in ((f, "attribute 'count'"), (g, "append"), (h, "None")):
        with pytest.raises(ExportError, match=match):
            export(Net(function), (clew.randn(3, 3),))


def test_recursion_by_data_raises():
    def depth(x):
        if x.sum() > 1:
            return depth(x / 2)
        return x

    with pytest.raises(ExportError, match="recursion"):

        def f(self, x):
            return depth(x)

        export(Net(f), (clew.ones(3),))


def test_a_constant_from_data_is_found():
    kept = {}

    def f(self, x):
        kept["x"] = np.asarray(3.0) * len(str(x.shape))
        return x + clew.tensor(float(hash(tuple(x.shape.__repr__())) % 7))

    with pytest.raises(ExportError):
        export(Net(f), (clew.randn(3, 3),), dynamic_shapes=({0: Dim("b")},))


def test_inputs_are_checked():
    batch = Dim("batch")
    program = export(nn.Linear(3, 2), (clew.ones(4, 3),), dynamic_shapes=({0: batch},))
    module = program.module()
    with pytest.raises(RuntimeError, match="size 5 in dim 1.*dynamic_shapes"):
        module(clew.ones(4, 5))
    with pytest.raises(RuntimeError, match="must be float32"):
        module(clew.ones(4, 3, dtype=clew.float64))
    with pytest.raises(TypeError, match="must be a tensor"):
        module(3)
    with pytest.raises(RuntimeError, match="not called"):
        program(clew.ones(4, 3))


def test_dynamic_shapes_forms():
    class Two(nn.Module):
        def forward(self, x, y, *, more=None, scale=2):
            return x * scale + y + (0 if more is None else more["a"])

    batch = Dim("batch", min=2, max=50)
    example = (clew.ones(4, 3), clew.ones(4, 1))
    for shapes in (
        {"x": {0: batch}, "y": {0: batch}},
        ({0: batch}, (batch, None)),
        {"x": (batch, Dim.STATIC), "y": {0: batch}},
        {"x": {0: Dim.AUTO}, "y": {0: Dim.AUTO}},
        {"x": {0: "batch"}, "y": {0: "batch"}},
    ):
        module = export(Two(), example, dynamic_shapes=shapes).module()
        agree(module(clew.ones(9, 3), clew.ones(9, 1)), clew.full((9, 3), 3.0))
    more = {"a": clew.ones(4, 3)}
    program = export(
        Two(), example, {"more": more},
        dynamic_shapes={"x": {0: batch}, "y": {0: batch}, "more": {"a": {0: batch}}},
    )  # fmt: skip
    result = program.module()(clew.ones(9, 3), clew.ones(9, 1), more={"a": clew.ones(9, 3)})
    agree(result, clew.full((9, 3), 4.0))
    assert program.range_constraints == {"batch": (2, 50)}
    for shapes, match in (
        ({"z": {0: batch}}, "no arguments"),
        ({"x": {5: batch}}, "no dim 5"),
        ({"x": {1: 7}}, "has size 3"),
        ({"x": {0: batch}}, "fails for every other size"),
    ):
        with pytest.raises(ExportError, match=match):
            export(Two(), example, dynamic_shapes=shapes)


def test_auto_fixes_what_cannot_vary():
    program = export(nn.Linear(3, 2), (clew.ones(4, 3),), dynamic_shapes=((Dim.AUTO, Dim.AUTO),))
    assert program.module()(clew.ones(7, 3)).shape == (7, 2)
    with pytest.raises(RuntimeError, match="dim 1"):
        program.module()(clew.ones(7, 4))


def test_signature_and_state():
    program = export(nn.BatchNorm1d(2).eval(), (clew.ones(4, 2),))
    signature = program.graph_signature
    assert signature.parameters == ("weight", "bias")
    assert set(signature.buffers) >= {"running_mean", "running_var"}
    assert signature.user_inputs == ("input",) and len(signature.user_outputs) == 1
    assert set(program.state_dict) >= {"weight", "bias", "running_mean", "running_var"}


def test_a_call_may_name_its_arguments_and_is_refused_with_others():
    module = stored(export(Difference(), (clew.ones(2, 3), clew.ones(2, 3)))).module()
    x, y = clew.randn(2, 3), clew.randn(2, 3)
    expected = x - y
    for got in (module(x, y), module(x, y=y), module(y=y, x=x)):
        agree(expected, got)
    for args, kwargs in (
        ((x,), {}),
        ((x, y, y), {}),
        ((x,), {"z": y}),
        ((x, y), {"x": x}),
        ((), {}),
    ):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            module(*args, **kwargs)
    with pytest.raises(TypeError, match="must be a tensor; got NoneType"):
        module(x, None)


class Difference(nn.Module):
    def forward(self, x, y):
        return x - y


def test_sizes_of_one_name_are_compared():
    n = Dim("n")
    shapes = {"x": {0: n}, "y": {0: n}}
    module = stored(
        export(Difference(), (clew.ones(2, 3), clew.ones(2, 3)), dynamic_shapes=shapes)
    ).module()
    agree(clew.zeros(5, 3), module(clew.ones(5, 3), clew.ones(5, 3)))
    with pytest.raises(RuntimeError, match="n is 5 in one input and 1 in dim 0 of input 1"):
        module(clew.ones(5, 3), clew.ones(1, 3))


def test_what_stands_for_no_value_is_made_once():
    def f(self, x):
        for _ in range(2):
            if x.sum() > 100:
                return x * self.w
            x = x + 1
        return x

    module = both(f, (clew.ones(2, 3),), (clew.ones(2, 3) * 20,), (clew.ones(2, 3) * 16,))
    first = module(clew.ones(2, 3))
    first.zero_()
    agree(module(clew.ones(2, 3)), clew.ones(2, 3) * 3)


def test_operators_of_numbers_and_tensors():
    def f(self, x):
        a = x.shape[0] > 2 and x.shape[0] < 5
        if a:
            x = x**2
        if not (x.shape[0] == 4 or x.shape[0] > 6):
            x = x - 1
        y = x.clone()
        y -= 2
        y *= 3
        y /= 2
        y[0] = (x <= 0)[0]
        return (y != 3) & (2 > x), y, 2**x

    example = (clew.randn(3, 3),)
    both(f, example, *((clew.randn(n, 3),) for n in (1, 4, 6, 8)), shapes=BATCH)


def test_shapes_of_nested_arguments_are_checked():
    class Nested(nn.Module):
        def forward(self, pair, table, *more):
            return pair[0] + pair[1] + table["x"] + sum(more)

    x = clew.ones(2, 3)
    n = {0: Dim("n")}
    args = ((x, x), {"x": x}, x, x)
    module = export(
        Nested(), args, dynamic_shapes={"pair": (n, n), "table": {"x": n}, "more": (n, n)}
    ).module()
    y = clew.ones(5, 3)
    agree(module((y, y), {"x": y}, y, y), y * 5)
    for shapes, match in (
        ({"pair": n}, "pair has 2 elements and needs a tuple"),
        ({"table": {"y": n}}, "table is a dict of"),
        ({"table": (n,)}, "table is a dict of"),
        ({"more": (n,)}, "more needs a tuple of 2 entries"),
        ({"rest": (n, n)}, "are no arguments"),
    ):
        with pytest.raises(ExportError, match=match):
            export(Nested(), args, dynamic_shapes=shapes)


def test_the_page_has_a_row_for_each_model():
    page = Path(__file__).resolve().parents[2] / "docs" / "export.md"
    rows = page.read_text(encoding="utf-8").split("<!-- who exports what -->")[1].splitlines()
    cells = [[c.strip() for c in r.strip("|").split("|")] for r in rows if r.startswith("| ")][1:]
    assert [c[0] for c in cells] == list(models.CASES)
    for name, *parts in cells:
        seconds = [float(p.removeprefix("ok, ").removesuffix(" s")) for p in parts[:2]]
        assert max(seconds) < 1, name


def test_einsum_takes_a_batch_of_one():
    """Whether a size is 1 was asked at export, so the program refused such a batch."""

    class Products(nn.Module):
        def forward(self, x, y):
            return clew.einsum("bi,ij->bj", x, y), clew.einsum(
                "bij,bjk->bik", x[:, None], x[..., None]
            )

    model, y = Products(), clew.randn(4, 5)
    shapes = ({0: clew.export.Dim("b")}, None)
    program = clew.export.export(model, (clew.randn(3, 4), y), dynamic_shapes=shapes)
    for n in (1, 2, 7):
        x = clew.randn(n, 4)
        for got, want in zip(program.module()(x, y), model(x, y), strict=True):
            clew.testing.assert_close(got, want)


@pytest.mark.parametrize(
    "made",
    [
        lambda: clew.eye(4).to_sparse(),
        lambda: clew.eye(4).to_sparse_csr(),
        lambda: clew.nested.nested_tensor([clew.ones(2, 4), clew.ones(3, 4)]),
    ],
    ids="coo csr ragged".split(),
)
def test_sparse_and_ragged_arguments_are_refused(made):
    with pytest.raises(ExportError, match="export: arguments must be dense tensors; got one of"):
        export(nn.Linear(4, 2), (made(),))
    with pytest.raises(ExportError, match="export: arguments must be dense tensors; got one of"):
        clew.jit.trace(nn.Linear(4, 2), (made(),))
