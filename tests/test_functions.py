"""Functions written in Python at the top level and in linalg: values, arguments, errors."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import clew

RNG = np.random.default_rng(0)


def t(a):
    return clew.tensor(np.asarray(a))


def test_unique():
    x = t([[3, 1, 3], [2, 1, 3]])
    values, inverse, counts = clew.unique(x, return_inverse=True, return_counts=True)
    want = np.unique(x.numpy(), return_inverse=True, return_counts=True)
    assert values.tolist() == want[0].tolist()
    assert inverse.tolist() == want[1].reshape(2, 3).tolist()
    assert counts.tolist() == want[2].tolist()
    rows, counts = clew.unique(t([[1, 2], [1, 2], [0, 5]]), dim=0, return_counts=True)
    assert rows.tolist() == [[0, 5], [1, 2]] and counts.tolist() == [1, 2]
    values, inverse = clew.unique_consecutive(t([1, 1, 2, 2, 1]), return_inverse=True)
    assert values.tolist() == [1, 2, 1] and inverse.tolist() == [0, 0, 1, 1, 2]
    assert x.unique().tolist() == [1, 2, 3]


def test_trace_diff_dist():
    a = RNG.normal(size=(4, 5))
    np.testing.assert_allclose(clew.trace(t(a)).item(), np.trace(a))
    for n, dim in ((1, -1), (2, 0), (0, 1), (9, 0)):
        np.testing.assert_allclose(clew.diff(t(a), n, dim).numpy(), np.diff(a, n, dim))
    b = RNG.normal(size=(4, 2))
    np.testing.assert_allclose(
        clew.diff(t(a), prepend=t(b), append=t(b)).numpy(), np.diff(a, prepend=b, append=b)
    )
    assert clew.diff(t([True, False, False])).tolist() == [True, False]
    np.testing.assert_allclose(clew.dist(t(a), t(a + 1), 3).item(), 20 ** (1 / 3))
    with pytest.raises(RuntimeError, match="matrix"):
        clew.trace(clew.ones(3))
    with pytest.raises(RuntimeError, match="one-dimensional"):
        clew.diff(clew.tensor(1))
    with pytest.raises(RuntimeError, match="non-negative"):
        clew.diff(clew.ones(3), -1)


def test_cross_and_vecdot():
    a, b = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3))
    np.testing.assert_allclose(clew.linalg.cross(t(a), t(b)).numpy(), np.cross(a, b))
    np.testing.assert_allclose(clew.cross(t(a.T), t(b.T)).numpy(), np.cross(a, b).T)
    np.testing.assert_allclose(clew.linalg.vecdot(t(a), t(b)).numpy(), (a * b).sum(-1))
    z = a + 1j * b
    np.testing.assert_allclose(clew.linalg.vecdot(t(z), t(z)).numpy(), (np.conj(z) * z).sum(-1))
    out = clew.empty(5, 3, dtype=clew.float64)
    assert clew.linalg.cross(t(a), t(b), out=out) is out
    with pytest.raises(RuntimeError, match="length 3"):
        clew.linalg.cross(clew.ones(2, 4), clew.ones(2, 4))
    with pytest.raises(RuntimeError, match="size 3"):
        clew.cross(clew.ones(2, 4), clew.ones(2, 4))
    x, y = (t(v).requires_grad_() for v in (a[0], b[0]))
    assert clew.autograd.gradcheck(clew.linalg.cross, (x, y))


@pytest.mark.parametrize("order", ["fro", "nuc", 2, -2, 1, -1, float("inf"), float("-inf")])
@pytest.mark.parametrize("keepdim", [False, True])
def test_matrix_norms(order, keepdim):
    a = RNG.normal(size=(2, 3, 4))
    got = clew.linalg.matrix_norm(t(a), order, keepdim=keepdim)
    np.testing.assert_allclose(got.numpy(), np.linalg.norm(a, order, axis=(1, 2), keepdims=keepdim))
    got = clew.linalg.norm(t(a), order, dim=(0, 2), keepdim=keepdim)
    np.testing.assert_allclose(got.numpy(), np.linalg.norm(a, order, axis=(0, 2), keepdims=keepdim))


@pytest.mark.parametrize("order", [None, 0, 1, 2, 3.5, float("inf"), float("-inf")])
def test_vector_norms(order):
    a = RNG.normal(size=(3, 4))
    np.testing.assert_allclose(
        clew.linalg.norm(t(a), order, dim=1).numpy(), np.linalg.norm(a, order, axis=1)
    )
    if order is None:
        np.testing.assert_allclose(clew.linalg.norm(t(a)).item(), np.linalg.norm(a))


def test_nuclear_norm():
    a = RNG.normal(size=(2, 3, 4))
    want = np.linalg.norm(a, "nuc", axis=(0, 2), keepdims=True)
    for got in (
        clew.norm(t(a), "nuc", (0, 2), True),
        t(a).norm("nuc", (0, 2), True),
        clew.nuclear_norm(t(a), (0, 2), True),
    ):
        np.testing.assert_allclose(got.numpy(), want)
    x = t(a).float()
    assert x.norm(2, 1, False, clew.float64).dtype is clew.float64
    assert x[0].norm("nuc", dtype=clew.float64).dtype is clew.float64
    out = clew.empty(0, dtype=clew.float64)
    assert clew.norm(t(a), out=out) is out and clew.norm(t(a[0]), "nuc", out=out) is out
    np.testing.assert_allclose(out.item(), np.linalg.norm(a[0], "nuc"))
    assert clew.nuclear_norm(t(a[0]), True).shape == (1, 1)
    with pytest.raises(RuntimeError, match="2 dimensions"):
        clew.norm(t(a), "nuc")
    with pytest.raises(RuntimeError, match="Low precision"):
        clew.norm(clew.ones(2, 2).half(), "nuc")


def test_norm_errors():
    a = clew.ones(3, 3)
    with pytest.raises(RuntimeError, match="not supported"):
        clew.linalg.matrix_norm(a, 7)
    with pytest.raises(RuntimeError, match="different"):
        clew.linalg.matrix_norm(a, dim=(0, 0))
    with pytest.raises(RuntimeError, match="1D or 2D"):
        clew.linalg.norm(clew.ones(2, 2, 2), 2)
    with pytest.raises(RuntimeError, match="two dims"):
        clew.linalg.norm(a, "fro", dim=1)
    with pytest.raises(AttributeError, match="nearest name is 'norm'"):
        clew.linalg.nrm  # noqa: B018


def test_broadcasting_helpers():
    assert clew.broadcast_shapes((2, 1), (3,), 1) == (2, 3)
    a, b = clew.broadcast_tensors(clew.ones(2, 1), clew.ones(3))
    assert a.shape == b.shape == (2, 3)
    with pytest.raises(RuntimeError, match="cannot be broadcast"):
        clew.broadcast_shapes((2,), (3,))
    with pytest.raises(RuntimeError, match="negative"):
        clew.broadcast_shapes((-2,))


def test_predicates():
    x = clew.ones(2)
    assert clew.is_tensor(x) and not clew.is_tensor(3)
    assert clew.is_storage(x.untyped_storage()) and not clew.is_storage(x)
    assert clew.is_floating_point(x) and not clew.is_complex(x)
    assert clew.is_nonzero(clew.tensor([2])) and clew.numel(x) == 2
    assert clew.equal(x, clew.ones(2)) and not clew.equal(x, clew.ones(3))
    assert clew.allclose(x, x + 1e-9) and not clew.allclose(x, x + 1)
    nan = clew.tensor([float("nan")])
    assert not clew.allclose(nan, nan) and clew.allclose(nan, nan, equal_nan=True)
    assert clew.can_cast(clew.int32, clew.float32) and not clew.can_cast(clew.float32, clew.int32)
    assert clew.typename(x) == "clew.FloatTensor"
    assert clew.detach(x.requires_grad_()).requires_grad is False


def test_default_device():
    x = clew.ones(2)
    with clew.device("meta") as device:
        assert device == clew.device("meta") == clew.get_default_device()
        for made in (clew.zeros(2), clew.tensor([1.0]), clew.arange(3), clew.randn(2), clew.eye(2)):
            assert made.is_meta
        assert clew.nn.Linear(2, 3).weight.is_meta
        assert not clew.zeros(2, device="cpu").is_meta and not clew.zeros_like(x).is_meta
        with clew.device("cpu"):
            assert not clew.zeros(2).is_meta
        assert clew.zeros(2).is_meta
        seen = []
        other = threading.Thread(target=lambda: seen.append(clew.zeros(2).is_meta))
        other.start()
        other.join()
        assert seen == [False]
    with pytest.raises(ZeroDivisionError), clew.device("meta"):
        raise ZeroDivisionError
    assert not clew.zeros(2).is_meta
    clew.set_default_device("meta")
    try:
        assert clew.zeros(2).is_meta
    finally:
        clew.set_default_device(None)
    assert clew.get_default_device() == clew.device("cpu")
    with pytest.raises(RuntimeError, match="left more often"):
        device.__exit__(None, None, None)


@pytest.mark.filterwarnings("ignore:tensor. To copy construct")
def test_tensors_made_of_others_go_to_the_default_device():
    x, array = clew.ones(2), np.ones(2, dtype="float32")
    made = [
        lambda: clew.tensor(x), lambda: clew.as_tensor(x), lambda: clew.asarray(x),
        lambda: clew.as_tensor(array), lambda: clew.asarray(array), lambda: clew.asarray([1.0]),
        lambda: clew.asarray(3),
    ]  # fmt: skip
    kept = [
        lambda: clew.Tensor([1.0]), lambda: clew.from_numpy(array), lambda: clew.ones_like(x),
        lambda: x.new_tensor([1.0]), lambda: clew.tensor(x, device="cpu"),
        lambda: clew.asarray(x, device="cpu"),
    ]  # fmt: skip
    with clew.device("meta"):
        assert [f().is_meta for f in made] == [True] * len(made)
        assert [f().is_meta for f in kept] == [False] * len(kept)
        with pytest.raises(ValueError, match="needs a copy"):
            clew.asarray(x, copy=False)
    assert not any(f().is_meta for f in made)
    assert clew.as_tensor(clew.ones(2, device="meta")).is_meta


def test_variables():
    x = clew.ones(2)
    v = clew.autograd.Variable(x, requires_grad=True)
    assert v.requires_grad and v.is_leaf and v.data_ptr() == x.data_ptr()
    assert isinstance(v, clew.autograd.Variable) and isinstance(x, clew.autograd.Variable)
    assert not isinstance(1, clew.autograd.Variable)
    assert not clew.autograd.Variable(v).requires_grad
    with pytest.raises(TypeError, match="data must be a tensor"):
        clew.autograd.Variable([1.0])


def test_settings_work_or_raise():
    assert clew.are_deterministic_algorithms_enabled()
    for mode, warn_only, level in ((True, False, 2), (True, True, 1), (False, True, 0)):
        clew.use_deterministic_algorithms(mode, warn_only=warn_only)
        assert clew.get_deterministic_debug_mode() == level
        assert clew.is_deterministic_algorithms_warn_only_enabled() is (level == 1)
    assert clew.get_num_interop_threads() == 1
    clew.set_num_interop_threads(2)
    assert clew.get_num_interop_threads() == 2
    clew.set_num_interop_threads(1)
    with pytest.raises(RuntimeError, match="must be positive"):
        clew.set_num_interop_threads(0)
    with pytest.raises(TypeError, match="set_num_interop_threads"):
        clew.set_num_interop_threads("two")
    with pytest.raises(TypeError, match="argument 'mode' must be bool, not int"):
        clew.use_deterministic_algorithms(3)
    assert clew.set_flush_denormal(True) is False
    assert clew.get_float32_matmul_precision() == "highest"
    clew.set_float32_matmul_precision("high")
    with pytest.raises(ValueError):
        clew.set_float32_matmul_precision("low")
    assert clew.get_float32_matmul_precision() == "high"
    assert clew.backends.cuda.matmul.allow_tf32
    clew.backends.cuda.matmul.allow_tf32 = False
    assert clew.get_float32_matmul_precision() == "highest"
    clew.backends.cuda.matmul.allow_tf32 = True
    assert clew.get_float32_matmul_precision() == "high"
    clew.set_float32_matmul_precision("highest")
    assert not clew.backends.cuda.matmul.allow_tf32
    with pytest.raises((NotImplementedError, RuntimeError)):
        clew.set_default_device("cuda")
    clew.set_default_tensor_type("torch.DoubleTensor")
    try:
        assert clew.zeros(1).dtype is clew.float64
    finally:
        clew.set_default_tensor_type("torch.FloatTensor")
    with pytest.raises(TypeError):
        clew.set_default_tensor_type("torch.NoSuchTensor")
    before = clew.get_num_threads()
    clew.set_num_threads(1)
    assert clew.get_num_threads() == 1
    clew.set_num_threads(before)
    with pytest.raises(RuntimeError, match="a positive number of threads"):
        clew.set_num_threads(0)


def test_clone_takes_a_memory_format():
    x = clew.arange(48.0).reshape(1, 3, 4, 4).requires_grad_()
    y = clew.clone(x, memory_format=clew.channels_last)
    assert y.stride() == (48, 1, 12, 3) and clew.equal(x, y) and y.grad_fn is not None
    assert clew.clone(input=y, memory_format=clew.contiguous_format).is_contiguous()
    assert clew.clone(y).stride() == y.stride()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: clew.stack([x, 1]), "found element of type int at pos 1"),
        (lambda x: clew.meshgrid(1, 2), "found element of type int at pos 0"),
        (lambda x: x.sum(dims=1), "unexpected keyword argument 'dims'; its arguments: input, dim"),
        (lambda x: clew.zeros(3, dtyp=1), "'dtyp'; its arguments: size"),
        (lambda x: bool(x), r"got float32\[3, 4\]"),
        (lambda x: clew.nn.Linear(4, 2)(x.double()), r"convert one with .to\(dtype\)"),
        (lambda x: x[x[0]], r"convert with .long\(\)"),
        (lambda x: clew.nn.Sequential(clew.relu), "clew.OpFunction is not a Module"),
        (lambda x: clew.optim.SGD(clew.nn.Linear(2, 2)), "got Linear: pass its .parameters"),
        (lambda x: clew.optim.SGD([x], lr="0.1"), "lr must be a number; got '0.1'"),
        (lambda x: clew.optim.SGD([]), "use nn.ModuleList"),
        (lambda x: clew.nn.MultiheadAttention(5, 2), "got embed_dim=5 and num_heads=2"),
        (lambda x: clew.lstm, "clew does not have it$"),
        (lambda x: clew.sotfmax, "the nearest name is 'softmax'"),
    ],
)
def test_messages_say_what_came_and_what_to_do(call, words):
    with pytest.raises(Exception, match=words):
        call(clew.ones(3, 4))


def test_types_of_operations_and_dtypes_say_where_they_are():
    assert type(clew.relu).__module__ == clew.dtype.__module__ == "clew"
    assert clew.linalg.inv_ex.__module__.startswith("clew.linalg")
    assert clew.relu.__module__ == clew.float32.__module__ == "clew"
    assert clew.typename(clew.relu) == "clew.relu"
    assert clew.typename(print) == "print" and clew.typename([]) == "list"
    assert clew.typename(clew.nn.Identity()) == "clew.nn.modules.linear.Identity"


def test_functions_take_attributes():
    """Programs hang notes on functions, as fastai does: `F.relu.__default_init__ = ...`."""
    import functools

    f = clew.nn.functional.relu
    f.note = [1]
    try:
        assert f.note == [1] and clew.relu_.__name__ == "relu_"
        assert f(t([-1.0, 2.0])).tolist() == [0, 2]
        assert functools.wraps(f)(lambda x: x).__name__ == f.__name__
        with pytest.raises(AttributeError):
            f.missing  # noqa: B018
        with pytest.raises(AttributeError):
            f.signatures = ()
    finally:
        del f.note
    with pytest.raises(AttributeError):
        f.note  # noqa: B018


def test_floor_divide_takes_numbers_first():
    assert clew.floor_divide(5, clew.tensor([2, 3])).tolist() == [2, 1]
    assert clew.floor_divide(5, 3).item() == 1
    assert clew.floor_divide(-7.0, clew.tensor([2])).tolist() == [-4.0]


def test_view_copy_of_memory_that_has_no_such_view():
    x = clew.arange(6).reshape(2, 3).t()
    got = clew.view_copy(x, (2, 3))
    assert got.tolist() == [[0, 3, 1], [4, 2, 5]] and got.is_contiguous()
    with pytest.raises(RuntimeError, match="4"):
        clew.view_copy(x, (4, 2))


def test_cat_keeps_the_history_of_empty_vectors():
    e = clew.empty(0, requires_grad=True)
    for tensors, dim in (
        ([e, clew.ones(3)], 0),
        ([e, clew.ones(2, 3)], 0),
        ([clew.ones(2, 3), e, clew.ones(2, 4)], -1),
    ):
        out = clew.cat(tensors, dim)
        assert out.requires_grad
        (grad,) = clew.autograd.grad(out.sum(), e)
        assert grad.shape == (0,)


@pytest.mark.parametrize("flag", ["False", 0, None])
def test_copy_takes_a_bool_for_non_blocking(flag):
    x = clew.zeros(2)
    with pytest.raises(TypeError, match="argument 'non_blocking' must be bool, not"):
        x.copy_(clew.ones(2), non_blocking=flag)
    with pytest.raises(TypeError, match="argument 'non_blocking' must be bool, not"):
        x.copy_(clew.ones(2), flag)
    assert x.copy_(clew.ones(2), True).tolist() == [1, 1]
