"""Distances between rows against SciPy, their native gradients against composed ones."""

from __future__ import annotations

import numpy as np
import pytest
from numeric import check_gradients, normal
from scipy.spatial import distance

import clew
from clew._ops.distances import _composed_distances, _composed_own_distances
from clew.nn.functional import pdist

EXACT = "donot_use_mm_for_euclid_dist"


@pytest.mark.parametrize(
    "p,metric",
    [
        (0, "hamming"),
        (1, "cityblock"),
        (2, "euclidean"),
        (3, "minkowski"),
        (float("inf"), "chebyshev"),
    ],
)
def test_distances(p, metric):
    a, b = normal(1, 4, 3), normal(2, 5, 3)
    b[0] = a[0]
    extra = {"p": p} if metric == "minkowski" else {}
    expected = distance.cdist(a, b, metric, **extra) * (3 if p == 0 else 1)
    np.testing.assert_allclose(
        clew.cdist(clew.tensor(a), clew.tensor(b), p).numpy(), expected, atol=1e-7
    )
    batch = clew.cdist(clew.tensor(np.stack([a, a])), clew.tensor(b), p)
    np.testing.assert_allclose(batch.numpy()[1], expected, atol=1e-7)
    pairs = distance.pdist(a, metric, **extra) * (3 if p == 0 else 1)
    np.testing.assert_allclose(pdist(clew.tensor(a), p).numpy(), pairs)
    if p:
        check_gradients(lambda x, y: clew.cdist(x, y, p), a, normal(3, 5, 3))


def test_euclidean_distances_through_products():
    a, b = normal(1, 40, 3), normal(2, 30, 3)
    b[0] = a[0]
    expected = distance.cdist(a, b)
    for mode in (
        "use_mm_for_euclid_dist",
        "use_mm_for_euclid_dist_if_necessary",
        "donot_use_mm_for_euclid_dist",
    ):
        x = clew.tensor(a, requires_grad=True)
        got = clew.cdist(x, clew.tensor(b), compute_mode=mode)
        np.testing.assert_allclose(got.detach().numpy(), expected, atol=1e-7)
    got.sum().backward()
    assert np.isfinite(x.grad.numpy()).all()
    with pytest.raises(ValueError, match="compute_mode"):
        clew.cdist(x, x, compute_mode="maybe")
    with pytest.raises(RuntimeError, match="rows of one size"):
        clew.cdist(clew.ones(2, 3), clew.ones(2, 4))


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0, float("inf"), 0.0])
@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
def test_native_gradients(p, dtype):
    x = clew.tensor(normal(1, 2, 6, 19), dtype=dtype, requires_grad=True)
    y = clew.tensor(normal(2, 2, 5, 19), dtype=dtype, requires_grad=True)
    with clew.no_grad():
        y[0, 1] = x[0, 2]  # a distance of 0
        y[1, :, 3] = x[1, 0, 3]
    g = clew.tensor(normal(3, 2, 6, 5), dtype=dtype)
    got = clew.autograd.grad(clew.cdist(x, y, p, EXACT), (x, y), g)
    want = clew.autograd.grad(_composed_distances(x, y, p), (x, y), g)
    tolerance = 2e-5 if dtype == clew.float32 else 1e-12
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=tolerance, rtol=tolerance)

    rows = x[0].detach().requires_grad_()
    g = clew.tensor(normal(4, 15), dtype=dtype)
    (got,) = clew.autograd.grad(pdist(rows, p), rows, g)
    (want,) = clew.autograd.grad(_composed_own_distances(rows, p), rows, g)
    np.testing.assert_allclose(got.numpy(), want.numpy(), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_second_derivatives(p):
    x = clew.tensor(normal(1, 4, 3), requires_grad=True)
    y = clew.tensor(normal(2, 2, 1, 3), requires_grad=True)
    assert clew.autograd.gradcheck(lambda a, b: clew.cdist(a, b, p, EXACT), (x, y))
    assert clew.autograd.gradgradcheck(lambda a, b: clew.cdist(a, b, p, EXACT), (x, y))
    assert clew.autograd.gradgradcheck(lambda a: pdist(a, p), (x,))
    # One tensor on both sides.
    w = clew.tensor(normal(5, 4, 4))
    assert clew.autograd.gradgradcheck(
        lambda a: (clew.cdist(a, a + 0.0, p, EXACT) * w).tril(-1), (x,)
    )
    twice = clew.autograd.grad((clew.cdist(x, x, p, EXACT) * w).sum(), x, create_graph=True)[0]
    once = clew.autograd.grad((clew.cdist(x, x, p, EXACT) * w).sum(), x)[0]
    np.testing.assert_allclose(twice.detach().numpy(), once.numpy(), atol=1e-12)


def test_distances_out_of_range():
    inf, nan = float("inf"), float("nan")
    x = clew.tensor([[3e30, 0.0, 4e30], [3e-30, 4e-30, 0.0], [inf, 0.0, 0.0], [nan, 1.0, 5.0]])
    zero = clew.zeros(1, 3)
    got = clew.cdist(x, zero, 2.0, EXACT)[:, 0].numpy()
    np.testing.assert_allclose(got, [5e30, 5e-30, inf, nan], rtol=1e-6)
    for p in (0.0, 1.0, 1.5, inf):
        got = clew.cdist(x, zero, p)[:, 0].numpy()
        assert np.isnan(got).tolist() == [False, False, False, True], p
        assert got[2] == (1 if p == 0 else inf)


def test_distances_under_vmap_and_in_other_dtypes():
    x, y = clew.randn(3, 4, 5), clew.randn(3, 6, 5)
    want = clew.stack([clew.cdist(a, b, 3.0) for a, b in zip(x, y, strict=True)])
    got = clew.vmap(lambda a, b: clew.cdist(a, b, 3.0))(x, y)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5)
    half = clew.cdist(x.bfloat16(), y.bfloat16(), 1.0)
    assert half.dtype == clew.bfloat16
    assert clew.cdist(x.double(), y, 1.0).dtype == clew.float64
    assert clew.cdist(x.to("meta"), y.to("meta"), 1.0).shape == (3, 4, 6)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("rows,others,width", [(0, 3, 2), (3, 0, 2), (3, 4, 0), (0, 0, 0)])
