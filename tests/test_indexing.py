"""x[key] and x[key] = value against NumPy, their gradients, views, and what must raise."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import clew
from computed_dtypes import DTYPES

RNG = np.random.default_rng(7)


def array(*shape: int) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)


def reference(x: np.ndarray, key: Any) -> np.ndarray:
    """What PyTorch gives: ints first make views, then index arrays act together on what is left."""
    items = list(key) if isinstance(key, tuple) else [key]
    basic: list[Any] = []
    later: list[Any] = []
    for item in items:
        if isinstance(item, np.ndarray):
            spans = item.ndim if item.dtype == bool else 1
            basic += [slice(None)] * spans
            later.append(item)
        else:
            basic.append(item)
            if not isinstance(item, int):
                later.append(item if item is Ellipsis else slice(None))
    return x[tuple(basic)][tuple(later)]


def as_clew(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(as_clew(k) for k in key)
    return clew.tensor(key) if isinstance(key, np.ndarray) else key


def random_key(shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A key of ints, slices, None, Ellipsis, index arrays and masks that fits the shape."""
    key: list[Any] = []
    adv = tuple(RNG.integers(1, 4, size=RNG.integers(0, 3)))
    d = 0
    ellipsis_used = False
    while d < len(shape):
        n = shape[d]
        kind = RNG.integers(0, 9)
        if kind == 0 and n:
            key.append(int(RNG.integers(-n, n)))
        elif kind in (1, 2):
            start, stop = (int(v) for v in RNG.integers(-n - 1, n + 2, size=2))
            key.append(
                slice(
                    start if RNG.random() < 0.7 else None,
                    stop if RNG.random() < 0.7 else None,
                    int(RNG.integers(1, 4)),
                )
            )
        elif kind == 3:
            key.append(None)
            continue
        elif kind == 4 and not ellipsis_used:
            ellipsis_used = True
            key.append(Ellipsis)
            d = int(RNG.integers(d, len(shape) + 1))
            continue
        elif kind in (5, 6) and n:
            # Broadcast against the other index arrays: any suffix, some dims 1.
            cut = adv[int(RNG.integers(0, len(adv) + 1)) :]
            key.append(RNG.integers(-n, n, size=[s if RNG.random() < 0.8 else 1 for s in cut]))
            if key[-1].ndim == 0:
                key[-1] = int(key[-1])
        elif kind == 7 and not adv and not any(isinstance(k, np.ndarray) for k in key):
            spans = int(RNG.integers(1, min(3, len(shape) - d + 1)))
            key.append(RNG.random(shape[d : d + spans]) < 0.5)
            d += spans
            adv = (1,)
            continue
        else:
            key.append(slice(None))
        d += 1
    # What an ellipsis skipped over must be what is really left for it.
    while (
        key
        and RNG.random() < 0.3
        and not isinstance(key[-1], np.ndarray)
        and key[-1] is not None
        and key[-1] is not Ellipsis
    ):
        if ellipsis_used:
            break
        key.pop()
    return tuple(key)


@pytest.mark.parametrize("round_", range(40))
def test_random_keys(round_: int):
    """Reading, writing a tensor and a number, and the gradients of each, dense and strided."""
    tried = 0
    for _ in range(25):
        shape = tuple(
            int(v) for v in RNG.integers(0 if RNG.random() < 0.1 else 1, 5, size=RNG.integers(1, 5))
        )
        a = array(*shape) + 1
        key = random_key(shape)
        try:
            want = reference(a, key)
        except IndexError:
            with pytest.raises(IndexError):
                clew.tensor(a)[as_clew(key)]
            continue
        tried += 1
        x = clew.tensor(a, requires_grad=True)
        strided = clew.tensor(np.stack([a, a], -1))[..., 1]
        for t in (x, strided, x.transpose(0, -1).contiguous().transpose(0, -1)):
            got = t[as_clew(key)]
            np.testing.assert_array_equal(got.detach().numpy(), want, err_msg=f"{shape} {key}")
            assert got.shape == want.shape
        # Gradient: how often, weighted, each element was taken.
        got = x[as_clew(key)]
        weights = RNG.normal(size=want.shape)
        places = reference(np.arange(a.size).reshape(shape), key)
        expect = np.zeros(a.size)
        np.add.at(expect, places.ravel(), weights.ravel())
        (grad,) = clew.autograd.grad(got, x, clew.tensor(weights), create_graph=True)
        np.testing.assert_allclose(grad.detach().numpy(), expect.reshape(shape), atol=1e-12)
        # Writing.
        flat = a.ravel().copy()
        flat[places.ravel()] = -5
        for y in (clew.tensor(a), clew.tensor(np.stack([a, a], -1))[..., 1]):
            y[as_clew(key)] = -5
            np.testing.assert_array_equal(y.numpy(), flat.reshape(shape), err_msg=f"{shape} {key}")
        if len(set(places.ravel().tolist())) == places.size:
            values = RNG.normal(size=want.shape)
            flat[places.ravel()] = values.ravel()
            v = clew.tensor(values, requires_grad=True)
            y = x * 1
            y[as_clew(key)] = v
            np.testing.assert_array_equal(y.detach().numpy(), flat.reshape(shape))
            outer = RNG.normal(size=shape)
            gx, gv = clew.autograd.grad(y, (x, v), clew.tensor(outer), allow_unused=True)
            kept = outer.ravel().copy()
            kept[places.ravel()] = 0
            # None stands for zeros where everything was overwritten.
            gx = np.zeros(shape) if gx is None else gx.numpy()
            np.testing.assert_allclose(gx, kept.reshape(shape))
            np.testing.assert_allclose(gv.numpy(), outer.ravel()[places])
    assert tried > 5


