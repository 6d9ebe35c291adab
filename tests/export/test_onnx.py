"""ONNX files, run by onnxruntime on inputs that the export has not seen."""

from __future__ import annotations

import io

import export_models as models
import numpy as np
import pytest

import clew
from clew import nn
from clew.export import Dim, ExportError

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")


def run(data, inputs):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return session.run(None, dict(zip(names, [x.detach().numpy() for x in inputs])))


def exported(model, example, **more):
    file = io.BytesIO()
    clew.onnx.export(model, example, file, **more)
    return file.getvalue()


def agree(expected, got, tolerance=1e-5):
    expected = expected if isinstance(expected, (tuple, list)) else (expected,)
    assert len(expected) == len(got)
    for a, b in zip(expected, got):
        a = a.detach().numpy() if isinstance(a, clew.Tensor) else np.asarray(a)
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", models.CASES)
def test_models(name):
    case, model, example, unseen = models.make(name)
    data = exported(model, example, dynamic_shapes=case.shapes)
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    module = clew.onnx.load(io.BytesIO(data))
    for inputs in unseen:
        with clew.no_grad():
            expected = model(*[x.clone() for x in inputs])
        agree(expected, run(data, inputs))
        got = module(*inputs)
        agree(expected, [x.detach().numpy() for x in (got if isinstance(got, tuple) else (got,))])


def both(function, example, *others, shapes=None, **more):
    data = exported(models.Net(function), example, dynamic_shapes=shapes, **more)
    for inputs in (example, *others):
        agree(function(*[x.clone() for x in inputs]), run(data, inputs))


def test_writes_into_views_reach_everything_that_shares_them():
    def f(x):
        y = x.clone()
        a, b = y[:, 0], y.t()
        flat = y.view(-1)
        a += 1
        b[1] *= 2
        flat[3] = 7
        y[y > 1] = 1
        y[[0, 1], 2] = 9
        return y, a * 1, b.contiguous(), flat.sum(), y[..., None][:, 1:].squeeze(-1)

    both(f, (clew.randn(3, 4),), (clew.randn(2, 4),), (clew.randn(6, 4),),
         shapes=({0: Dim("b")},))  # fmt: skip


def test_writes_in_branches_and_loops():
    def f(x):
        y = clew.zeros_like(x)
        row = y[0]
        if x.sum() > 0:
            row += x[0]
            if x[0, 0] > 1:
                y[:, 1] = 5
        else:
            y.t()[0].fill_(-1)
        for i in range(1, x.shape[0]):
            y[i] = y[i - 1] + x[i]
        return y, row * 2

    x = clew.ones(3, 3)
    others = [(clew.ones(4, 3) * 2,), (-clew.ones(6, 3),), (x[:1],)]
    both(f, (x,), *others, shapes=({0: Dim("b")},))


def test_indexing():
    i = clew.tensor([0, 2, 1])

    def f(x, k):
        n = x.shape[0]
        return (
            x[k], x[:, k], x[k, k], x[k, :, k], x[:, k, k], x[None, k, None], x[..., -1],
            x[1:n:2, -2:], x[x[:, 0, 0] > 0], x[:, x[0, :, 0] > 0], x[0, k], x[i], x[:, [1, 0]],
            x.flip(0), x.roll(1, 0), x[n - 1], x[k[0]],
        )  # fmt: skip

    others = [(clew.randn(n, 3, 3), clew.tensor(k)) for n, k in ((5, [1, 1]), (3, [2]))]
    both(f, (clew.randn(3, 3, 3), i), *others, shapes=({0: Dim("b")}, {0: Dim("k")}))


def test_names_opset_and_axes():
    model = nn.Linear(3, 2)
    data = exported(
        model, clew.ones(4, 3), input_names=["features"], output_names=["scores"],
        dynamic_axes={"features": {0: "batch"}}, opset_version=18,
    )  # fmt: skip
    loaded = onnx.load_from_string(data)
    assert [i.name for i in loaded.graph.input] == ["features"]
    assert [o.name for o in loaded.graph.output] == ["scores"]
    assert loaded.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert loaded.opset_import[0].version == 18
    assert {t.name for t in loaded.graph.initializer} == {"weight", "bias"}
    agree(model(clew.ones(7, 3)), run(data, [clew.ones(7, 3)]))
    for opset in (7, 1000, "20"):
        with pytest.raises(ExportError, match="opset_version must be from"):
            exported(model, clew.ones(4, 3), opset_version=opset)


def test_what_onnx_lacks_names_operation_and_line():
    with pytest.raises(ExportError, match=r"digamma[\s\S]*test_onnx.py"):
        exported(models.Net(lambda x: clew.digamma(x)), clew.ones(2))
    with pytest.raises(ExportError, match=r"call model.eval"):
        exported(nn.BatchNorm1d(3), clew.randn(4, 3))
    with pytest.raises(ExportError, match=r"external_data must be False"):
        exported(nn.Linear(1, 1), clew.ones(1, 1), external_data=True)


def test_conditions_that_a_file_cannot_check_warn():
    def f(x):
        assert x.shape[0] > 1
        return x * 2

    with pytest.warns(UserWarning, match="cannot check"):
        exported(models.Net(f), clew.ones(4, 3), dynamic_shapes=({0: Dim("b", min=2)},))


def test_program_and_path(tmp_path):
    model = nn.Linear(3, 2)
    program = clew.export.export(model, (clew.ones(4, 3),))
    made = clew.onnx.export(program, f=tmp_path / "m.onnx")
    assert len(made.model_proto.graph.node) >= 1
    loaded = clew.onnx.load(tmp_path / "m.onnx")
    x = clew.randn(4, 3)
    agree(model(x), [loaded(x).detach().numpy()])
    (got,) = made(x)
    agree(model(x), [got.numpy()])
    loaded(x).sum().backward()
    model(x).sum().backward()
    np.testing.assert_allclose(
        dict(loaded.named_parameters())["weight"].grad, model.weight.grad, rtol=1e-6
    )
