"""Tensors to and from Python numbers, lists, NumPy arrays and DLPack."""

import gc
import math
import operator
import warnings
import weakref

import numpy as np
import pytest

import clew

NUMPY = {
    clew.bool: np.bool_,
    clew.uint8: np.uint8,
    clew.uint16: np.uint16,
    clew.uint32: np.uint32,
    clew.uint64: np.uint64,
    clew.int8: np.int8,
    clew.int16: np.int16,
    clew.int32: np.int32,
    clew.int64: np.int64,
    clew.float16: np.float16,
    clew.float32: np.float32,
    clew.float64: np.float64,
    clew.complex64: np.complex64,
    clew.complex128: np.complex128,
}
SHAPES = [(), (0,), (1,), (5,), (2, 3), (2, 0, 3), (2, 1, 3, 2)]


def values(shape, dtype):
    return np.asarray(np.arange(int(np.prod(shape))).reshape(shape) % 5, dtype)


# ---- NumPy ----


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", NUMPY)
def test_numpy_both_ways_shares_memory(dtype, shape):
    array = values(shape, NUMPY[dtype])
    t = clew.from_numpy(array)
    assert t.dtype is dtype and t.shape == shape
    assert t.tolist() == array.tolist()
    back = t.numpy()
    assert back.dtype == array.dtype and back.shape == shape
    np.testing.assert_array_equal(back, array)
    if array.size:
        assert np.shares_memory(array, back)
        back.reshape(-1)[0] = 1
        assert t.reshape(-1)[0].item() == 1
        t.fill_(0)
        assert not array.any()


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T,
        lambda x: x[::2],
        lambda x: x[:, 1:3],
        lambda x: x[1:, ::3],
        lambda x: x[:, 2],
        lambda x: x[None, 1],
        lambda x: x[:, :0],
    ],
)
def test_strides_are_kept(view):
    array = np.arange(24.0).reshape(4, 6)
    t = clew.from_numpy(view(array))
    np.testing.assert_array_equal(t.numpy(), view(array))
    for size, have, want in zip(t.shape, t.numpy().strides, view(array).strides):
        assert size <= 1 or not t.numel() or have == want
    u = clew.arange(24.0).reshape(4, 6)
    got = u.t()[::2].numpy()
    np.testing.assert_array_equal(got, array.T[::2])
    assert got.strides == tuple(4 * s for s in u.t()[::2].stride())


def test_each_side_keeps_the_other_alive():
    t = clew.from_numpy(np.arange(100000.0))
    array = clew.arange(100000.0).numpy()
    gc.collect()
    junk = [clew.zeros(100000) for _ in range(5)]
    assert t[-1].item() == 99999 and array[-1] == 99999
    del junk

    class Array(np.ndarray):
        pass

    owner = np.zeros(3).view(Array)
    ref = weakref.ref(owner)
    t = clew.from_numpy(owner)
    view = t[1:]
    del owner, t
    gc.collect()
    assert ref() is not None
    del view
    gc.collect()
    assert ref() is None


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: [1, 2], TypeError, "expected np.ndarray"),
        (lambda: np.float32(1), TypeError, "expected np.ndarray"),
        (lambda: np.zeros(3)[::-1], ValueError, "negative"),
        (lambda: np.zeros(3, ">f4"), ValueError, "byte order"),
        (lambda: np.array(["a"]), TypeError, "can't convert"),
        (lambda: np.array([None]), TypeError, "can't convert"),
        (lambda: np.zeros(2, [("a", "f4"), ("b", "f4")]), TypeError, "can't convert"),
        (lambda: np.array(["2020"], "datetime64"), TypeError, "can't convert"),
        (lambda: np.zeros(2, np.longdouble), TypeError, "can't convert"),
        (lambda: np.zeros(12, np.uint8)[1:9].view(np.float64), ValueError, "aligned"),
        (lambda: np.zeros(3, [("a", "u1"), ("b", "<f4")])["b"], ValueError, "strides|aligned"),
    ],
)
def test_arrays_that_are_refused(make, error, match):
    with pytest.raises(error, match=match):
        clew.from_numpy(make())