def test_fast_keys():
    a = array(3, 4, 2)
    x = clew.tensor(a)
    for key in [
        0,
        -1,
        slice(1, 3),
        slice(None),
        slice(0, 3, 2),
        (1, 2),
        (slice(1, 3), 0),
        (0, slice(None), 1),
        None,
        Ellipsis,
        (),
        (Ellipsis, 1),
    ]:
        np.testing.assert_array_equal(x[key].numpy(), a[key])
        assert x[key].data_ptr() == x.data_ptr() + (
            a[key].__array_interface__["data"][0] - a.__array_interface__["data"][0]
        )
    assert x[1, 2, 1].item() == a[1, 2, 1]
    assert [r.tolist() for r in x] == a.tolist()


@pytest.mark.parametrize(
    "key",
    [
        np.int64(1),
        np.array([0, 1]),
        np.array([0, 1], dtype=np.int32),
        [0, 1],
        [True, False],
        range(2),
        [[0, 1]],
        (0, [1, 0]),
        ([0, 1], [1, 0]),
        (slice(None), [2, 0]),
        (Ellipsis, [1, 0]),
        np.array([[True, False, True], [False, True, False]]),
        (slice(None), np.array([True, False, True])),
        np.array(1),
        [],
        ((0, 1), 1),
    ],
)
def test_sequences_and_arrays_as_keys(key: Any):
    a = array(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = clew.tensor(a)[key]
    if isinstance(key, list) and key and isinstance(key[0], list):
        key = tuple(key)  # PyTorch reads a list of lists as a tuple
    if isinstance(key, list) and not key:
        key = np.array([], dtype=np.int64)
    np.testing.assert_array_equal(got.numpy(), a[tuple(key) if isinstance(key, tuple) else key])


def test_boolean_numbers_add_a_dimension():
    a = array(2, 3)
    x = clew.tensor(a)
    for yes in (True, np.bool_(True), np.array(True), clew.tensor(True)):
        np.testing.assert_array_equal(x[yes].numpy(), a[True])
    for no in (False, clew.tensor(False)):
        assert x[no].shape == (0, 2, 3)
    assert x[0, True].shape == (1, 3)
    x[clew.tensor(False)] = 7
    np.testing.assert_array_equal(x.numpy(), a)
    x[True] = 7
    assert (x == 7).all()
    zero = clew.tensor(3.0)
    assert zero[True].shape == (1,) and zero[...].shape == () and zero[None].shape == (1,)
    zero[clew.tensor(True)] = 4
    assert zero.item() == 4


def test_zero_dim_tensors_are_ints():
    x = clew.tensor(array(3, 4))
    i = clew.tensor(2)
    assert x[i].tolist() == x[2].tolist() and x[i].data_ptr() == x[2].data_ptr()
    assert x[:, i].tolist() == x[:, 2].tolist()
    assert x[i, clew.tensor([0, 1])].tolist() == [8, 9]
    assert x[: clew.tensor(2)].shape == (2, 4)


@pytest.mark.filterwarnings("ignore:indexing with dtype")
def test_masks():
    a = array(2, 3, 4)
    x = clew.tensor(a)
    m = a % 2 == 0
    np.testing.assert_array_equal(x[clew.tensor(m)].numpy(), a[m])
    np.testing.assert_array_equal(x[clew.tensor(m[:, :, 0])].numpy(), a[m[:, :, 0]])
    np.testing.assert_array_equal(x[:, clew.tensor(m[0])].numpy(), a[:, m[0]])
    np.testing.assert_array_equal(x[clew.tensor(m.astype(np.uint8))].numpy(), a[m])
    assert x[clew.zeros(2, dtype=clew.bool)].shape == (0, 3, 4)
    both = np.array([True, False]), np.array([[True, False, True, False], [False] * 4, [False] * 4])
    np.testing.assert_array_equal(x[clew.tensor(both[0]), clew.tensor(both[1])].numpy(), a[both])
    y = x.clone()
    y[y > 5] *= -1
    np.testing.assert_array_equal(y.numpy(), np.where(a > 5, -a, a))


def test_basic_keys_give_views_and_index_tensors_copies():
    x = clew.zeros(3, 4)
    x[1][2] = 5
    x[:, 0].fill_(1)
    x[None, 2, ..., 1:].mul_(0).add_(2)
    assert x.tolist() == [[1, 0, 0, 0], [1, 0, 5, 0], [1, 2, 2, 2]]
    y = x[[0, 1]]
    y.zero_()
    assert x[1, 2] == 5
    assert x[1]._version == x._version


def test_views_of_views_write_through_with_gradient():
    w = clew.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = w * 2
    part = x[1:]
    part[1] = w[0] * 10
    x[0] *= 3
    y = (x * clew.tensor([1.0, 10.0, 100.0])).sum()
    assert x.tolist() == [6.0, 4.0, 10.0] and part.tolist() == [4.0, 10.0]
    y.backward()
    assert w.grad.tolist() == [6 + 1000, 20, 0]


def test_assignment_converts_broadcasts_and_trims():
    x = clew.zeros(2, 3, dtype=clew.int64)
    x[0] = 1.9
    x[1, :2] = clew.tensor([2.5, -3.5])
    assert x.tolist() == [[1, 1, 1], [2, -3, 0]]
    x[clew.tensor([0, 1]), 2] = clew.tensor([7, 8])
    assert x[:, 2].tolist() == [7, 8]
    x[...] = clew.ones(1, 1, 2, 3)
    x[0] = np.array([4, 5, 6])
    x[clew.tensor([1])] = clew.full((1, 1, 3), 9)
    assert x.tolist() == [[4, 5, 6], [9, 9, 9]]
    b = clew.zeros(3, dtype=clew.bool)
    b[1:] = 2
    assert b.tolist() == [False, True, True]
    z = clew.zeros(2, dtype=clew.complex64)
    z[0] = 1 + 2j
    assert z.tolist() == [1 + 2j, 0]


def test_assignment_of_overlapping_parts():
    x = clew.arange(6)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:] = x[:-1]
    with pytest.raises(RuntimeError, match="single memory location"):
        x[clew.tensor([0, 1, 2])] = x[3:]
    x[clew.tensor([0, 1, 2])] = x[3:].clone()
    assert x.tolist() == [3, 4, 5, 3, 4, 5]
    i = clew.tensor([2, 1, 0])
    with pytest.raises(RuntimeError, match="single memory location"):
        i[i] = i
    i[i.clone()] = i.clone()
    assert i.tolist() == [0, 1, 2]


