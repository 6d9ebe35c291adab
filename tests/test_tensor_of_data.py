"""Tensors of Python's data, arrays and buffers: tensor, as_tensor, asarray, frombuffer."""

from __future__ import annotations

import math

import numpy as np
import pytest

import clew
from computed_dtypes import DTYPES


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


def test_a_copy_of_a_storage_has_its_elements():
    x = clew.tensor([1.5, -2.0])
    for make in (clew.tensor, clew.as_tensor):
        made = make(x.storage())
        assert made.dtype is x.dtype and made.tolist() == [1.5, -2.0]
        assert made.data_ptr() != x.data_ptr()
        raw = x.untyped_storage()
        assert make(raw, dtype=clew.float32).tolist() == [1.5, -2.0]
        assert make(raw, dtype=clew.uint8).tolist() == raw.tolist()
        assert make(raw).tolist() == x.view(clew.int64).tolist()
        assert make(clew.ones(3).untyped_storage(), dtype=clew.float64).shape == (1,)
        with pytest.raises(RuntimeError, match="pass untyped"):
            make(x.storage(), dtype=clew.int32)


def test_arrays_without_dims_are_numbers_in_lists():
    made = clew.tensor(((7, np.array(5)), (np.array(9), 5.0)))
    assert made.dtype is clew.float32 and made.tolist() == [[7.0, 5.0], [9.0, 5.0]]
    made = clew.tensor([clew.tensor(5), np.array(6.5)])
    assert made.dtype is clew.float64 and made.tolist() == [5.0, 6.5]
    with pytest.raises((TypeError, RuntimeError), match="invalid data type|infer dtype"):
        clew.tensor([1, np.array("1")])


def test_arrays_without_dims_are_sizes():
    two, three = np.array(2), np.array(3, dtype=np.uint8)
    assert clew.ones(two, 3).shape == clew.ones((two, three)).shape == (2, 3)
    assert clew.ones(6).reshape(two, three).shape == clew.ones(6).view((two, 3)).shape == (2, 3)
    assert clew.ones(2, 3).sum(np.array(1)).shape == (2,)
    for wrong in (np.array([2]), np.array(2.0), np.array(True)):
        with pytest.raises(TypeError):
            clew.ones((3, wrong))


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