def test_read_only_arrays_warn():
    array = np.zeros(3)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        clew.from_numpy(array)
    with pytest.warns(UserWarning, match="not writable"):
        clew.from_numpy(np.broadcast_to(np.zeros(1), (3,)))
    assert clew.tensor(array).tolist() == [0, 0, 0]


def test_numpy_refuses_what_it_cannot_show():
    w = clew.ones(2, requires_grad=True)
    for call in (w.numpy, lambda: np.asarray(w), lambda: (w * 2).numpy()):
        with pytest.raises(RuntimeError, match="requires grad"):
            call()
    assert w.numpy(force=True).tolist() == [1, 1]
    assert w.detach().numpy().tolist() == [1, 1]
    with pytest.raises(TypeError, match="BFloat16"):
        clew.ones(2, dtype=clew.bfloat16).numpy()
    with pytest.raises(TypeError, match="meta"):
        clew.ones(2, device="meta").numpy()
    with pytest.raises(TypeError):
        clew.ones(2).numpy(1)
    with pytest.raises(TypeError):
        clew.ones(2).numpy(copy=True)


def test_memory_that_was_given_away_stays_where_it_is():
    t = clew.zeros(4)
    array = t.numpy()
    with pytest.raises(RuntimeError, match="resize"):
        t.resize_(100000)
    other = clew.ones(100000)
    t.data = other
    gc.collect()
    array[:] = 3
    assert array.tolist() == [3, 3, 3, 3] and t[0].item() == 1
    u = clew.zeros(4)
    lent = clew.from_dlpack(u)
    with pytest.raises(RuntimeError, match="resize"):
        u.resize_(100000)
    del lent
    assert u.resize_(100000).shape == (100000,)
    v = clew.zeros(4)
    repr(v)
    assert v.resize_(100000).shape == (100000,)


def test_views_of_a_resized_tensor_keep_their_memory():
    x = clew.arange(4.0)
    view = x[1:]
    x.resize_(100000)
    fresh = [clew.full((4,), 9.0) for _ in range(10)]
    assert view.tolist() == [1, 2, 3]
    view.fill_(5)
    assert all(f.tolist() == [9, 9, 9, 9] for f in fresh)
    assert x[:4].tolist() == [0, 1, 2, 3]


def test_array_protocol():
    t = clew.tensor([1.5, 2.5])
    assert np.asarray(t).dtype == np.float32
    assert np.shares_memory(np.asarray(t), t.numpy())
    assert not np.shares_memory(np.array(t), t.numpy())
    assert np.asarray(t, dtype=np.float64).dtype == np.float64
    assert t.__array__(np.int32).tolist() == [1, 2]
    assert not np.shares_memory(t.__array__(copy=True), t.numpy())
    with pytest.raises(ValueError):
        t.__array__(np.float64, copy=False)
    assert np.sum(t.numpy()) == 4
    assert isinstance(np.sqrt(t), clew.Tensor)
    assert isinstance(np.ones(2, np.float32) * t, clew.Tensor)
    assert (np.ones(2, np.float32) + t).tolist() == [2.5, 3.5]


# ---- Python numbers and lists ----


@pytest.mark.parametrize(
    ("t", "value"),
    [
        (clew.tensor(3), 3),
        (clew.tensor([[2.5]]), 2.5),
        (clew.tensor(True), True),
        (clew.tensor(1 + 2j), 1 + 2j),
        (clew.tensor(-(2**63)), -(2**63)),
        (clew.tensor(200, dtype=clew.uint8), 200),
        (clew.tensor(1.5, dtype=clew.bfloat16), 1.5),
        (clew.tensor(1.5, dtype=clew.float16), 1.5),
    ],
)
def test_item(t, value):
    assert t.item() == value and type(t.item()) is type(value)


def test_item_errors():
    for t in (clew.ones(2), clew.ones(0), clew.ones(2, 2)):
        with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
            t.item()
    with pytest.raises(RuntimeError, match="meta"):
        clew.ones((), device="meta").item()
    with pytest.raises(RuntimeError, match="meta"):
        clew.ones(2, device="meta").tolist()
    assert clew.ones((), requires_grad=True).item() == 1


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", NUMPY)
def test_tolist(dtype, shape):
    array = values(shape, NUMPY[dtype])
    assert clew.from_numpy(array).tolist() == array.tolist()
    assert clew.from_numpy(array.T).tolist() == array.T.tolist()