@pytest.mark.parametrize("batch", [(), (2,), (0,)])
def test_no_rows_or_no_columns(p, rows, others, width, batch):
    a = clew.ones(*batch, rows, width, requires_grad=True)
    b = clew.ones(*batch, others, width, requires_grad=True)
    out = clew.cdist(a, b, p)
    out.sum().backward()
    assert out.shape == (*batch, rows, others) and not out.detach().any()
    assert a.grad.shape == a.shape and b.grad.shape == b.shape


@pytest.mark.parametrize("mode", ["use_mm_for_euclid_dist", EXACT])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_bad_numbers_show_in_distances(mode, bad):
    a = clew.tensor([[1.0, bad, 2.0], [1.0, 2.0, 3.0]], requires_grad=True)
    out = clew.cdist(a, clew.zeros(1, 3), 2.0, mode)
    out.sum().backward()
    assert not out[0].isfinite().any() and out[1].isfinite().all()
    assert a.grad[0, 1].isnan().all() and a.grad[1].isfinite().all()


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, float("inf")])
def test_gradient_of_a_nan_is_nan(p):
    a = clew.tensor([[1.0, float("nan"), 2.0]], requires_grad=True)
    out = clew.cdist(a, clew.zeros(1, 3), p, EXACT)
    (grad,) = clew.autograd.grad(out.sum(), a)
    assert out.isnan().all() and grad[0, 1].isnan().all()
    assert _composed_distances(a.detach()[None], clew.zeros(1, 1, 3), p).isnan().all()


@pytest.mark.parametrize("form", ["native", "composed"])
def test_every_greatest_difference_has_the_whole_gradient(form):
    a = clew.tensor([[1.0, 2.0, -2.0]], requires_grad=True)
    out = clew.cdist(a, clew.zeros(1, 3), float("inf"))
    (grad,) = clew.autograd.grad(out.sum(), a, create_graph=form == "composed")
    assert grad.tolist() == [[0.0, 1.0, -1.0]]


def test_the_graph_names_the_operation():
    node = pdist(clew.randn(3, 2, requires_grad=True)).grad_fn
    assert type(node).__name__ == "PdistBackward"


@pytest.mark.parametrize("p", [0, 1, 2, float("inf"), 1.5])
@pytest.mark.parametrize("m", [1, 3, 16, 17, 64, 65])
def test_rows_in_blocks(m, p):
    """Short rows are compared a block at a time; blocks are filled up, and pieces begin anew."""
    for rows, others in ((4, 1), (5, 16), (6, 17), (9, 33), (3, 40), (4, 5000 if m > 60 else 100)):
        a, b = normal(rows, rows, m), normal(others + 7, others, m)
        b[-1] = a[0]
        w = normal(3, rows, others)
        found, wanted = [], []
        for made, distances in ((found, clew.cdist), (wanted, _composed_distances)):
            x, y = clew.tensor(a, requires_grad=True), clew.tensor(b, requires_grad=True)
            d = distances(x, y, p, EXACT) if made is found else distances(x[None], y[None], p)[0]
            (d * clew.tensor(w)).sum().backward()
            made += [d.detach(), x.grad, y.grad]
        for got, expected in zip(found, wanted):
            if got is None or expected is None:
                assert p == 0
                continue
            np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-9, atol=1e-9)
        own = pdist(clew.tensor(b[:50]), p)
        np.testing.assert_allclose(
            own.numpy(),
            _composed_own_distances(clew.tensor(b[:50]), p).numpy(),
            rtol=1e-9,
            atol=1e-9,
        )


@pytest.mark.parametrize("p", [1, 2, float("inf")])
def test_rows_in_blocks_with_numbers_at_the_edges(p):
    x, y = np.ones((5, 4), "f4"), np.ones((18, 4), "f4")
    y[3] = np.nan
    y[17] = np.inf
    y[4] = 1 + 1e-30
    y[5] = 3e38
    x[1] = -3e38
    y[6], x[2] = 1e-30, -1e-30
    given = [clew.tensor(v, requires_grad=True) for v in (x, y)]
    d = clew.cdist(given[0], given[1], p, EXACT)
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.abs(x.astype("f8")[:, None] - y.astype("f8"))
        wanted = size.max(-1) if p == float("inf") else (size**p).sum(-1) ** (1 / p)
        np.testing.assert_allclose(d.detach().numpy(), wanted.astype("f4"), rtol=1e-6)
