"""Functions that make tensors of a size or like others: shapes, dtypes, values, bad input."""

import math

import numpy as np
import pytest

import clew
from computed_dtypes import DTYPES

BY_SIZE = [clew.zeros, clew.ones, clew.empty, clew.rand, clew.randn]
LIKE = [clew.zeros_like, clew.ones_like, clew.empty_like, clew.rand_like, clew.randn_like]


@pytest.fixture
def double_default():
    clew.set_default_dtype(clew.float64)
    yield
    clew.set_default_dtype(clew.float32)


# ---- by size ----


@pytest.mark.parametrize("make", BY_SIZE)
@pytest.mark.parametrize(
    ("args", "shape"),
    [
        ((2, 3), (2, 3)),
        (((2, 3),), (2, 3)),
        (([2, 3],), (2, 3)),
        ((clew.Size([4]),), (4,)),
        ((5,), (5,)),
        (((),), ()),
        (([],), ()),
        ((0,), (0,)),
        ((2, 0, 3), (2, 0, 3)),
        ((np.int64(2), np.int32(3)), (2, 3)),
        ((clew.tensor(2), 3), (2, 3)),
        (((clew.tensor(2), np.int8(1)),), (2, 1)),
    ],
)
def test_sizes(make, args, shape):
    t = make(*args)
    assert t.shape == shape
    assert t.dtype is clew.float32
    assert t.device.type == "cpu"
    assert t.is_contiguous()
    assert not t.requires_grad
    assert make(size=shape).shape == shape


@pytest.mark.parametrize("make", BY_SIZE)
@pytest.mark.parametrize(
    ("args", "kwargs", "error"),
    [
        ((), {}, TypeError),
        ((2.5,), {}, TypeError),
        (("a",), {}, TypeError),
        ((True,), {}, TypeError),
        ((None,), {}, TypeError),
        (((2, 2.5),), {}, TypeError),
        ((2, "a"), {}, TypeError),
        ((-1,), {}, RuntimeError),
        (((3, -2),), {}, RuntimeError),
        ((2,), {"size": (2,)}, TypeError),
        ((2,), {"dtype": "float32"}, TypeError),
        ((2,), {"dtype": np.float32}, TypeError),
        ((2,), {"device": 1.5}, TypeError),
        ((2,), {"device": "cuda"}, RuntimeError),
        ((2,), {"device": "nowhere"}, RuntimeError),
        ((2,), {"requires_grad": 1}, TypeError),
        ((2,), {"pin_memory": True}, RuntimeError),
        ((2,), {"layout": "sparse"}, RuntimeError),
        ((2,), {"out": [1]}, TypeError),
        ((2,), {"nonsense": 1}, TypeError),
        ((2**31, 2**31, 2**31), {}, RuntimeError),
        ((2**62,), {}, RuntimeError),
        ((2**44,), {}, RuntimeError),
        ((10**30,), {}, (RuntimeError, OverflowError, TypeError)),
        ((1,) * 65, {}, RuntimeError),
    ],
)
def test_bad_arguments(make, args, kwargs, error):
    with pytest.raises(error):
        make(*args, **kwargs)


def test_options():
    t = clew.zeros(
        2,
        dtype=clew.float64,
        device="cpu",
        requires_grad=True,
        layout=clew.strided,
        pin_memory=False,
    )
    assert t.dtype is clew.float64 and t.requires_grad and t.is_leaf
    assert clew.zeros(2, dtype=None, device=None, layout=None).dtype is clew.float32
    assert clew.zeros(2, dtype=float).dtype is clew.float64
    assert clew.zeros(2, dtype=int).dtype is clew.int64
    assert clew.zeros(2, device=clew.device("cpu")).device == clew.device("cpu")
    with pytest.raises(RuntimeError, match="floating point and complex"):
        clew.zeros(2, dtype=clew.int64, requires_grad=True)
    assert clew.ones(2, dtype=clew.complex64, requires_grad=True).requires_grad


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_and_ones_in_every_dtype(dtype):
    assert clew.zeros(3, dtype=dtype).tolist() == [0, 0, 0]
    assert clew.ones(3, dtype=dtype).tolist() == [1, 1, 1]
    assert clew.full((2,), 1, dtype=dtype).tolist() == [1, 1]
    assert clew.eye(2, dtype=dtype).tolist() == [[1, 0], [0, 1]]


