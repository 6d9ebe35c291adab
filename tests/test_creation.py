"""Functions that make tensors: shapes, dtypes, values, every argument, bad input."""

import math
import warnings

import numpy as np
import pytest

import clew

DTYPES = [
    clew.bool,
    clew.uint8,
    clew.int8,
    clew.int16,
    clew.int32,
    clew.int64,
    clew.float16,
    clew.bfloat16,
    clew.float32,
    clew.float64,
    clew.complex64,
    clew.complex128,
]
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
    with pytest.raises(RuntimeError, match="leaf"):
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


# ---- ranges ----


@pytest.mark.parametrize(
    "args",
    [
        (5,),
        (2, 7),
        (7, 2, -2),
        (0, 10, 3),
        (10, 0, -3),
        (0,),
        (3, 3),
        (-4, 4, 5),
        (0.5, 3.2, 0.25),
        (1.0,),
        (0, 1, 0.1),
        (5, 1, -0.5),
        (2**40, 2**40 + 3),
    ],
)
def test_arange(args):
    got = clew.arange(*args)
    want = np.arange(*args)
    assert got.dtype is (clew.int64 if want.dtype.kind == "i" else clew.float32)
    np.testing.assert_allclose(got.tolist(), want, rtol=1e-6, atol=1e-7)
    got = clew.arange(*args, dtype=clew.float64)
    np.testing.assert_allclose(got.tolist(), want, rtol=1e-15, atol=1e-15)


def test_arange_arguments():
    assert clew.arange(end=3).tolist() == [0, 1, 2]
    assert clew.arange(1, end=3).tolist() == [1, 2]
    assert clew.arange(start=1, end=6, step=2).tolist() == [1, 3, 5]
    assert clew.arange(5, step=2).tolist() == [0, 2, 4]
    assert clew.arange(clew.tensor(3)).tolist() == [0, 1, 2]
    assert clew.arange(3, dtype=clew.uint8, requires_grad=False).dtype is clew.uint8
    assert clew.arange(3.0, requires_grad=True).requires_grad
    assert clew.arange(0.5, 5.7, dtype=clew.int64).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("args", "match"),
    [
        ((0, 10, 0), "step must be nonzero"),
        ((0, 10, -1), "inconsistent with step sign"),
        ((5, 1), "inconsistent with step sign"),
        ((0, math.inf), "unsupported range"),
        ((math.nan,), "unsupported range"),
        ((0, 1, math.nan), "nonzero"),
        ((0, 1, 1e-300), "too many"),
        ((1j,), "must be real"),
    ],
)
def test_arange_errors(args, match):
    with pytest.raises(RuntimeError, match=match):
        clew.arange(*args)
    with pytest.raises(TypeError):
        clew.arange()
    with pytest.raises(TypeError):
        clew.arange("a")