def test_every_dtype_is_read_and_written():
    for dtype in DTYPES:
        x = clew.tensor([0, 1, 0, 1]).to(dtype)
        assert x[clew.tensor([1, 2])].tolist() == [1, 0]
        assert x[1:3].dtype is dtype
        x[clew.tensor([0, 2])] = x[1].clone()
        assert x.to(clew.int64).tolist() == [1, 1, 1, 1]
        y = clew.zeros(3, dtype=dtype)
        y = y.index_add(0, clew.tensor([0, 0, 2]), clew.ones(3, dtype=dtype))
        assert y.to(clew.float64 if dtype is not clew.bool else clew.int64).tolist() == (
            [1, 0, 1] if dtype is clew.bool else [2, 0, 1]
        )


def test_many_repeated_indices_are_summed_exactly_and_the_same_each_time():
    n = 200_000
    index = clew.tensor(RNG.integers(0, 7, size=n))
    for dtype in (clew.float32, clew.bfloat16):
        source = clew.tensor(RNG.normal(size=(n, 3))).to(dtype)
        results = [clew.zeros(7, 3, dtype=dtype).index_add(0, index, source) for _ in range(3)]
        assert clew.equal(results[0], results[1]) and clew.equal(results[0], results[2])
        want = np.zeros((7, 3))
        np.add.at(want, index.numpy(), source.to(clew.float64).numpy())
        np.testing.assert_allclose(
            results[0].to(clew.float64).numpy(),
            want,
            rtol=1e-2 if dtype is clew.bfloat16 else 1e-3,
            atol=0.02,
        )
    before = clew.get_num_threads()
    try:
        clew.set_num_threads(1)
        one = clew.zeros(7, 3).index_add(0, index, clew.ones(n, 3))
        clew.set_num_threads(3)
        assert clew.equal(one, clew.zeros(7, 3).index_add(0, index, clew.ones(n, 3)))
    finally:
        clew.set_num_threads(before)


