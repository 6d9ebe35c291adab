"""Every operation that docs/export.md lists goes through an ONNX file and gives the same there."""

from __future__ import annotations

import importlib.util
import io
import sys
from pathlib import Path

import numpy as np
import pytest
from export_models import Net

import clew
from clew import nn

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
ROOT = Path(__file__).resolve().parents[2]
PARTS = 24


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("tool", ROOT / "tools/export_coverage.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_list_is_long_enough(tool):
    names = tool.listed(tool.PAGE.read_text(encoding="utf-8"))
    assert len(names) == len(set(names)) >= 425
    table = set(tool.operations())
    assert set(names) <= table and set(tool.APART) <= table
    assert not set(names) & set(tool.APART)
    assert len(names) >= tool.LEAST_SHARE * len(table - set(tool.APART))


@pytest.mark.parametrize(
    "part", [pytest.param(k, marks=[pytest.mark.slow] if k else []) for k in range(PARTS)]
)
def test_the_page_says_which_operations_go(tool, part, monkeypatch, capsys):
    command = ["export_coverage.py", "--check", "--part", f"{part}/{PARTS}"]
    monkeypatch.setattr(sys, "argv", command)
    assert tool.main() == 0, capsys.readouterr().out


def test_the_tool_finds_what_is_wrong(tool, monkeypatch, capsys, tmp_path):
    page = tmp_path / "export.md"
    page.write_text("<!-- operators -->\nlinalg.svd\n<!-- operators -->\n", encoding="utf-8")
    monkeypatch.setattr(tool, "PAGE", page)
    monkeypatch.setattr(sys, "argv", ["export_coverage.py", "--check", "add", "linalg.svd"])
    assert tool.main() == 1
    assert capsys.readouterr().out.count("is out of date") == 2


def through_a_file(function, *args):
    """Compares on other values, too."""
    return clew.onnx.export(lambda *a: function(*a), args)


@pytest.mark.parametrize("keepdim", [False, True])
def test_elements_in_order(keepdim):
    x = clew.tensor([[2.0, 1.0, 2.0, float("nan"), 1.0], [3.0, 3.0, -1.0, 0.0, -1.0]])
    for f in (
        lambda x: x.nanmedian(1, keepdim), lambda x: x.nanmedian(0, keepdim),
        lambda x: x.nan_to_num().mode(1, keepdim), lambda x: x.nan_to_num().mode(0, keepdim),
    ):  # fmt: skip
        through_a_file(f, x)
    through_a_file(lambda x: x.nanmedian(), x)
    through_a_file(lambda x: (x * float("nan")).nanmedian(), x)


def test_running_extremes():
    x = clew.tensor([[2.0, 1.0, 2.0, 5.0, 1.0], [3.0, float("nan"), 9.0, 0.0, -1.0]])
    through_a_file(lambda x: (*x.cummax(1), *x.cummin(-1), *x.cummax(0)), x)
    through_a_file(
        lambda x: (*x.cummax(1), *x.cummin(0)), clew.tensor([[3, 1, 4, 4], [5, 9, 2, 6]])
    )
    low = x.nan_to_num() - float("inf") * (x > 2)
    through_a_file(lambda x: (x.logcumsumexp(1), x.logcumsumexp(0)), low)


def test_a_file_of_a_product_of_blocks():
    made = through_a_file(clew.kron, clew.randn(2, 3), clew.randn(4))
    x, y = clew.randn(2, 3), clew.randn(4)
    (got,) = made(x, y)
    np.testing.assert_allclose(got, np.kron(x.numpy(), y.numpy()), rtol=1e-6)


def test_means_of_nothing_are_nan():
    made = through_a_file(lambda x: x[x > 0].mean(), clew.tensor([1.0, -1.0, 2.0]))
    (got,) = made(clew.tensor([-1.0, -1.0, -2.0]))
    assert np.isnan(got.item())


def test_a_histogram_of_the_data_s_own_range():
    made = through_a_file(lambda x: clew.histc(x, 4), clew.tensor([0.0, 1.0, 2.0, 4.0]))
    for x, counts in (
        ([0.0, 8.0, 7.9, 3.0], [1, 1, 0, 2]),
        ([5.0, 5.0, 5.0, 5.0], [0, 0, 4, 0]),
        ([-1.0, -1.0, 0.0, -0.9], [3, 0, 0, 1]),
    ):
        (got,) = made(clew.tensor(x))
        assert list(got) == counts == clew.histc(clew.tensor(x), 4).tolist()


@pytest.mark.parametrize("digits", [0, 1, 2, 3, 7, -1, -2])
def test_numbers_are_rounded_as_in_python(digits):
    ties = [0.5, 1.5, -2.5, 0.125, 0.375, 0.145, 1.115, 2.675, 1.005, 25.0, 35.0, -150.0, 250.0]
    others = [123456.785, 1e17, -1e300, 0.1 + 0.2, 8.881784197001252e-16]
    for kind, numbers in (
        (clew.float64, [*ties, *others, *(k / 1000 + 0.0005 for k in range(100))]),
        (clew.int64, [*range(-300, 300, 35), 5, 15, 50, 150, 10**12 + 50]),
    ):
        made = through_a_file(lambda x: round(x.item(), digits), clew.tensor(1, dtype=kind))
        for x in numbers:
            (got,) = made(clew.tensor(x, dtype=kind))
            assert got.item() == round(x, digits), x


def test_a_diagonal_of_a_size_that_varies():
    batch = clew.export.Dim("b")
    made = clew.onnx.export(
        Net(lambda x: (x @ x.t()).fill_diagonal_(-1.0)), (clew.randn(3, 2),),
        dynamic_shapes=({0: batch},),
    )  # fmt: skip
    for n in (1, 2, 6):
        x = clew.randn(n, 2)
        (got,) = made(x)
        np.testing.assert_allclose(got, (x @ x.t()).fill_diagonal_(-1.0), rtol=1e-5)


def test_bags_whose_borders_are_inputs():
    layer = nn.EmbeddingBag(9, 3, mode="sum", include_last_offset=True)
    shapes = ({0: clew.export.Dim("n")}, {0: clew.export.Dim("k")})
    ids, edges = clew.arange(6), clew.tensor([0, 2, 6])
    with pytest.warns(UserWarning, match="cannot check"):
        made = clew.onnx.export(layer, (ids, edges), dynamic_shapes=shapes)
    for ids, edges in (([8, 1, 2], [0, 3]), ([1] * 8, [0, 0, 5, 8])):
        ids, edges = clew.tensor(ids), clew.tensor(edges)
        (got,) = made(ids, edges)
        np.testing.assert_allclose(got, layer(ids, edges).detach(), rtol=1e-5)


def test_products_of_three_with_sizes_that_vary_apart():
    a, b, c = (clew.export.Dim(n) for n in "abc")
    model = Net(lambda x, w, y: clew.einsum("bxi,ij,byj->bxy", x, w, y))
    example = clew.randn(2, 4, 5), clew.randn(5, 5), clew.randn(2, 4, 5)
    made = clew.onnx.export(model, example, dynamic_shapes=({0: a, 1: b}, {}, {0: a, 1: c}))
    for n, k, m in ((1, 1, 9), (3, 8, 2)):
        given = clew.randn(n, k, 5), clew.randn(5, 5), clew.randn(n, m, 5)
        np.testing.assert_allclose(made(*given)[0], model(*given), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("corners", [False, True])
def test_sampling_infinitely_far_outside(mode, corners):
    def f(x, places):
        return nn.functional.grid_sample(x, places, mode=mode, align_corners=corners)

    made = through_a_file(f, clew.randn(1, 2, 4, 5), clew.rand(1, 1, 7, 2))
    inf, nan = float("inf"), float("nan")
    places = [[nan, 0], [inf, 0.2], [-1e30, 0.1], [0.1, -inf], [0.3, 0.3], [1.2, -1.3], [3, 3]]
    x, places = clew.randn(1, 2, 4, 5), clew.tensor([[places]])
    np.testing.assert_allclose(made(x, places)[0], f(x, places), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest", "area"])
@pytest.mark.parametrize("how", [
    {"size": (1, 1)}, {"size": (1, 3)}, {"scale_factor": 0.25},
    {"scale_factor": (1.7, 0.3), "recompute_scale_factor": True},
])  # fmt: skip
def test_images_that_become_as_small_as_one_element(mode, how):
    def f(x):
        return nn.functional.interpolate(x, mode=mode, **how)

    height, width = clew.export.Dim("h"), clew.export.Dim("w")
    shapes = ({2: height, 3: width},)
    made = clew.onnx.export(f, (clew.randn(1, 1, 8, 9),), dynamic_shapes=shapes)
    read = clew.onnx.load(io.BytesIO(made.model_proto.SerializeToString()))
    for size in ((4, 5), (7, 13), (10, 6), (5, 4)):
        x = clew.randn(1, 1, *size)
        for got in (made(x)[0], read(x)):
            np.testing.assert_allclose(got, f(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("own", [True, False])
def test_means_of_what_is_scattered(own):
    def f(x, index, source):
        return x.scatter_reduce(1, index, source, "mean", include_self=own)

    a, b = clew.export.Dim("a"), clew.export.Dim("b")
    shapes = ({0: a}, {0: a, 1: b}, {0: a, 1: b})
    index = clew.tensor([[0, 0, 2], [3, 3, 3]])
    made = clew.onnx.export(f, (clew.randn(2, 4), index, clew.randn(2, 3)), dynamic_shapes=shapes)
    x, index, source = clew.randn(1, 4), clew.tensor([[1, 1, 1, 0, 3]]), clew.randn(1, 5)
    np.testing.assert_allclose(made(x, index, source)[0], f(x, index, source), rtol=1e-5)


def test_a_loss_that_checks_its_variance():
    f = nn.functional.gaussian_nll_loss
    x, y, variance = clew.randn(3), clew.randn(3), clew.ones(3)
    with pytest.warns(UserWarning, match="cannot check"):
        made = clew.onnx.export(lambda *a: f(*a), (x, y, variance))
    np.testing.assert_allclose(made(y, x, variance * 2)[0], f(y, x, variance * 2), rtol=1e-5)
