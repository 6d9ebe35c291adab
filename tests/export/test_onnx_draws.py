"""Draws, sets and special functions in ONNX files."""

from __future__ import annotations

import math
import warnings

import export_models as models
import numpy as np
import pytest

import clew
from clew import nn
from clew.export import Dim
from clew.onnx import OnnxExporterError

pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
F = nn.functional


def exported(function, example, path, varies=True):
    """A call of onnxruntime and one of our own loader on the file of a function."""
    shapes = {"args": tuple({0: Dim(f"n{k}")} if varies else None for k in range(len(example)))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clew.onnx.export(models.Net(function), example, str(path), dynamic_shapes=shapes)
    session = ort.InferenceSession(str(path))
    names = [i.name for i in session.get_inputs()]

    def runtime(*args):
        return session.run(None, dict(zip(names, (x.numpy() for x in args))))

    loaded = clew.onnx.load(str(path))

    def own(*args):
        got = loaded(*args)
        return [x.numpy() for x in (got if isinstance(got, (tuple, list)) else (got,))]

    return runtime, own


DRAWS = {
    "uniform_": (lambda x: clew.zeros_like(x).uniform_(-2, 4), 1.0, 3.0),
    "normal_": (lambda x: clew.zeros_like(x).normal_(2, 3), 2.0, 9.0),
    "exponential_": (lambda x: clew.zeros_like(x).exponential_(0.5), 2.0, 4.0),
    "random_": (lambda x: clew.zeros_like(x).random_(2, 7), 4.0, 2.0),
    "random_ up to": (lambda x: clew.zeros_like(x).random_(5), 2.0, 2.0),
    "randint": (lambda x: clew.randint(3, 8, (x.shape[0],)) + x * 0, 5.0, 2.0),
    "bernoulli": (lambda x: clew.bernoulli(clew.full_like(x, 0.3)), 0.3, 0.21),
    "bernoulli_": (lambda x: clew.zeros_like(x).bernoulli_(0.7), 0.7, 0.21),
    "normal": (lambda x: clew.normal(x * 0 + 1, clew.full_like(x, 2.0)), 1.0, 4.0),
}

DRAWS["normal of a size"] = (lambda x: clew.normal(3.0, 2.0, (x.shape[0],)) + x * 0, 3.0, 4.0)


@pytest.mark.parametrize("name", DRAWS)
def test_draws_have_their_distribution(name, tmp_path):
    function, mean, variance = DRAWS[name]
    for run in exported(function, (clew.zeros(30),), tmp_path / "m.onnx"):
        (got,) = run(clew.zeros(40_000))
        assert got.shape == (40_000,) and len(np.unique(got[:50])) > 1
        assert abs(got.mean() - mean) < 6 * math.sqrt(variance / 40_000)
        assert abs(got.var() - variance) < 0.1 * variance


@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial(replacement, tmp_path):
    p = clew.tensor([0.5, 0.0, 2.0, 1.5])

    def draw(x):
        return clew.multinomial(x * p, 3 if replacement else 2, replacement)

    for run in exported(draw, (clew.ones(4, 4),), tmp_path / "m.onnx"):
        (got,) = run(clew.ones(20_000, 4))
        assert got.dtype == np.int64 and got.shape == (20_000, 3 if replacement else 2)
        shares = np.bincount(got[:, 0], minlength=4) / 20_000
        np.testing.assert_allclose(shares, [0.125, 0, 0.5, 0.375], atol=0.02)
        assert replacement or (got[:, 0] != got[:, 1]).all()
        assert (got != 1).all()


SETS = {
    "unique": lambda x: clew.unique(x, return_inverse=True, return_counts=True),
    "Tensor.unique": lambda x: x.unique(return_counts=True),
    "unique of rows": lambda x: clew.unique(x, return_inverse=True, return_counts=True, dim=0),
    "unique_consecutive": lambda x: clew.unique_consecutive(
        x.sort(0).values, return_inverse=True, return_counts=True
    ),
    "bincount": lambda x: clew.bincount(x.reshape(-1), minlength=3),
    "bincount, weights": lambda x: clew.bincount(x.reshape(-1), weights=x.reshape(-1) / 2),
    "masked_scatter": lambda x: (x * 1).masked_scatter_(x > 2, x * 10 + 1),
    "cumprod": lambda x: (x.cumprod(0), (x / 2).cumprod(-1)),
}


@pytest.mark.parametrize("name", SETS)
def test_sets_and_running_products(name, tmp_path):
    clew.manual_seed(0)
    function = SETS[name]
    runs = exported(function, (clew.randint(0, 6, (4, 3)),), tmp_path / "m.onnx")
    for n in (4, 9, 1):
        x = clew.randint(0, 6, (n, 3))
        expected = function(x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for run in runs:
            for a, b in zip(expected, run(x), strict=True):
                np.testing.assert_allclose(a.numpy(), b, rtol=1e-6)
                assert a.shape == b.shape


def test_special_functions(tmp_path):
    x = clew.tensor(
        [-3.5, -2.0, -0.7, -0.999, 0.0, 1e-4, 0.3, 0.5, 0.9999, 1.0, 2.0, 7.3, 80.0, math.inf]
    )

    def f(x):
        return clew.lgamma(x), clew.erfinv(x.clamp(-1, 1)), clew.erfinv(x)

    for run in exported(f, (clew.rand(5),), tmp_path / "m.onnx"):
        for a, b in zip(f(x), run(x), strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=2e-6, atol=2e-6)


def test_binary_cross_entropy_with_logits(tmp_path):
    def f(x, y):
        return F.binary_cross_entropy_with_logits(x, y)

    example = clew.randn(4, 2), clew.rand(4, 2)
    for run in exported(f, example, tmp_path / "m.onnx", varies=False):
        x, y = clew.randn(4, 2) * 50, clew.rand(4, 2)
        np.testing.assert_allclose(f(x, y).numpy(), run(x, y)[0], rtol=1e-5)


def test_what_a_file_cannot_draw(tmp_path):
    with pytest.raises(OnnxExporterError, match=r"up to 2\^63"):
        clew.onnx.export(
            models.Net(lambda x: clew.zeros_like(x).random_()),
            (clew.zeros(3, dtype=clew.int64),),
            str(tmp_path / "m.onnx"),
        )
    with pytest.raises(OnnxExporterError, match="erfinv"):
        clew.onnx.export(
            models.Net(clew.erfinv), (clew.rand(3, dtype=clew.float64),), str(tmp_path / "m.onnx")
        )


def test_parameters_and_buffers_of_a_file_are_the_models(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.GELU()).eval()
    clew.onnx.export(model, (clew.randn(2, 3),), str(tmp_path / "m.onnx"))
    loaded = clew.onnx.load(str(tmp_path / "m.onnx"))
    own, found = dict(model.named_parameters()), dict(loaded.named_parameters())
    assert {n: p.shape for n, p in found.items()} == {n: p.shape for n, p in own.items()}
    assert {"1.running_mean", "1.running_var"} <= set(dict(loaded.named_buffers()))


def test_as_many_numbers_as_draws_say():
    """Sampling that stops at a token: each run ends elsewhere, and has tokens of the range."""
    table = clew.nn.Embedding(5, 5)

    def sample(start):
        tokens = start
        for _ in range(6):
            chances = table(tokens[-1:]).softmax(-1)[0]
            tokens = clew.cat([tokens, clew.multinomial(chances, 1)])
            if tokens[-1] == 0:
                break
        return tokens

    made = clew.onnx.export(sample, (clew.tensor([1]),))
    data = made.model_proto.SerializeToString()
    session = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    (given,) = [i.name for i in session.get_inputs()]
    lengths = set()
    for _ in range(40):
        (tokens,) = session.run(None, {given: np.array([1])})
        assert tokens[0] == 1 and 2 <= len(tokens) <= 7 and bool((tokens < 5).all())
        assert len(tokens) == 7 or tokens[-1] == 0
        lengths.add(len(tokens))
    assert len(lengths) > 1


def test_constants_of_a_result_are_told():
    with pytest.warns(UserWarning, match=r"returns the constants \[5\], which are no outputs"):
        made = clew.onnx.export(lambda x: (x * 2, 5), (clew.ones(2),))
    assert len(made.model_proto.graph.output) == 1
