"""Data that decide through Python's own means: kept, checked or refused, and never frozen."""

from __future__ import annotations

import io

import deciding_models as models
import export_models
import pytest
from test_kept_python import agree, kept, leaves

import clew
from clew.export import Dim, ExportError, export, load, save

pytestmark = pytest.mark.filterwarnings("ignore:onnx.export. the program relies")


def inputs():
    clew.manual_seed(5)
    found = []
    for shift in (0.0, 2.0, -2.0, 0.5):
        for k in range(3):
            x = clew.randn(4, 3) + shift
            x[:, k] += 1.5
            found.append(x)
    return found


# All rows are above 0, or below it, so that further examples decide alike; or some are.
EXAMPLES = {
    "above": inputs()[3].abs() + 0.1,
    "below": -inputs()[3].abs() - 0.1,
    "some": inputs()[0],
}


def module(model):
    return model if isinstance(model, clew.nn.Module) else export_models.Net(model)


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("name", [*models.KEPT, *models.SIZED])
def test_kept(name, example):
    model = module({**models.KEPT, **models.SIZED}[name])
    kept(model, (EXAMPLES[example],), [(x,) for x in inputs()])


@pytest.mark.parametrize("name", models.STOPPED)
def test_decided_as_the_example_has_it(name):
    model = module(models.STOPPED[name])
    line = f"{models.__name__}.py:"
    stopped = 0
    for x in (EXAMPLES["above"], inputs()[1]):
        try:
            file = io.BytesIO()
            save(export(model, (x,)), file)
        except ExportError as e:
            assert "decides here in Python" in str(e) or "as many tensors as" in str(e)
            assert line in str(e)
            stopped += 1
            continue
        program = load(io.BytesIO(file.getvalue())).module()
        same = 0
        for other in inputs():
            try:
                got = leaves(program(other))
            except RuntimeError as e:
                assert "was recorded for a case" in str(e)
                stopped += 1
            else:
                agree(leaves(model(other)), got)
                same += 1
        assert same
        pytest.importorskip("onnx")
        with pytest.raises(ExportError, match=f"(?s)decides in Python at .*{line}.*Write `if`"):
            clew.onnx.export(model, (x,))
    assert stopped


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("name", models.REFUSED)
def test_refused_with_the_line(name, example):
    function, match = models.REFUSED[name]
    with pytest.raises(ExportError, match=f"(?s){match}") as caught:
        export(module(function), (EXAMPLES[example],))
    assert "deciding_models.py:" in str(caught.value)


@pytest.mark.parametrize("kind", ["Counting.runs", "Remembering.seen"])
def test_what_a_model_keeps_in_attributes(kind):
    name, _, attribute = kind.partition(".")
    model = getattr(models, name)()
    before = getattr(model, attribute)
    with pytest.raises(ExportError, match=rf"from run to run in {kind}\n.*in place"):
        export(model, (EXAMPLES["some"],))
    assert getattr(model, attribute) is before
    if name == "Remembering":
        assert before == {}


def test_attributes_that_no_run_reads():
    model = models.Noting()
    kept(model, (EXAMPLES["some"],), [(inputs()[1],)])
    assert model.last is not None and len(model.log) == 2  # of the comparison alone


def test_an_index_outside_of_a_list():
    def f(x):
        return x * [1.0, 2.0, 3.0][int(x[0, 0])]

    x = clew.tensor([[1.0, 2.0]])
    program = export(export_models.Net(f), (x,)).module()
    agree([f(-2 * x).numpy()], [program(-2 * x).numpy()])
    for factor in (3, -4):
        with pytest.raises(RuntimeError, match="test_data_decisions.py.*its condition is True"):
            program(factor * x)
    with pytest.raises(IndexError):
        export(export_models.Net(f), (3 * x,))


def test_sizes_decide_no_more_than_data():
    def f(x):
        return x * {"4": 1.0, "8": 2.0}.get(f"{min(x.shape[0], 4)}", 3.0)

    shapes = ({0: Dim("n", min=4)},)
    program = export(export_models.Net(f), (clew.ones(5, 2),), dynamic_shapes=shapes).module()
    assert program(clew.ones(9, 2)).shape == (9, 2)
    pytest.importorskip("onnx")
    with pytest.raises(ExportError, match="a size decides in Python at .*test_data_decisions"):
        clew.onnx.export(export_models.Net(f), (clew.ones(5, 2),), dynamic_shapes=shapes)


def test_functions_that_call_themselves_as_often_as_a_size_says():
    with pytest.raises(ExportError, match=r"how deep a recursion goes, at .*halves"):
        export(
            export_models.Net(halves), (clew.ones(6, 2),),
            dynamic_shapes=({0: Dim("n", min=1)},),
        )  # fmt: skip


def halves(x):
    return x if x.shape[0] < 2 else halves(x[: x.shape[0] // 2])


def test_sizes_in_functions_of_the_library():
    def f(x):
        return clew.einsum("ij,kj->ik", x, x).sum(0), clew.einsum("ij->j", x)

    shapes = ({0: Dim("n", min=1)},)
    kept(
        export_models.Net(f), (clew.randn(4, 3),), [(clew.randn(n, 3),) for n in (2, 3, 7)], shapes
    )


def test_numbers_that_are_printed_decide_nothing(capsys):
    def f(x):
        n = int(x.sum())
        print("sum", n)
        return x * n

    kept(f, (clew.ones(4, 3),), [(clew.ones(4, 3) * 2,)])
    assert "sum 12" in capsys.readouterr().out


def test_an_index_that_is_out_of_range_where_a_branch_is_not_taken():
    def advantages(r, v):
        found, last = clew.zeros_like(r), 0.0
        for t in reversed(range(r.size(0))):
            following = v[t + 1] if t < r.size(0) - 1 else clew.zeros_like(v[0])
            last = r[t] + 0.9 * following - v[t] + 0.8 * last
            found[t] = last
        return found

    def given(n):
        return clew.randn(n, 2), clew.randn(n, 2)

    shapes = ({0: Dim("t")}, {0: Dim("t")})
    kept(advantages, given(4), [given(1), given(2), given(9)], shapes)

    def reduced(tokens, actions):
        stack, top, at = clew.zeros(tokens.size(0) + 1, 3), clew.tensor(0), clew.tensor(0)
        for a in actions:
            if a == 0:
                stack = stack.index_copy(0, top[None], tokens[at][None])
                top, at = top + 1, at + 1
            else:
                both = clew.tanh(stack[top - 2] - stack[top - 1])
                stack, top = stack.index_copy(0, top[None] - 2, both[None]), top - 1
        return stack[0], top

    others = [(clew.randn(1, 3), clew.tensor([0]))]
    others.append((clew.randn(4, 3), clew.tensor([0, 0, 0, 0, 1, 1, 1])))
    shapes = ({0: Dim("n")}, {0: Dim("t")})
    kept(reduced, (clew.randn(3, 3), clew.tensor([0, 0, 1, 0, 1])), others, shapes)