def test_number_protocols():
    assert float(clew.tensor([2])) == 2.0
    assert int(clew.tensor(2.9)) == 2 and int(clew.tensor(-2.9)) == -2
    assert int(clew.tensor(1e30, dtype=clew.float64)) == int(1e30)
    assert complex(clew.tensor(1 - 2j)) == 1 - 2j
    assert complex(clew.tensor(2)) == 2
    for many in (clew.ones(2), clew.ones(0)):
        with pytest.raises(ValueError, match="only one element"):
            complex(many)
    assert bool(clew.tensor([0.5])) and not bool(clew.tensor(0))
    assert bool(clew.tensor(1j)) and bool(clew.tensor(math.nan))
    assert operator.index(clew.tensor(3)) == 3
    assert [10, 20, 30][clew.tensor([1])] == 20
    assert list(range(5))[clew.tensor(1) : clew.tensor(3)] == [1, 2]
    assert math.floor(clew.tensor(2.5)) == 2
    assert float(clew.ones((), requires_grad=True)) == 1


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: bool(clew.ones(2)), RuntimeError),
        (lambda: bool(clew.ones(0)), RuntimeError),
        (lambda: float(clew.ones(2)), ValueError),
        (lambda: int(clew.ones(0)), ValueError),
        (lambda: float(clew.tensor(1j)), RuntimeError),
        (lambda: int(clew.tensor(1j)), RuntimeError),
        (lambda: int(clew.tensor(math.nan)), ValueError),
        (lambda: int(clew.tensor(math.inf)), OverflowError),
        (lambda: operator.index(clew.tensor(1.0)), TypeError),
        (lambda: operator.index(clew.ones(2, dtype=clew.int64)), TypeError),
        (lambda: float(clew.ones((), device="meta")), RuntimeError),
        (lambda: bool(clew.ones((), device="meta")), RuntimeError),
        (lambda: operator.index(clew.ones((), dtype=clew.int64, device="meta")), RuntimeError),
    ],
)
def test_number_errors(call, error):
    with pytest.raises(error):
        call()


# ---- DLPack ----


class Producer:
    """Hands out another object's capsule; from before DLPack 1.0 when `old`."""

    def __init__(self, source, old=False, device=(1, 0)):
        self.source = source
        self.device = device
        if old:
            self.__dlpack__ = None
            self.__class__ = OldProducer

    def __dlpack__(self, **kwargs):
        return self.source.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.device


class OldProducer(Producer):
    def __dlpack__(self, stream=None):
        return self.source.__dlpack__()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [*NUMPY, clew.bfloat16])
@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (2, 5)])
def test_dlpack_round_trip(dtype, shape, version):
    t = clew.rand(shape).mul(9).to(dtype)
    back = clew.from_dlpack(t.__dlpack__(max_version=version))
    assert back.dtype is dtype and back.shape == t.shape
    assert back.tolist() == t.tolist()
    if t.numel():
        t.fill_(0)
        assert not np.any(back.tolist())
        assert back.data_ptr() == t.data_ptr()


def test_dlpack_with_numpy():
    array = np.arange(6.0).reshape(2, 3)
    t = clew.from_dlpack(array)
    t[0, 0] = 5
    assert array[0, 0] == 5
    np.testing.assert_array_equal(clew.from_dlpack(array.T).numpy(), array.T)
    u = clew.arange(6).reshape(2, 3).t()
    np.testing.assert_array_equal(np.from_dlpack(u), u.numpy())
    with pytest.raises(RuntimeError, match="negative"):
        clew.from_dlpack(array[::-1])


def test_dlpack_capsules_are_used_once():
    capsule = clew.ones(2).__dlpack__()
    clew.from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="once"):
        clew.from_dlpack(capsule)
    assert "dltensor_versioned" in repr(clew.ones(2).__dlpack__(max_version=(1, 0)))