def test_default_dtype(double_default):
    for make in BY_SIZE:
        assert make(2).dtype is clew.float64
    assert clew.tensor(1.5).dtype is clew.float64
    assert clew.tensor(1j).dtype is clew.complex128
    assert clew.full((1,), 2.0).dtype is clew.float64
    assert clew.arange(1.0).dtype is clew.float64


def test_meta():
    for make in BY_SIZE:
        t = make(2, 3, device="meta")
        assert t.is_meta and t.shape == (2, 3)
    for t in (
        clew.full((2,), 1, device="meta"),
        clew.arange(3, device="meta"),
        clew.eye(3, device="meta"),
        clew.linspace(0, 1, 3, device="meta"),
        clew.tensor([1, 2], device="meta"),
        clew.tril_indices(3, 3, device="meta"),
    ):
        assert t.is_meta


def test_out():
    out = clew.empty(0)
    assert clew.zeros(2, 3, out=out) is out
    assert out.shape == (2, 3)
    version = out._version
    clew.ones(2, 3, out=out)
    assert out.tolist() == [[1, 1, 1]] * 2 and out._version > version
    clew.zeros(4, out=out)
    assert out.shape == (4,)
    with pytest.raises(RuntimeError, match="does not match dtype of out"):
        clew.zeros(4, out=out, dtype=clew.int64)
    whole = clew.empty(3, dtype=clew.int64)
    assert clew.arange(3, out=whole) is whole and whole.tolist() == [0, 1, 2]
    assert clew.full((3,), 7, out=whole).tolist() == [7, 7, 7]
    leaf = clew.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="but out requires grad"):
        clew.zeros(2, out=leaf)


def test_memory_formats():
    t = clew.empty(2, 3, 4, 5, memory_format=clew.channels_last)
    assert t.stride() == (60, 1, 15, 3)
    assert clew.zeros_like(t).stride() == t.stride()
    assert clew.ones_like(t, memory_format=clew.contiguous_format).is_contiguous()
    assert clew.empty(2, 3, 2, 2, 2, memory_format=clew.channels_last_3d).stride()[1] == 1
    with pytest.raises(RuntimeError, match="rank 4"):
        clew.empty(2, 3, memory_format=clew.channels_last)
    with pytest.raises(TypeError):
        clew.empty(2, memory_format="rows")


def test_inference_mode_marks_what_it_makes():
    with clew.inference_mode():
        assert clew.zeros(2).is_inference()
        assert clew.tensor([1.0]).is_inference()
    assert not clew.zeros(2).is_inference()


# ---- like, new_ ----


@pytest.mark.parametrize("make", LIKE)
def test_like(make):
    x = clew.ones(2, 3, dtype=clew.float64, requires_grad=True)
    t = make(x)
    assert t.shape == (2, 3) and t.dtype is clew.float64 and not t.requires_grad
    t = make(x, dtype=clew.float32, device="meta", requires_grad=True)
    assert t.dtype is clew.float32 and t.is_meta and t.requires_grad
    assert make(x.t()).stride() == x.t().stride()
    assert make(x[:, ::2]).is_contiguous()
    assert make(x.expand(4, 2, 3)).shape == (4, 2, 3)
    assert make(input=x).shape == (2, 3)
    for bad in ((), (3,), (x, 2)):
        with pytest.raises(TypeError):
            make(*bad)


