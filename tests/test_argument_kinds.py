"""Which Python values stand for ints, bools, numbers and words in arguments, as in PyTorch."""

from __future__ import annotations

import pytest

import clew
from clew.nn import functional as F

X = clew.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "made",
    [
        lambda: clew.zeros((2, True)),
        lambda: clew.zeros(2, True),
        lambda: clew.zeros([clew.tensor(2), True]),
        lambda: clew.Tensor(2, True),
        lambda: clew.full((2, True), 1.0),
        lambda: clew.rand(2, True),
        lambda: X.new_ones(2, True),
        lambda: clew.empty_strided((2, True), (1, True)),
        lambda: clew.zeros(2, 1).expand(2, True),
        lambda: clew.zeros(2).view(2, True),
        lambda: clew.zeros(2).reshape((2, True)),
        lambda: X.sum(1).reshape(2, True),
        lambda: clew.fft.fftn(X, (2, True)),
        lambda: clew.zeros(3).resize_(2, True),
    ],
)
def test_behind_the_first_int_of_a_size_a_bool_counts_as_a_number(made):
    assert made().shape == (2, 1)


def test_and_so_it_does_among_dims():
    assert X.sum((0, True)).item() == 15 and X.permute(0, True).shape == (2, 3)
    assert clew.linalg.matrix_norm(X, "fro", (0, True)).shape == ()
    assert F.pad(X, (1, True)).shape == (2, 5)
    assert [t.shape[0] for t in X.split([1, True])] == [1, 1]


@pytest.mark.parametrize(
    "call",
    [
        lambda: clew.zeros((True, 2)),
        lambda: clew.zeros(True),
        lambda: clew.zeros(2, 1.0),
        lambda: X.sum((True,)),
        lambda: X.view(True, 6),
        lambda: X.permute((True, 0)),
        lambda: X.split((True, 1)),
        lambda: clew.fft.fftn(X, dim=(True, 0)),
        lambda: X.flip(0, 1.0),
        lambda: clew.vander(X[0], True),
        lambda: clew.combinations(X[0], True),
        lambda: clew.cov(X, correction=True),
        lambda: clew.linalg.vander(X, N=True),
        lambda: clew.linalg.tensorinv(clew.eye(4).reshape(4, 2, 2), True),
    ],
)
def test_a_bool_that_stands_first_or_alone_is_no_int(call):
    with pytest.raises(TypeError, match=r"int|sizes"):
        call()


EYE = clew.eye(2)
PIVOTS = clew.tensor([1, 2], dtype=clew.int32)


@pytest.mark.parametrize(
    ("function", "args", "keywords"),
    [
        (clew.linalg.cholesky, [EYE], ["upper"]),
        (clew.linalg.cholesky_ex, [EYE], ["upper", "check_errors"]),
        (clew.linalg.inv_ex, [EYE], ["check_errors"]),
        (clew.linalg.solve, [EYE, EYE], ["left"]),
        (clew.linalg.solve_ex, [EYE, EYE], ["left", "check_errors"]),
        (clew.linalg.solve_triangular, [EYE, EYE], ["upper"]),
        (clew.linalg.svd, [EYE], ["full_matrices"]),
        (clew.linalg.pinv, [EYE], ["hermitian"]),
        (clew.linalg.matrix_rank, [EYE], ["hermitian"]),
        (clew.linalg.lu, [EYE], ["pivot"]),
        (clew.linalg.lu_factor, [EYE], ["pivot"]),
        (clew.linalg.lu_factor_ex, [EYE], ["pivot", "check_errors"]),
        (clew.linalg.lu_solve, [EYE, PIVOTS, EYE], ["left", "adjoint"]),
        (clew.linalg.ldl_factor, [EYE], ["hermitian"]),
        (clew.linalg.ldl_factor_ex, [EYE], ["hermitian", "check_errors"]),
        (clew.linalg.ldl_solve, [EYE, PIVOTS, EYE], ["hermitian"]),
        (clew.cholesky, [EYE], ["upper"]),
        (clew.cholesky_inverse, [EYE], ["upper"]),
        (clew.cholesky_solve, [EYE, EYE], ["upper"]),
        (clew.triangular_solve, [EYE, EYE], ["upper", "transpose", "unitriangular"]),
        (clew.svd, [EYE], ["some", "compute_uv"]),
        (clew.qr, [EYE], ["some"]),
        (clew.lu, [EYE], ["pivot"]),
        (clew.lu_unpack, [EYE, PIVOTS], ["unpack_data", "unpack_pivots"]),
        (clew.ormqr, [EYE, clew.zeros(2), EYE], ["left", "transpose"]),
    ],
)
def test_linear_algebra_takes_no_number_for_a_bool(function, args, keywords):
    for name in keywords:
        function(*args, **{name: True})
        with pytest.raises(TypeError, match=f"'{name}' must be bool, not int"):
            function(*args, **{name: 1})


def test_the_factor_of_integers_is_an_integer():
    a, b = clew.tensor([1, 2]), clew.tensor([3, 4])
    for call in (clew.add, clew.sub, clew.rsub):
        for alpha in (1.0, 1.5):
            with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
                call(a, b, alpha=alpha)
        with pytest.raises(RuntimeError, match="bool"):
            call(a, b, alpha=True)
    with pytest.raises(RuntimeError, match="alpha must not"):
        a.add_(b, alpha=1.0)
    assert a.tolist() == [1, 2]
    assert clew.add(a, 0.5, alpha=2.0).tolist() == [2.0, 3.0]
    assert clew.add(a, b, alpha=3).tolist() == [10, 14]
    truth = clew.tensor([True, False])
    assert clew.add(truth, truth, alpha=True).tolist() == [True, False]


def test_an_empty_word_is_not_none():
    a = clew.tensor([7.0])
    for mode in ("", "ceil"):
        with pytest.raises(RuntimeError, match="rounding_mode"):
            clew.div(a, 2, rounding_mode=mode)
        with pytest.raises(RuntimeError, match="indexing"):
            clew.meshgrid(a, a, indexing=mode)
        with pytest.raises(RuntimeError, match="side"):
            clew.searchsorted(a, a, side=mode)
    assert clew.div(a, 2, rounding_mode=None).item() == 3.5
    assert clew.searchsorted(a, a, side=None).item() == 0


def test_truth_values_have_no_places_in_order():
    truth = clew.tensor([True, False])
    for name, args in (
        ("kthvalue", (1,)),
        ("median", ()),
        ("median", (0,)),
        ("nanmedian", ()),
        ("nanmedian", (0,)),
    ):
        with pytest.raises(NotImplementedError, match="bool"):
            getattr(truth, name)(*args)
    with pytest.raises(RuntimeError, match="bool"):
        truth.topk(1)
    with pytest.raises(NotImplementedError, match="bool"):
        clew.searchsorted(truth, truth)
    with pytest.raises(NotImplementedError, match="bool"):
        clew.bucketize(truth, truth)
    with pytest.raises(NotImplementedError, match="bool"):
        clew.trace(clew.eye(2) > 0)
    assert truth.mode().values.item() is False and truth.sort().values.tolist() == [False, True]