def test_dlpack_keeps_memory_alive_and_gives_it_back():
    t = clew.arange(50000.0)
    capsule = t.__dlpack__()
    del t
    back = clew.from_dlpack(capsule)
    del capsule
    gc.collect()
    junk = [clew.zeros(50000) for _ in range(4)]
    assert back[-1].item() == 49999
    del junk, back
    before = clew.memory_stats()["live_bytes"]
    for _ in range(3):
        clew.zeros(1000).__dlpack__()
        clew.zeros(1000).__dlpack__(max_version=(1, 0))
        clew.from_dlpack(clew.zeros(1000))
    gc.collect()
    assert clew.memory_stats()["live_bytes"] == before


def test_dlpack_arguments():
    t = clew.ones(2)
    assert t.__dlpack_device__() == (1, 0)
    t.__dlpack__(stream=None, dl_device=(1, 0), copy=False)
    copied = clew.from_dlpack(t.__dlpack__(copy=True))
    copied[0] = 7
    assert t.tolist() == [1, 1]
    copied = clew.from_dlpack(t, device="cpu", copy=True)
    copied[0] = 7
    assert t.tolist() == [1, 1]
    for kwargs in ({"stream": 3}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError):
            t.__dlpack__(**kwargs)
    for kwargs in ({"max_version": 1}, {"copy": "yes"}, {"speed": 1}):
        with pytest.raises(TypeError):
            t.__dlpack__(**kwargs)
    with pytest.raises(BufferError, match="require gradient"):
        clew.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="meta"):
        clew.ones(2, device="meta").__dlpack__()
    with pytest.raises(ValueError):
        clew.ones(2, device="meta").__dlpack_device__()


def test_dlpack_producers():
    t = clew.ones(2)
    assert clew.from_dlpack(Producer(t)).data_ptr() == t.data_ptr()
    old = OldProducer(t)
    assert clew.from_dlpack(old).data_ptr() == t.data_ptr()
    with pytest.raises(BufferError, match="CPU"):
        clew.from_dlpack(Producer(t, device=(2, 0)))
    for bad in (3, "a", [1.0]):
        with pytest.raises(TypeError):
            clew.from_dlpack(bad)
    with pytest.raises(TypeError):
        clew.from_dlpack()
    with pytest.raises(BufferError):
        clew.from_dlpack(np.array(["a"]))


def test_types_of_python_stand_for_dtypes():
    x = clew.ones(2)
    for kind, dtype in (
        (float, clew.float64), (int, clew.int64), (bool, clew.bool), (complex, clew.complex128)
    ):  # fmt: skip
        assert x.to(kind).dtype is dtype and x.to(dtype=kind).dtype is dtype
        assert x.to("cpu", kind).dtype is dtype
    assert clew.nn.Linear(2, 2).to(float).weight.dtype is clew.float64
    assert clew.ones(1, dtype=clew.int32).type(clew.Tensor).dtype is clew.float32
    with pytest.raises(TypeError, match="dtype"):
        x.to(str)


def test_casting_complex_numbers_to_real_warns_once(monkeypatch):
    from clew._tensor import conversions

    c = clew.tensor([1 + 2j, 3j])
    casts = (
        lambda: c.float(),
        lambda: c.to(clew.int64),
        lambda: c.to(clew.zeros(1)),
        lambda: c.to("cpu", clew.float64, copy=True),
        lambda: c.type(clew.float16),
        lambda: c.type_as(clew.zeros(1)),
        lambda: clew.as_tensor(c, dtype=clew.float32),
    )
    for cast in casts:
        monkeypatch.setattr(conversions, "_warned", False)
        with pytest.warns(UserWarning, match="discards the imaginary part") as seen:
            assert cast().tolist() == [1, 0]
        assert len(seen) == 1 and seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cast in casts:
            cast()  # once a process
        monkeypatch.setattr(conversions, "_warned", False)
        assert c.bool().all() and c.real.sum() == 1
        assert c.to(clew.complex128).to(clew.complex64).dtype is clew.complex64
        assert clew.ones(2).to(clew.complex64).dtype is clew.complex64
        x = clew.ones(2, requires_grad=True)
        (x * c).real.sum().backward()
        x.to(clew.complex64).abs().sum().backward()
    clew.set_warn_always(True)
    try:
        for _ in range(2):
            with pytest.warns(UserWarning, match="discards the imaginary part"):
                c.half()
    finally:
        clew.set_warn_always(False)