def test_range_includes_its_end():
    with pytest.warns(UserWarning, match="includes its end"):
        assert clew.range(0, 3).tolist() == [0, 1, 2, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert clew.range(1, 2, 0.5).tolist() == [1, 1.5, 2]
        assert clew.range(2).tolist() == [0, 1, 2]


@pytest.mark.parametrize("n", [0, 1, 2, 5, 101])
@pytest.mark.parametrize(("start", "end"), [(0, 1), (-3, 7), (2.5, -2.5), (1, 1), (0, 1 + 2j)])
def test_linspace(start, end, n):
    want = np.linspace(start, end, n)
    got = clew.linspace(start, end, n)
    assert got.dtype is (clew.complex64 if want.dtype.kind == "c" else clew.float32)
    np.testing.assert_allclose(np.asarray(got.tolist(), want.dtype), want, rtol=1e-6, atol=1e-6)
    wide = clew.complex128 if want.dtype.kind == "c" else clew.float64
    got = clew.linspace(start, end, n, dtype=wide)
    np.testing.assert_allclose(np.asarray(got.tolist(), want.dtype), want, rtol=1e-14, atol=1e-15)
    if n > 1:
        assert got.tolist()[0] == start and got.tolist()[-1] == end


def test_linspace_of_integers_and_errors():
    assert clew.linspace(0, 10, 5, dtype=clew.int64).tolist() == [0, 2, 5, 7, 10]
    assert clew.linspace(clew.tensor(0.0), clew.tensor(1.0), steps=3).tolist() == [0, 0.5, 1]
    with pytest.raises(RuntimeError, match="non-negative"):
        clew.linspace(0, 1, -1)
    with pytest.raises(TypeError):
        clew.linspace(0, 1)
    with pytest.raises(RuntimeError, match="can't be safely cast"):
        clew.linspace(0, 1j, 3, dtype=clew.float32)


def test_logspace():
    np.testing.assert_allclose(clew.logspace(-2, 2, 5).tolist(), np.logspace(-2, 2, 5), rtol=1e-6)
    got = clew.logspace(0, 3, 4, base=2, dtype=clew.int64)
    assert got.tolist() == [1, 2, 4, 8]
    assert clew.logspace(1, 5, 1).tolist() == [10]
    assert clew.logspace(1, 5, 0).shape == (0,)


# ---- tensor, as_tensor, asarray ----


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (3, clew.int64, ()),
        (2.5, clew.float32, ()),
        (True, clew.bool, ()),
        (1 + 2j, clew.complex64, ()),
        ([], clew.float32, (0,)),
        ([[], []], clew.float32, (2, 0)),
        ([1, 2], clew.int64, (2,)),
        ((1, 2.5), clew.float32, (2,)),
        ([True, 2], clew.int64, (2,)),
        ([True, False], clew.bool, (2,)),
        ([True, 1.5], clew.float32, (2,)),
        ([1, 2j], clew.complex64, (2,)),
        ([[1, 2], [3, 4], [5, 6]], clew.int64, (3, 2)),
        ([[[1.0]], [[2.0]]], clew.float32, (2, 1, 1)),
        (range(3), clew.int64, (3,)),
        ([range(2), [4, 5]], clew.int64, (2, 2)),
        ([np.int32(1), np.int32(2)], clew.int32, (2,)),
        ([np.float64(1)], clew.float64, (1,)),
        (np.float16(1), clew.float16, ()),
        ([np.bool_(True)], clew.bool, (1,)),
        ([np.array([1, 2]), np.array([3, 4])], clew.int64, (2, 2)),
        ([clew.tensor(1), clew.tensor(2.5)], clew.float32, (2,)),
        ([clew.tensor([1.0]), 2], clew.float32, (2,)),
    ],
)
def test_tensor(data, dtype, shape):
    t = clew.tensor(data)
    assert t.dtype is dtype
    assert t.shape == shape
    flat = (
        np.asarray([[float(x) if isinstance(x, clew.Tensor) else x for x in data]])
        if (isinstance(data, list) and any(isinstance(x, clew.Tensor) for x in data))
        else np.asarray(data)
    )
    np.testing.assert_array_equal(np.ravel(t.tolist()), flat.ravel())


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensor_with_dtype(dtype):
    t = clew.tensor([0, 1, 1], dtype=dtype)
    assert t.dtype is dtype and t.tolist() == [0, 1, 1]
    t = clew.tensor(np.array([0.0, 1.0]), dtype=dtype)
    assert t.dtype is dtype and t.tolist() == [0, 1]


def test_tensor_conversions():
    assert clew.tensor([1.7, -1.7], dtype=clew.int32).tolist() == [1, -1]
    assert clew.tensor([-1], dtype=clew.uint8).tolist() == [255]
    assert clew.tensor([2, 0], dtype=clew.bool).tolist() == [True, False]
    assert clew.tensor(2**70, dtype=clew.float64).item() == 2.0**70
    assert clew.tensor([2**53 + 1]).item() == 2**53 + 1
    assert clew.tensor([0.1], dtype=clew.float64).item() == 0.1
    assert clew.tensor(1.0, requires_grad=True).requires_grad


@pytest.mark.parametrize(
    ("data", "kwargs", "error"),
    [
        ([[1, 2], [3]], {}, ValueError),
        ([1, [2]], {}, TypeError),
        ([[1], 2], {}, TypeError),
        ("a", {}, TypeError),
        (["a"], {}, TypeError),
        (b"ab", {}, TypeError),
        (None, {}, RuntimeError),
        ([None], {}, RuntimeError),
        ({}, {}, RuntimeError),
        ([object()], {}, RuntimeError),
        ([2**70], {}, ValueError),
        ([300], {"dtype": clew.uint8}, RuntimeError),
        ([1e10], {"dtype": clew.int32}, RuntimeError),
        ([math.nan], {"dtype": clew.int64}, RuntimeError),
        ([1j], {"dtype": clew.float32}, TypeError),
        ([clew.ones(2), clew.ones(2)], {}, ValueError),
        ([1], {"requires_grad": True}, RuntimeError),
        ([1.0], {"device": "cuda"}, RuntimeError),
        ([1.0], {"dtype": 3}, TypeError),
    ],
)
def test_tensor_errors(data, kwargs, error):
    with pytest.raises(error):
        clew.tensor(data, **kwargs)
    with pytest.raises(TypeError):
        clew.tensor()
    with pytest.raises(TypeError):
        clew.tensor(1, clew.float32)