def test_values_of_like_functions():
    x = clew.empty(2, 2, dtype=clew.int32)
    assert clew.zeros_like(x).tolist() == [[0, 0], [0, 0]]
    assert clew.ones_like(x, dtype=clew.bool).tolist() == [[True, True]] * 2
    assert clew.full_like(x, 7).tolist() == [[7, 7]] * 2
    assert clew.full_like(x, 2.9).tolist() == [[2, 2]] * 2
    assert clew.full_like(x, 2.5, dtype=clew.float32).tolist() == [[2.5, 2.5]] * 2
    with pytest.raises(RuntimeError, match="complex value"):
        clew.full_like(x, 1j)
    r = clew.randint_like(x, 3, 6)
    assert r.dtype is clew.int32 and set(np.ravel(r.tolist())) <= {3, 4, 5}
    assert set(np.ravel(clew.randint_like(x, high=2).tolist())) <= {0, 1}


def test_new_methods():
    x = clew.ones(1, dtype=clew.int16)
    assert x.new_zeros(2, 3).tolist() == [[0] * 3] * 2
    assert x.new_ones((2,)).dtype is clew.int16
    assert x.new_empty([2, 2]).shape == (2, 2)
    assert x.new_full((2,), 3.7).tolist() == [3, 3]
    assert x.new_full((2,), 2.5, dtype=clew.float32).tolist() == [2.5, 2.5]
    assert x.new_tensor([1.7, 2]).tolist() == [1, 2]
    assert x.new_tensor([1.5], dtype=clew.float64, requires_grad=True).requires_grad
    assert x.new_empty_strided((2, 2), (1, 2)).stride() == (1, 2)
    assert x.new_zeros(2, device="meta").is_meta
    with pytest.raises(TypeError):
        x.new_full(2)


# ---- full, eye, strided, triangles ----


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, clew.bool),
        (3, clew.int64),
        (2.5, clew.float32),
        (1 + 2j, clew.complex64),
        (clew.tensor(4), clew.int64),
        (np.float64(1.5), clew.float32),
    ],
)
def test_full_infers_the_dtype(value, dtype):
    t = clew.full((2, 1), value)
    assert t.dtype is dtype and t.tolist() == [[value], [value]]


def test_full_errors():
    for args in [(2, 1.0), ((2,),), ((2,), "a"), ((2,), clew.ones(2))]:
        with pytest.raises(TypeError):
            clew.full(*args)
    with pytest.raises(RuntimeError, match="complex value"):
        clew.full((2,), 1j, dtype=clew.float32)


def test_eye():
    assert clew.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert clew.eye(3, m=1).tolist() == [[1], [0], [0]]
    assert clew.eye(0).shape == (0, 0)
    with pytest.raises(RuntimeError, match="n must be greater"):
        clew.eye(-1)
    with pytest.raises(RuntimeError, match="m must be greater"):
        clew.eye(1, -1)
    with pytest.raises(TypeError):
        clew.eye(2.5)


def test_empty_strided():
    t = clew.empty_strided((2, 3), (1, 4), dtype=clew.int32)
    assert t.stride() == (1, 4) and t.shape == (2, 3)
    t.fill_(3)
    assert t.tolist() == [[3] * 3] * 2
    with pytest.raises(RuntimeError):
        clew.empty_strided((2, 3), (1,))
    with pytest.raises(RuntimeError):
        clew.empty_strided((2, 3), (1, -1))
    with pytest.raises(RuntimeError):
        clew.empty_strided((2**40, 2), (2**40, 1))


@pytest.mark.parametrize("rows", [0, 1, 3, 5])
@pytest.mark.parametrize("cols", [0, 1, 4])
@pytest.mark.parametrize("offset", [-(2**62), -7, -2, -1, 0, 1, 3, 9, 2**62])
def test_triangle_indices(rows, cols, offset):
    small = max(-100, min(100, offset))
    np.testing.assert_array_equal(
        clew.tril_indices(rows, cols, offset).numpy(), np.array(np.tril_indices(rows, small, cols))
    )
    np.testing.assert_array_equal(
        clew.triu_indices(rows, cols, offset, dtype=clew.int32).numpy(),
        np.array(np.triu_indices(rows, small, cols)),
    )


