"""Which Python values stand for ints, bools, numbers and words in arguments, as in PyTorch."""

from __future__ import annotations

import warnings

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


LEAF = clew.ones(2, 3, requires_grad=True)
IMAGE = clew.ones(1, 2, 4, 4)
WINDOW = clew.ones(16)
SPECTRUM = clew.ones(9, 5, dtype=clew.complex64)
CTC = [clew.zeros(3, 1, 2), clew.tensor([[1]]), [3], [1]]
PACKED = clew.nn.utils.rnn.pack_sequence([X])


@pytest.mark.parametrize(
    ("function", "args", "keywords"),
    [
        (F.affine_grid, [clew.ones(1, 2, 3), (1, 1, 2, 2)], ["align_corners"]),
        (F.grid_sample, [IMAGE, clew.zeros(1, 2, 2, 2)], ["align_corners"]),
        (lambda **k: F.interpolate(IMAGE, 3, mode="bilinear", **k), [], ["align_corners"]),
        (F.ctc_loss, CTC, ["zero_infinity"]),
        (F.embedding, [clew.tensor([0]), X], ["sparse"]),
        (
            F.embedding_bag,
            [clew.tensor([0, 1]), X, clew.tensor([0, 2])],
            ["sparse", "include_last_offset"],
        ),
        (F.kl_div, [X, X, None, None, "sum"], ["log_target"]),
        (F.poisson_nll_loss, [X, X], ["log_input", "full"]),
        (F.rrelu, [X], ["training"]),
        (F.instance_norm, [IMAGE, clew.zeros(2), clew.ones(2)], ["use_input_stats"]),
        (F.triplet_margin_loss, [X, X, X], ["swap"]),
        (clew.asarray, [[1.0]], ["copy", "requires_grad"]),
        (clew.normal, [0.0, 1.0, (2,)], ["requires_grad"]),
        (clew.vander, [X[0]], ["increasing"]),
        (clew.empty_permuted, [(2, 3), (1, 0)], ["requires_grad"]),
        (clew.histogram, [X, 3], ["density"]),
        (clew.histogramdd, [X, 3], ["density"]),
        (clew.isin, [X, X], ["assume_unique", "invert"]),
        (clew.quantile, [X, 0.5, 0], ["keepdim"]),
        (clew.nanquantile, [X, 0.5, 0], ["keepdim"]),
        (clew.nonzero, [X], ["as_tuple"]),
        (clew.nuclear_norm, [X], ["keepdim"]),
        (clew.hann_window, [4], ["periodic", "requires_grad"]),
        (clew.fft.fftfreq, [3], ["requires_grad"]),
        (clew.fft.rfftfreq, [3], ["requires_grad"]),
        (
            lambda **k: clew.stft(clew.ones(64), 16, window=WINDOW, **{"return_complex": True} | k),
            [],
            ["normalized", "onesided", "return_complex"],
        ),
        (lambda **k: clew.istft(SPECTRUM, 16, window=WINDOW, **k), [], ["center", "onesided"]),
        (
            clew.sparse_coo_tensor,
            [[[0]], [1.0], (1,)],
            ["requires_grad", "is_coalesced"],
        ),
        (clew.sparse_csr_tensor, [[0, 1], [0], [1.0], (1, 1)], ["requires_grad"]),
        (clew.eye(3).clone().fill_diagonal_, [0.0], ["wrap"]),
        (X.to, [clew.float64], ["copy", "non_blocking"]),
        (X.type, [clew.float64], ["non_blocking"]),
        (clew.nn.Parameter, [X], ["requires_grad"]),
        (clew.nn.utils.rnn.pad_sequence, [[X]], ["batch_first"]),
        (clew.nn.utils.rnn.pad_packed_sequence, [PACKED], ["batch_first"]),
        (clew.nn.utils.rnn.pack_padded_sequence, [clew.ones(1, 1, 1), [1]], ["batch_first"]),
        (clew.autocast, ["cpu"], ["enabled", "cache_enabled"]),
        (lambda **k: clew.autograd.backward(LEAF.sum(), **k), [], ["retain_graph"]),
        (lambda **k: clew.autograd.grad(LEAF.sum(), LEAF, **k), [], ["retain_graph"]),
        (lambda **k: clew.autograd.grad(LEAF.sum(), LEAF, **k), [], ["create_graph"]),
        (lambda **k: clew.autograd.grad(LEAF.sum(), LEAF, **k), [], ["materialize_grads"]),
    ],
)
def test_text_is_no_switch(function, args, keywords):
    """Or "False", read from a command line, would switch it on."""
    for name in keywords:
        function(*args, **{name: True})
        function(*args, **{name: np.True_})
        with pytest.raises(TypeError, match=f"'{name}'.* must be bool, not str"):
            function(*args, **{name: "False"})


@pytest.mark.parametrize("value", ["False", 2, None, [1]])
def test_text_is_no_mode(value):
    for call in (
        clew.set_grad_enabled,
        clew.autograd.set_detect_anomaly,
        clew.set_anomaly_enabled,
        clew.autograd.detect_anomaly,
        clew.use_deterministic_algorithms,
        clew.set_autocast_cache_enabled,
        clew.set_warn_always,
        clew.set_flush_denormal,
        lambda v: clew.set_autocast_enabled("cpu", [] if v is None else v),
    ):
        with pytest.raises(TypeError, match="must be bool, not"):
            call(value)
    assert clew.is_grad_enabled() and not clew.is_anomaly_enabled()
    assert not clew.is_autocast_enabled("cpu") and clew.is_autocast_cache_enabled()


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