X = clew.zeros(2, 3)


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        (2, IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
        (-3, IndexError, "index -3"),
        ((0, 3), IndexError, "index 3 is out of bounds for dimension 1 with size 3"),
        ((0, 0, 0), IndexError, "too many indices"),
        (1.0, IndexError, "valid indices"),
        ("a", (IndexError, TypeError), "str"),
        (slice(None, None, -1), ValueError, "greater than zero"),
        (slice(None, None, 0), ValueError, "zero"),
        (clew.tensor([5]), IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        (clew.tensor([0.5]), IndexError, "must be long"),
        (clew.tensor([True]), IndexError, "shape of the mask"),
        (clew.zeros(2, 3, 1, dtype=clew.bool), IndexError, "too many indices"),
        ((clew.tensor([0, 1]), clew.tensor([0, 1, 2])), IndexError, "shape mismatch"),
        (
            (slice(None), clew.tensor([0, -4])),
            IndexError,
            "index -4 is out of bounds for dimension 1",
        ),
        ((0, object()), IndexError, "object"),
        (slice("a", 1), TypeError, "slice indices"),
        ([0, 7], IndexError, "index 7"),
        (2**70, (IndexError, OverflowError), "int"),
        (
            (clew.tensor([0]), clew.tensor([9])),
            IndexError,
            "index 9 is out of bounds for dimension 1 with size 3",
        ),
    ],
)
def test_bad_keys(key: Any, error: Any, text: str):
    with pytest.raises(error, match=text):
        X[key]
    y = X.clone()
    with pytest.raises(error, match=text):
        y[key] = 1
    assert clew.equal(y, X)


@pytest.mark.parametrize(
    ("key", "value", "error", "text"),
    [
        (0, clew.zeros(2), RuntimeError, "broadcast|expand|match"),
        (clew.tensor([0]), clew.zeros(5), RuntimeError, "shape mismatch"),
        (0, [1, 2, 3], TypeError, "can't assign a list"),
        (0, "a", TypeError, "can't assign"),
        (0, 1j, RuntimeError, "complex"),
        (0, None, TypeError, "can't assign"),
        (clew.tensor([0, 1]), clew.zeros(2, 2, 3), RuntimeError, "shape mismatch"),
    ],
)
def test_bad_values(key: Any, value: Any, error: Any, text: str):
    y = X.clone()
    with pytest.raises(error, match=text):
        y[key] = value
    assert clew.equal(y, X)


def test_other_refusals():
    with pytest.raises(IndexError, match="0-dim"):
        clew.tensor(1.0)[0]
    with pytest.raises(IndexError, match="0-dim"):
        clew.tensor(1.0)[0] = 1
    with pytest.raises(TypeError, match="deleting"):
        del X[0]
    leaf = clew.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf[0] = 1
    with pytest.raises(RuntimeError, match="leaf"):
        leaf[clew.tensor([0])] = 1
    with clew.no_grad():
        leaf[clew.tensor([0])] = 1
        leaf[1] = 2
    assert leaf.tolist() == [1, 2, 0]
    wide = clew.zeros(1).expand(3)
    with pytest.warns(UserWarning, match="index_put_ on expanded tensors"):
        wide[clew.tensor([0])] = 1
    assert wide.tolist() == [1, 1, 1]
    x = clew.ones(3, requires_grad=True)
    y = x * 1
    z = y * y
    y[clew.tensor([0])] = 5
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_meta_tensors():
    x = clew.empty(4, 5, device="meta")
    assert x[1:, None, 2].shape == (3, 1)
    assert x[clew.tensor([0, 1]), clew.tensor([[1], [2]])].shape == (2, 2)
    with pytest.raises(RuntimeError, match="meta"):
        x[clew.empty(4, dtype=clew.bool, device="meta")]