def test_triangle_errors():
    with pytest.raises(RuntimeError):
        clew.tril_indices(-1, 2)
    with pytest.raises(RuntimeError):
        clew.triu_indices(1, 2, dtype=clew.float32)


# ---- the rest ----


def test_complex_and_polar():
    re, im = clew.tensor([1.0, 2.0], requires_grad=True), clew.tensor([3.0, -4.0])
    z = clew.complex(re, im)
    assert z.dtype is clew.complex64 and z.tolist() == [1 + 3j, 2 - 4j]
    (clew.view_as_real(z)[..., 0] * clew.tensor([2.0, 3.0])).sum().backward()
    assert re.grad.tolist() == [2, 3]
    z = clew.polar(
        clew.tensor([2.0], dtype=clew.float64), clew.tensor([math.pi / 2], dtype=clew.float64)
    )
    np.testing.assert_allclose(z.tolist(), [2j], atol=1e-15)
    for bad in ((re, im.double()), (clew.ones(1, dtype=clew.int64),) * 2):
        with pytest.raises(RuntimeError):
            clew.complex(*bad)
    with pytest.raises(RuntimeError):
        clew.complex(clew.ones(2), clew.ones(3))


def test_vander():
    x = clew.tensor([1.0, 2.0, 3.0])
    np.testing.assert_allclose(clew.vander(x).tolist(), np.vander([1, 2, 3]))
    got = clew.vander(x, 2, increasing=True)
    np.testing.assert_allclose(got.tolist(), np.vander([1, 2, 3], 2, increasing=True))
    with pytest.raises(RuntimeError):
        clew.vander(clew.ones(2, 2))
    with pytest.raises(RuntimeError):
        clew.vander(x, -1)


def test_normal_function():
    assert clew.normal(2.0, 0.0, (2, 3)).tolist() == [[2.0] * 3] * 2
    assert clew.normal(2.0, 0.0, size=(2,), dtype=clew.float64).dtype is clew.float64
    assert clew.normal(clew.tensor([1.0, 2.0]), 0.0).tolist() == [1, 2]
    assert clew.normal(3.0, clew.zeros(2, 1)).tolist() == [[3], [3]]
    assert clew.normal(clew.ones(3), clew.zeros(2, 1)).shape == (2, 3)
    out = clew.empty(0)
    assert clew.normal(clew.ones(2), clew.zeros(2), out=out) is out and out.tolist() == [1, 1]
    assert clew.normal(0.0, 1.0, (2,), requires_grad=True).requires_grad


def test_fill_function():
    x = clew.ones(2, requires_grad=True)
    y = clew.fill(x, 3)
    assert x.tolist() == [1, 1] and y.tolist() == [3, 3]
    y.sum().backward()
    assert x.grad.tolist() == [0, 0]


# ---- documentation ----


@pytest.mark.filterwarnings("ignore:clew.range")
@pytest.mark.parametrize("name", clew._ops.creation.__all__)
def test_documentation(name):
    """Every function has a signature and an example that gives what it says."""
    import doctest
    import inspect

    function = getattr(clew, name)
    if not callable(function) or isinstance(function, type):
        return
    assert inspect.signature(function)
    text = inspect.getdoc(function)
    assert ">>>" in text
    test = doctest.DocTestParser().get_doctest(text, {"clew": clew}, name, None, None)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test, out=lambda _: None).failed == 0


def test_places_of_empty_permuted():
    made = clew.empty_permuted((2, 3, 5), (2, 0, 1))
    assert made.shape == (2, 3, 5) and made.stride() == (3, 1, 6)


def test_copies_of_views_lie_close():
    x = clew.rand(2, 3)
    for made in (clew.transpose_copy(x, 0, 1), clew.permute_copy(x, (1, 0))):
        assert made.equal(x.mT) and made.stride() == (2, 1)