def test_a_list_that_holds_itself():
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="too many dimensions"):
        clew.tensor(loop)
    deep = 1
    for _ in range(70):
        deep = [deep]
    with pytest.raises(ValueError, match="too many dimensions"):
        clew.tensor(deep)


class Shrinking:
    """An element that empties the list it stands in while it is being read."""

    def __init__(self, holder):
        self.holder = holder

    def __len__(self):
        self.holder.clear()
        return 2

    def __getitem__(self, i):
        self.holder.clear()
        if i >= 2:
            raise IndexError
        return 1.0


def test_lists_that_change_while_they_are_read():
    data = [[1.0, 2.0]]
    data.append(Shrinking(data))
    data.extend([[1.0, 2.0]] * 50)
    try:
        clew.tensor(data)
    except (ValueError, TypeError, RuntimeError, IndexError):
        pass


def test_tensor_copies_and_warns():
    x = clew.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="clone"):
        y = clew.tensor(x)
    assert y.is_leaf and not y.requires_grad
    array = np.zeros(2)
    t = clew.tensor(array)
    array[0] = 5
    assert t.tolist() == [0, 0]
    assert clew.tensor(np.arange(4)[::-1][:2].copy()).tolist() == [3, 2]


def test_as_tensor():
    x = clew.ones(2)
    assert clew.as_tensor(x) is x
    assert clew.as_tensor(x, dtype=clew.float64).dtype is clew.float64
    assert clew.as_tensor(x, clew.int64).dtype is clew.int64
    array = np.zeros(3)
    clew.as_tensor(array)[0] = 4
    assert array[0] == 4
    assert clew.as_tensor(array, dtype=clew.float32).dtype is clew.float32
    assert clew.as_tensor([1, 2]).dtype is clew.int64
    w = clew.ones(2, requires_grad=True)
    clew.as_tensor(w, dtype=clew.float64).sum().backward()
    assert w.grad.tolist() == [1, 1]


def test_asarray():
    x = clew.ones(2)
    assert clew.asarray(x) is x
    assert clew.asarray(x, copy=True) is not x
    array = np.zeros(3)
    shared = clew.asarray(array)
    shared[0] = 1
    assert array[0] == 1
    copied = clew.asarray(array, copy=True)
    copied[0] = 9
    assert array[0] == 1
    assert clew.asarray([1, 2], dtype=clew.float32).tolist() == [1, 2]
    assert clew.asarray(bytearray(8), dtype=clew.int32).tolist() == [0, 0]
    assert clew.asarray(2.0, requires_grad=True).requires_grad
    with pytest.raises(ValueError):
        clew.asarray([1], copy=False)
    with pytest.raises(ValueError):
        clew.asarray(array, dtype=clew.float32, copy=False)
    w = clew.ones(2, requires_grad=True)
    assert clew.asarray(w) is w and not clew.asarray(w, requires_grad=False).requires_grad
    assert clew.asarray(w, requires_grad=True) is w


def test_scalar_tensor():
    assert clew.scalar_tensor(3).dtype is clew.float32
    assert clew.scalar_tensor(3, dtype=clew.int8).item() == 3
    with pytest.raises(TypeError):
        clew.scalar_tensor([1])


def test_frombuffer():
    raw = bytearray(np.arange(6, dtype=np.int16).tobytes())
    t = clew.frombuffer(raw, dtype=clew.int16)
    assert t.tolist() == [0, 1, 2, 3, 4, 5]
    t[0] = 7
    assert raw[0] == 7
    assert clew.frombuffer(raw, dtype=clew.int16, count=2, offset=4).tolist() == [2, 3]
    with pytest.raises(BufferError):
        raw.extend(b"x" * 100)
    with pytest.warns(UserWarning, match="not writable"):
        clew.frombuffer(b"abcd", dtype=clew.uint8)
    for kwargs in (
        {"dtype": clew.int32, "offset": 2, "count": 3},
        {"dtype": clew.int64, "count": 2},
        {"dtype": clew.int16, "offset": 1},
        {"dtype": clew.int16, "offset": 40},
        {"dtype": clew.int16, "offset": -1},
        {"dtype": clew.int16, "count": 0},
    ):
        with pytest.raises(ValueError, match="frombuffer"):
            clew.frombuffer(bytearray(12), **kwargs)
    with pytest.raises(ValueError):
        clew.frombuffer(bytearray(0), dtype=clew.int8)
    with pytest.raises(ValueError):
        clew.frombuffer([1], dtype=clew.int8)
    with pytest.raises(TypeError):
        clew.frombuffer(bytearray(2))


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