def test_numpys_numbers_are_numbers():
    assert clew.nn.LayerNorm(np.int64(3)).normalized_shape == (3,)
    assert clew.nn.RMSNorm(np.int32(3)).normalized_shape == (3,)
    assert clew.nn.LSTM(3, 2, 2, dropout=np.float32(0.5)).dropout == 0.5
    assert F.interpolate(X[None], np.int64(6)).shape == (1, 2, 6)


@pytest.mark.parametrize("size", [2.5, "3", True, clew.tensor(2.5), [2.5], np.float32(2)])
def test_the_size_of_interpolate_is_whole(size):
    with pytest.raises(TypeError, match=r"interpolate\(\): argument 'size' must be int"):
        F.interpolate(X[None], size)


@pytest.mark.parametrize("old", [True, False], ids=["hook", "parametrization"])
def test_the_dim_of_weight_norm(old):
    from clew.nn.utils import parametrizations

    def make(dim):
        normed = clew.nn.utils.weight_norm if old else parametrizations.weight_norm
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            layer = normed(clew.nn.Linear(3, 4), dim=dim)
        return layer.weight_g if old else layer.parametrizations.weight.original0

    assert make(None).shape == make(-1).shape == () and make(np.int64(1)).shape == (1, 3)
    assert make(-2).shape == make(0).shape == (4, 1)
    for dim in (2, -3):
        with pytest.raises(IndexError, match="weight_norm"):
            make(dim)
    for dim in (1.5, True, float("nan"), "0"):
        with pytest.raises(TypeError, match=r"weight_norm\(\): argument 'dim' must be int"):
            make(dim)


def test_normal_takes_tensors_without_dims_with_a_size():
    clew.manual_seed(0)
    expected = clew.normal(1.0, 2.0, (3,))
    clew.manual_seed(0)
    got = clew.normal(clew.tensor(1), clew.tensor(2.0, dtype=clew.float64), (3,))
    assert clew.equal(got, expected)
    for mean in (clew.ones(1), clew.tensor(1.0, requires_grad=True)):
        with pytest.raises(TypeError, match="'mean' must be a number, not a tensor of shape"):
            clew.normal(mean, 1.0, (3,))
    with pytest.raises(RuntimeError, match="-1"):
        clew.normal(0.0, clew.tensor(-1.0), (3,))


NUMBER_PLACES = {
    "add": lambda v: clew.add(X, X, alpha=v),
    "add_": lambda v: X.clone().add_(X, alpha=v),
    "addcmul": lambda v: clew.addcmul(X, X, X, value=v),
    "addmm": lambda v: clew.addmm(X[:, :2], X[:, :2], X[:, :2], beta=v),
    "full": lambda v: clew.full((2,), v),
    "full_like": lambda v: clew.full_like(X, v),
    "new_full": lambda v: X.new_full((2,), v),
    "arange": lambda v: clew.arange(0, 3, v),
    "scalar_tensor": lambda v: clew.scalar_tensor(v),
    "leaky_relu": lambda v: F.leaky_relu(X, v),
    "elu": lambda v: F.elu(X, v),
    "celu": lambda v: clew.celu(X, v),
    "softplus": lambda v: F.softplus(X, v),
    "softshrink": lambda v: F.softshrink(X, v),
    "hardtanh": lambda v: F.hardtanh(X, -1.0, v),
    "threshold": lambda v: F.threshold(X, v, 1.0),
    "dropout": lambda v: F.dropout(X, v),
    "norm": lambda v: clew.norm(X, v),
    "vector_norm": lambda v: clew.linalg.vector_norm(X, v),
    "layer_norm": lambda v: F.layer_norm(X, (3,), eps=v),
    "pad": lambda v: F.pad(X, (1, 1), value=v),
    "nan_to_num": lambda v: clew.nan_to_num(X, nan=v),
    "smooth_l1_loss": lambda v: F.smooth_l1_loss(X, X, beta=v),
    "huber_loss": lambda v: F.huber_loss(X, X, delta=v),
    "label_smoothing": lambda v: F.cross_entropy(X, clew.tensor([0, 1]), label_smoothing=v),
    "attention": lambda v: F.scaled_dot_product_attention(X, X, X, scale=v),
    "normal_": lambda v: X.clone().normal_(v, 1.0),
    "uniform_": lambda v: X.clone().uniform_(0.0, v),
    "isclose": lambda v: clew.isclose(X, X, v),
    "cdist": lambda v: clew.cdist(X, X, v),
    "std": lambda v: clew.std(X, correction=v),
    "logit": lambda v: clew.logit(X, v),
}


@pytest.mark.parametrize("name", NUMBER_PLACES)
def test_a_number_that_wants_a_gradient_is_refused_where_none_would_reach_it(name):
    """It was read as a number, and a slope or a scale that was to be learned stayed as it was."""
    call = NUMBER_PLACES[name]
    learned = clew.tensor(0.5, requires_grad=True)
    for value in (learned, learned * 1.0):
        with pytest.raises(TypeError, match="requires grad|invalid combination|must be"):
            call(value)
    with clew.no_grad(), pytest.raises(TypeError):
        call(learned)
    call(learned.detach())


def test_where_a_gradient_reaches_a_number_it_may_want_one():
    learned = clew.tensor(2.0, requires_grad=True)
    for made in (
        clew.lerp(X, X + 1, learned),
        clew.clamp(X, max=learned),
        X.masked_fill(X > 0, learned),
        clew.where(X > 0, learned, 0),
        X**learned,
        X.clone().fill_(learned),
    ):
        (grad,) = clew.autograd.grad(made.sum(), learned)
        assert grad.shape == ()
