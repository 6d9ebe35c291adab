"""Which Python values stand for ints, bools, numbers and words in arguments, as in PyTorch."""

from __future__ import annotations

import numpy as np
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


@pytest.mark.parametrize(
    "call",
    [
        lambda x: clew.add(x, x, alpha=True),
        lambda x: x.add(1, alpha=False),
        lambda x: x.t().add(x, alpha=True),
        lambda x: clew.sub(x, x, alpha=True),
        lambda x: clew.rsub(x, x, alpha=True),
        lambda x: x.clone().add_(x, alpha=True),
        lambda x: clew.addr(x, x[0], x[0], alpha=True),
    ],
)
@pytest.mark.parametrize("dtype", [clew.float32, clew.bfloat16, clew.complex64, clew.int32])
def test_a_truth_value_is_no_factor_of_numbers(call, dtype):
    with pytest.raises(RuntimeError, match="bool(s are| is) taken for bool results only"):
        call(clew.ones(2, 2, dtype=dtype))
    assert clew.add(clew.tensor([True]), clew.tensor([True]), alpha=True).tolist() == [True]


@pytest.mark.parametrize("factor", [True, 2.0])
def test_shuffles_count_by_ints(factor):
    x = clew.ones(1, 4, 2, 2)
    for shuffle in (F.pixel_shuffle, F.pixel_unshuffle, F.channel_shuffle):
        with pytest.raises(TypeError, match=r"must be int, not (bool|float)"):
            shuffle(x, factor)
    assert tuple(F.pixel_shuffle(x, np.int64(2)).shape) == (1, 1, 4, 4)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: clew.linalg.qr(x, mode=1),
        lambda x: clew.linalg.svd(x, driver=1),
        lambda x: clew.linalg.eigh(x, UPLO=1),
        lambda x: clew.linalg.eigvalsh(x, UPLO=1),
    ],
)
def test_words_are_strings(call):
    with pytest.raises(TypeError, match="must be str, not int"):
        call(clew.eye(2))


@pytest.mark.parametrize(
    "call",
    [
        lambda: clew.ones(2, 2).bool() @ clew.ones(2, 2).bool(),
        lambda: F.max_pool1d(clew.ones(1, 1, 4).bool(), 2),
        lambda: F.conv1d(clew.ones(1, 1, 4).bool(), clew.ones(1, 1, 2).bool()),
        lambda: (
            clew.ones(2).bool().scatter_reduce(0, clew.tensor([0]), clew.ones(1).bool(), "mean")
        ),
        lambda: (
            clew.ones(2).cfloat().scatter_reduce(0, clew.tensor([0]), clew.ones(1).cfloat(), "amax")
        ),
    ],
)
def test_what_a_dtype_has_not_is_not_implemented(call):
    with pytest.raises(NotImplementedError):
        call()


def test_a_tensor_of_one_integer_is_an_int():
    """Of any shape, as in PyTorch, where nothing else takes a tensor."""
    one = clew.tensor([1])
    assert X.sum(one).tolist() == X.sum(1).tolist()
    assert X.topk(one).values.tolist() == X.topk(1).values.tolist()
    assert X.tril(clew.tensor([[-1]])).tolist() == X.tril(-1).tolist()
    assert X.flip(one).tolist() == X.flip(1).tolist()
    assert clew.zeros(clew.tensor([3])).tolist() == [0.0] * 3
    assert clew.eye(clew.tensor([2])).tolist() == clew.eye(2).tolist()
    assert X.flatten()[one].tolist() == [1.0]  # an index stays one
    assert clew.arange(4).tensor_split(one)[0].tolist() == [0]  # as does a tensor of places
    for bad in (clew.tensor([1, 0]), clew.tensor([1.0]), clew.tensor([True])):
        with pytest.raises(TypeError, match="must be"):
            X.topk(bad)


@pytest.mark.parametrize("name", "is_ipu is_maia is_mtia is_vulkan is_xla is_mkldnn".split())
def test_tensors_are_on_no_other_device(name):
    assert getattr(X, name) is False
