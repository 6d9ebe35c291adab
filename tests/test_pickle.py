"""Pickling and deep copies of tensors."""

import copy
import pickle

import numpy as np
import pytest

import clew
from computed_dtypes import DTYPES


def round_trip(x, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(x, protocol))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_values_and_dtype_survive(dtype, shape):
    x = (clew.rand(shape) * 10).to(dtype)
    for copied in (round_trip(x), copy.deepcopy(x)):
        assert copied.dtype is dtype
        assert copied.shape == x.shape
        assert copied.tolist() == x.tolist()
        assert copied._storage_key() != x._storage_key() or x.numel() == 0


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_protocols(protocol):
    x = clew.arange(5)
    assert round_trip(x, protocol).tolist() == [0, 1, 2, 3, 4]


def test_strides_and_offset_survive():
    base = clew.arange(24).reshape(4, 6)
    view = base[1:, ::2].t()
    for copied in (round_trip(view), copy.deepcopy(view)):
        assert copied.stride() == view.stride()
        assert copied.storage_offset() == view.storage_offset()
        assert copied.tolist() == view.tolist()


@pytest.mark.parametrize("copier", [round_trip, copy.deepcopy])
def test_shared_storage_stays_shared(copier):
    base = clew.zeros(4)
    a, b = copier([base, base[1:3]])
    a[1] = 7
    assert b.tolist() == [7.0, 0.0]
    assert base.tolist() == [0.0] * 4


@pytest.mark.parametrize("copier", [round_trip, copy.deepcopy])
def test_same_object_twice(copier):
    x = clew.ones(2)
    a, b = copier([x, x])
    assert a is b


@pytest.mark.parametrize("copier", [round_trip, copy.deepcopy])
def test_requires_grad_survives(copier):
    x = clew.ones(2, requires_grad=True)
    copied = copier(x)
    assert copied.requires_grad and copied.is_leaf
    assert not copier(clew.ones(2)).requires_grad


@pytest.mark.parametrize("copier", [round_trip, copy.deepcopy])
def test_storages_beside_their_tensors_stay_shared(copier):
    x = clew.arange(6.0)
    typed, untyped, y, view = copier([x.storage(), x.untyped_storage(), x, x[2:]])
    assert typed.data_ptr() == untyped.data_ptr() == y.data_ptr() != x.data_ptr()
    y += 1
    assert view.tolist() == [3.0, 4.0, 5.0, 6.0] and typed[5] == 6.0 and x[5] == 5.0
    alone = copier(x.untyped_storage())
    assert alone.tolist() == x.untyped_storage().tolist() and alone.data_ptr() != x.data_ptr()


@pytest.mark.parametrize("copier", [round_trip, copy.deepcopy])
def test_a_view_without_elements_beyond_its_storage(copier):
    x = clew.empty(0, 2, 3, 4).select(1, 1)
    assert x.storage_offset() * x.element_size() > x.untyped_storage().nbytes()
    assert copier(x).shape == x.shape == (0, 3, 4)


def test_deepcopy_copies_the_gradient():
    x = clew.ones(2, requires_grad=True)
    (x * 3).backward(clew.ones(2))
    y = copy.deepcopy(x)
    assert y.grad.tolist() == [3.0, 3.0]
    assert y.grad is not x.grad


def test_deepcopy_of_a_result_is_an_error():
    y = clew.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(y)


def test_pickle_of_a_result_keeps_the_values_only():
    y = round_trip(clew.ones(2, requires_grad=True) * 2)
    assert y.grad_fn is None
    assert y.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("copier", [round_trip, copy.deepcopy])
def test_attributes_survive(copier):
    x = clew.ones(2)
    x.label = ["weights"]
    copied = copier(x)
    assert copied.label == ["weights"]
    assert copied.label is not x.label


class Special(clew.Tensor):
    pass


@pytest.mark.parametrize("copier", [round_trip, copy.deepcopy])
def test_subclasses_survive(copier):
    x = clew.ones(2).as_subclass(Special)
    copied = copier(x)
    assert type(copied) is Special
    assert copied.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("copier", [round_trip, copy.deepcopy])
def test_meta_tensors(copier):
    x = clew.empty(2, 3, device="meta", dtype=clew.int16)
    copied = copier(x)
    assert copied.device.type == "meta"
    assert copied.shape == (2, 3) and copied.dtype is clew.int16


def test_copies_of_numpy_memory_own_their_bytes():
    array = np.arange(4.0)
    x = copy.deepcopy(clew.from_numpy(array))
    array[:] = 0
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_shallow_copy_shares_memory():
    x = clew.zeros(2)
    y = copy.copy(x)
    assert y is not x
    assert y.tolist() == [0.0, 0.0]


def test_small_objects():
    assert round_trip(clew.Size([1, 2])) == (1, 2)
    assert type(round_trip(clew.Size([1, 2]))) is clew.Size
    assert round_trip(clew.float32) is clew.float32
    assert round_trip(clew.device("cpu")) == clew.device("cpu")


def test_generator():
    g = clew.Generator().manual_seed(5)
    clew.rand(3, generator=g)
    twin = round_trip(g)
    assert clew.rand(4, generator=twin).tolist() == clew.rand(4, generator=g).tolist()


def test_deepcopy_keeps_the_gradient_of_a_frozen_tensor():
    x = clew.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    x.requires_grad_(False)
    twin, grad = copy.deepcopy((x, x.grad))
    assert twin.grad is grad and grad is not x.grad and grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: clew.eye(2).to_sparse(),
        lambda: clew.eye(2).to_sparse_csr(),
        lambda: clew.eye(2).to_sparse_bsr((1, 1)),
        lambda: clew.nested.nested_tensor([clew.ones(2), clew.ones(3)], layout=clew.jagged),
        lambda: clew.nested.nested_tensor([clew.ones(2), clew.ones(3)]),
        lambda: clew.masked.masked_tensor(clew.ones(2), clew.tensor([True, False])),
    ],
)
def test_tensors_of_parts_keep_their_attributes(make):
    x = make()
    x.note, x.values_seen = [1], 3
    for again in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert type(again) is type(x) and again.note == [1] and again.values_seen == 3
    assert copy.deepcopy(x).note is not x.note
    assert not hasattr(pickle.loads(pickle.dumps(make())), "note")