def test_whole_numbers_are_spaced_as_pytorch_spaces_them():
    # The ends of a whole-number result are whole numbers, the powers between them need not be.
    assert clew.logspace(-2, 1.2, 2, dtype=clew.int64).tolist() == [0, 10]
    assert clew.logspace(0, 1, 3, dtype=clew.int32).tolist() == [1, 3, 10]
    assert clew.logspace(-2, 0, 5, dtype=clew.int64).tolist() == [0, 0, 0, 0, 1]
    assert clew.linspace(-2, 0, 3, dtype=clew.uint8).tolist() == [254, 127, 0]
    assert clew.linspace(-2, 7, 16, dtype=clew.int64).tolist()[:7] == [-2, -1, 0, 0, 0, 0, 1]
    with pytest.warns(UserWarning, match="includes its end"):
        assert clew.range(-2, 0, 2.9, dtype=clew.int64).tolist() == [-2, 0]
    for make in (clew.linspace, clew.logspace):
        with pytest.raises(RuntimeError, match="without overflow"):
            make(0, 300.5, 4, dtype=clew.uint8)
        with pytest.raises(NotImplementedError, match="bool"):
            make(0, 1, 3, dtype=clew.bool)


@pytest.mark.parametrize(
    ("make", "want"),
    [
        (lambda **k: clew.linspace(0, 5, 6, **k), [0, 1, 2, 3, 4, 5]),
        (lambda **k: clew.logspace(0, 5, 6, base=2.0, **k), [1, 2, 4, 8, 16, 32]),
        (lambda **k: clew.arange(6.0, **k), [0, 1, 2, 3, 4, 5]),
        (lambda **k: clew.arange(5, -1, -1, **k), [5, 4, 3, 2, 1, 0]),
    ],
)
def test_a_range_stays_within_an_out_of_another_shape(make, want):
    for part in (lambda t: t[:, ::2], lambda t: t[:, 1:7:2], lambda t: t.t()[1:7:2].t()):
        whole = clew.full((2, 7), -1.0)
        out = part(whole)[:, :3]
        assert make(out=out) is out
        assert out.shape == (2, 3) and out.flatten().tolist() == want
        assert (whole == -1).sum() == 8
    with pytest.raises(RuntimeError, match="single memory location"):
        make(out=clew.zeros(1).expand(6))


def test_places_of_empty_permuted():
    made = clew.empty_permuted((2, 3, 5), (2, 0, 1))
    assert made.shape == (2, 3, 5) and made.stride() == (3, 1, 6)


def test_copies_of_views_lie_close():
    x = clew.rand(2, 3)
    for made in (clew.transpose_copy(x, 0, 1), clew.permute_copy(x, (1, 0))):
        assert made.equal(x.mT) and made.stride() == (2, 1)


def test_linspace_in_single_precision_steps_as_pytorch_does():
    r = np.random.default_rng(0)
    for low, high, n in zip(r.uniform(-5, 5, 50), r.uniform(-5, 5, 50), r.integers(2, 90, 50)):
        a, b, k = np.float32(low), np.float32(high), np.arange(n)
        step = np.float64((b - a) / np.float32(n - 1))
        want = np.where(k < n // 2, a + step * k, b - step * (n - 1 - k)).astype(np.float32)
        np.testing.assert_array_equal(clew.linspace(low, high, int(n)).numpy(), want)


def test_a_tensor_of_a_storage_shares_it():
    """The bytes were taken for numbers, and a storage of another dtype as it is."""
    x = clew.arange(4.0)
    for storage in (x.untyped_storage(), x.storage()):
        made = clew.Tensor(storage)
        assert made.tolist() == [0, 1, 2, 3] and made.data_ptr() == x.data_ptr()
    for wrong in (lambda s: clew.Tensor(s), lambda s: clew.empty(0).set_(s)):
        with pytest.raises(RuntimeError, match=r"float64 cannot be that of a tensor of .*float32"):
            wrong(x.double().storage())

    class Subclass(clew.Tensor):
        pass

    kept = Subclass(x.untyped_storage())
    assert type(kept) is Subclass and kept.data_ptr() == x.data_ptr()
