"""x[key] and x[key] = value against NumPy, their gradients, views, and what must raise."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import clew

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
    for dtype in (
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
    ):
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
    with pytest.raises(RuntimeError, match="single memory location"):
        wide[clew.tensor([0])] = 1
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


# ---- what the generic suite cannot check -------------------------------------------------------


def test_embedding_gradient():
    weight = clew.tensor(RNG.normal(size=(5, 3)), requires_grad=True)
    indices = clew.tensor([[1, 2, 1], [4, 1, 0]])
    seed = RNG.normal(size=(2, 3, 3))
    for padding, scale in [(-1, False), (1, False), (2, True), (-1, True)]:
        out = clew._C.ops._embedding(weight, indices, padding, scale)
        s = clew.tensor(seed, requires_grad=True)
        (g,) = clew.autograd.grad(out, weight, s, create_graph=True)
        want = np.zeros((5, 3))
        np.add.at(want, indices.numpy().ravel(), seed.reshape(-1, 3))
        if scale:
            want /= np.maximum(np.bincount(indices.numpy().ravel(), minlength=5), 1)[:, None]
        if padding >= 0:
            want[padding] = 0
        np.testing.assert_allclose(g.detach().numpy(), want)
        v = RNG.normal(size=(5, 3))
        (gs,) = clew.autograd.grad(g, s, clew.tensor(v))
        # <v, G s> is linear in s: its gradient is what G's rows give.
        assert np.isclose((gs.numpy() * seed).sum(), (v * want).sum())


def test_gradients_of_parts_that_got_none():
    x = clew.tensor(array(4, 2), requires_grad=True)
    a, _, _, d = x.unbind()
    (a * 2 + d).sum().backward()
    assert x.grad.tolist() == [[2, 2], [0, 0], [0, 0], [1, 1]]
    x.grad = None
    _, rest = x.split([1, 3])
    (rest * 3).sum().backward()
    assert x.grad.tolist() == [[0, 0], [3, 3], [3, 3], [3, 3]]
    x.grad = None
    p, q, r = x.chunk(3, 0)[0], x.chunk(2, 1)[1], x.tensor_split([1, 1])[0]
    (p.sum() + 10 * q.sum() + 100 * r.sum()).backward()
    assert x.grad.tolist() == [[101, 111], [1, 11], [0, 10], [0, 10]]


def test_as_strided_of_shared_memory():
    base = clew.tensor([1.0, 2.0, 3.0], requires_grad=True)
    wide = base.as_strided((2, 2), (1, 1))
    assert wide.tolist() == [[1, 2], [2, 3]]
    wide.sum().backward()
    assert base.grad.tolist() == [1, 2, 1]
    # An input whose elements share memory: each stands for its memory once.
    base.grad = None
    base.expand(4, 3).as_strided((3,), (1,)).sum().backward()
    assert base.grad.tolist() == [1, 1, 1]
    x = clew.tensor(array(2, 3), requires_grad=True)
    x.t().as_strided((2,), (2,), 1).sum().backward()
    assert x.grad.tolist() == [[0, 1, 0], [1, 0, 0]]


def test_scatter_reduce_prod_with_zeros():
    x = clew.tensor([0.0, 2.0, 3.0], dtype=clew.float64, requires_grad=True)
    src = clew.tensor([2.0, 3.0, 0.0, 5.0, 0.0, 0.0], dtype=clew.float64, requires_grad=True)
    out = x.scatter_reduce(0, clew.tensor([0, 0, 1, 1, 2, 2]), src, "prod")
    assert out.tolist() == [0, 0, 0]
    out.sum().backward()
    assert x.grad.tolist() == [6, 0, 0]
    assert src.grad.tolist() == [0, 0, 10, 0, 0, 0]


def test_scatter_reduce_shares_ties():
    x = clew.tensor([1.0, 5.0], requires_grad=True)
    src = clew.tensor([3.0, 3.0, 5.0], requires_grad=True)
    x.scatter_reduce(0, clew.tensor([0, 0, 1]), src, "amax").sum().backward()
    assert x.grad.tolist() == [0, 0.5] and src.grad.tolist() == [0.5, 0.5, 0.5]


def test_complex_and_byte_views():
    z = clew.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    r = clew.view_as_real(z)
    assert r.data_ptr() == z.data_ptr()
    (r * clew.tensor([1.0, 10.0])).sum().backward()
    assert z.grad.tolist() == [1 + 10j, 1 + 10j]
    x = clew.tensor([1.0, -2.0])
    assert (
        x.view(clew.int32).tolist()
        == np.array([1.0, -2.0], dtype=np.float32).view(np.int32).tolist()
    )
    assert x.view(clew.uint8).shape == (8,) and x.view(clew.uint8).view(clew.float32).tolist() == [
        1,
        -2,
    ]
    x.view(clew.int32)[0] = 0
    assert x[0] == 0
    for bad in (clew.zeros(3), clew.zeros(2, 2).t()):
        with pytest.raises(RuntimeError, match="view"):
            bad.view(clew.float64)
    with pytest.raises(RuntimeError, match="stride 1"):
        clew.view_as_complex(clew.zeros(2, 2).t())


def test_view_refuses_what_needs_a_copy():
    x = clew.zeros(2, 3).t()
    with pytest.raises(RuntimeError, match="use reshape"):
        x.view(6)
    assert x.reshape(6).shape == (6,)
    assert x.contiguous() is not x and x.contiguous().is_contiguous()
    y = clew.zeros(2, 3)
    assert y.contiguous() is y
    assert y.reshape(3, 2).data_ptr() == y.data_ptr()


def test_scatter_takes_numbers_and_larger_sources():
    x = clew.zeros(3, dtype=clew.float64)
    assert x.scatter(0, clew.tensor([1]), 2.5).tolist() == [0, 2.5, 0]
    assert x.scatter(0, clew.tensor([1]), value=2.5).tolist() == [0, 2.5, 0]
    assert clew.ones(2).scatter(0, clew.tensor([1]), 3, reduce="multiply").tolist() == [1, 3]
    src = clew.tensor([1.0, 2.0, 3.0], dtype=clew.float64, requires_grad=True)
    x.scatter_add(0, clew.tensor([0, 0]), src).sum().backward()
    assert src.grad.tolist() == [1, 1, 0]
    y = clew.zeros(3, dtype=clew.bfloat16)
    n = 1000
    assert (
        y.scatter_add(0, clew.zeros(n, dtype=clew.int64), clew.ones(n, dtype=clew.bfloat16))[0]
        == 1000
    )


def test_nonzero_as_tuple():
    x = clew.tensor([[0, 1], [2, 0]])
    rows, columns = x.nonzero(as_tuple=True)
    assert rows.tolist() == [0, 1] and columns.tolist() == [1, 0]
    assert isinstance(x.nonzero(as_tuple=False), clew.Tensor)
    assert [t.tolist() for t in clew.tensor([0, 3]).nonzero(as_tuple=True)] == [[1]]
    assert [t.tolist() for t in clew.where(x > 0)] == [[0, 1], [1, 0]]
    assert x.nonzero().shape == (2, 2)


# ---- functions written in Python ----------------------------------------------------------------


def test_index_put():
    a = array(3, 4)
    x = clew.tensor(a, requires_grad=True)
    i, j = clew.tensor([0, 2, 0]), clew.tensor([1, -1, 1])
    v = clew.tensor([1.0, 2.0, 3.0], dtype=clew.float64, requires_grad=True)
    y = x.index_put((i, j), v, accumulate=True)
    want = a.copy()
    np.add.at(want, (i.numpy(), j.numpy()), v.detach().numpy())
    np.testing.assert_array_equal(y.detach().numpy(), want)
    z = clew.tensor(a)
    assert z.index_put_((None, clew.tensor([1])), clew.tensor(9.0, dtype=clew.float64)) is z
    assert z[:, 1].tolist() == [9, 9, 9]
    assert clew.index_put(
        clew.zeros(2), (clew.tensor([True, False]),), clew.tensor(1.0)
    ).tolist() == [1, 0]
    with pytest.raises(TypeError, match="tuple"):
        x.index_put(i, v)
    with pytest.raises(RuntimeError, match="dtypes"):
        z.index_put_((i,), clew.tensor(1.0))
    with pytest.raises(TypeError, match="values"):
        z.index_put_((i,), 1.0)


def test_joining_any_number():
    r = np.random.default_rng(3)
    a, b = r.normal(size=(2, 3)), r.normal(size=(1, 2))
    ta, tb = clew.tensor(a), clew.tensor(b)
    want = np.zeros((4, 6))
    want[:2, :3], want[2:3, 3:5], want[3, 5] = a, b, 7
    np.testing.assert_array_equal(clew.block_diag(ta, tb, clew.tensor(7.0)).numpy(), want)
    assert clew.cartesian_prod(clew.tensor([1, 2])).tolist() == [1, 2]
    assert clew.combinations(clew.tensor([1, 2]), with_replacement=True).tolist() == [
        [1, 1],
        [1, 2],
        [2, 2],
    ]
    assert clew.combinations(clew.tensor([1, 2]), 3).shape == (0, 3)
    one, two = clew.atleast_1d(clew.tensor(1), clew.tensor([2]))
    assert one.tolist() == [1] and two.tolist() == [2]
    assert clew.atleast_3d(clew.tensor([1, 2])).shape == (1, 2, 1)
    gx, gy = clew.meshgrid([clew.tensor([1, 2]), clew.tensor([3, 4, 5])], indexing="xy")
    assert gx.shape == gy.shape == (3, 2)
    with pytest.raises(TypeError):
        clew.atleast_1d(3)
    with pytest.raises(RuntimeError, match="at most 2"):
        clew.block_diag(clew.zeros(1, 1, 1))


def test_scatters_into_views():
    x = clew.zeros(3, 3, requires_grad=True)
    src = clew.ones(3, requires_grad=True)
    for y, where in [
        (x.select_scatter(src, 1, 2), np.s_[:, 2]),
        (x.diagonal_scatter(src), np.s_[[0, 1, 2], [0, 1, 2]]),
        (x.slice_scatter(src[None], 0, -1), np.s_[-1:]),
        (x.as_strided_scatter(src, (3,), (3,), 1), np.s_[:, 1]),
    ]:
        want = np.zeros((3, 3))
        want[where] = 1
        np.testing.assert_array_equal(y.detach().numpy(), want)
        gx, gs = clew.autograd.grad(y.sum(), (x, src))
        np.testing.assert_array_equal(gx.numpy(), 1 - want)
        assert gs.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="shape"):
        x.select_scatter(clew.ones(2), 0, 0)
    assert clew.ones(2, dtype=clew.float64).index_reduce(
        0,
        clew.tensor([1, 1]),
        clew.tensor([4.0, 8.0], dtype=clew.float64),
        "mean",
        include_self=False,
    ).tolist() == [1, 6]


def test_shapes_change_in_place():
    x = clew.arange(6).reshape(1, 2, 3)
    assert x.squeeze_() is x and x.shape == (2, 3)
    x.t_()
    assert x.tolist() == [[0, 3], [1, 4], [2, 5]] and not x.is_contiguous()
    x.unsqueeze_(-1).transpose_(0, 2).swapaxes_(1, 2)
    assert x.shape == (1, 3, 2)
    w = clew.tensor([[1.0, 2.0]], requires_grad=True)
    y = w * 3
    y.t_()
    (y * clew.tensor([[1.0], [10.0]])).sum().backward()
    assert w.grad.tolist() == [[3, 30]]
    with pytest.raises(RuntimeError, match="leaf"):
        w.t_()
    z = w * 1
    square = z * z
    z.unsqueeze_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.sum().backward()


def test_unravel_index():
    flat = clew.tensor([[0, 23], [7, 12]])
    for got, want in zip(
        clew.unravel_index(flat, (2, 3, 4)), np.unravel_index(flat.numpy(), (2, 3, 4))
    ):
        np.testing.assert_array_equal(got.numpy(), want)
    for indices in (clew.ones(1), clew.ones(1, dtype=clew.bool), clew.ones(1) * 1j):
        with pytest.raises(TypeError, match="unravel_index: indices must be integers"):
            clew.unravel_index(indices, (2, 3))


def test_index_tensors_write_through_views_with_gradient():
    w = clew.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    v = clew.tensor([5.0, 6.0], requires_grad=True)
    y = w * 2
    whole = y.reshape(2, 2)
    y[1:][clew.tensor([2, 0])] = v * 10
    assert y.tolist() == [2, 60, 6, 50] and whole.tolist() == [[2, 60], [6, 50]]
    whole.t()[0].index_put_((clew.tensor([1, 1]),), v, accumulate=True)
    assert y.tolist() == [2, 60, 17, 50]
    (y * clew.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
    assert w.grad.tolist() == [2, 0, 200, 0]
    assert v.grad.tolist() == [10 * 1000 + 100, 10 * 10 + 100]


def test_second_derivative_of_assignment():
    x = clew.tensor([1.0, 2.0, 3.0], dtype=clew.float64, requires_grad=True)
    v = clew.tensor([4.0], dtype=clew.float64, requires_grad=True)
    y = x * x
    y[clew.tensor([1])] = v * v * v
    y[0] = v[0] * x[2]
    (g, gv) = clew.autograd.grad((y * y).sum(), (x, v), create_graph=True)
    # y = (v x2, v^3, x2^2)
    np.testing.assert_allclose(g.detach().numpy(), [0, 0, 2 * 16 * 3 + 4 * 27])
    np.testing.assert_allclose(gv.detach().numpy(), [6 * 4**5 + 2 * 4 * 9])
    (h,) = clew.autograd.grad(gv.sum(), v, retain_graph=True)
    np.testing.assert_allclose(h.numpy(), [30 * 4**4 + 2 * 9])
    (hx,) = clew.autograd.grad(g[2], x)
    np.testing.assert_allclose(hx.numpy(), [0, 0, 2 * 16 + 12 * 9])


def test_index_fill_counts_a_repeated_index_once():
    x = clew.zeros(2, 4, dtype=clew.float64, requires_grad=True)
    value = clew.tensor(2.0, dtype=clew.float64, requires_grad=True)
    y = x.index_fill(1, clew.tensor([1, -1, 1, 3]), value)
    assert y.tolist() == [[0, 2, 0, 2]] * 2
    y.backward(clew.arange(8.0, dtype=clew.float64).view(2, 4))
    assert value.grad.item() == 1 + 3 + 5 + 7
    assert x.grad.tolist() == [[0, 0, 2, 0], [4, 0, 6, 0]]


def _mask(value, dtype):
    return clew.tensor(value).to(dtype)


@pytest.mark.parametrize("dtype", [clew.bool, clew.uint8])
@pytest.mark.parametrize("on", [0, 1])
def test_a_mask_without_dimensions_is_a_new_dimension(dtype, on):
    a = np.arange(24.0).reshape(2, 3, 4)
    x = clew.tensor(a)
    mask, flag = _mask(on, dtype), bool(on)
    for key, want in [
        (mask, np.bool_(flag)),
        ((mask, 1), (np.bool_(flag), 1)),
        ((..., mask), (..., np.bool_(flag))),
        ((None, mask), (None, np.bool_(flag))),
        ((mask, slice(0, 1)), (np.bool_(flag), slice(0, 1))),
    ]:
        np.testing.assert_array_equal(x[key].numpy(), a[want])
        y, b = x.clone(), a.copy()
        y[key] = -1.0
        b[want] = -1.0
        np.testing.assert_array_equal(y.numpy(), b)
    assert clew.tensor(5.0)[mask].shape == (on,)


@pytest.mark.filterwarnings("ignore:indexing with dtype")
@pytest.mark.parametrize("dtype", [clew.bool, clew.uint8])
def test_index_put_with_a_mask_without_dimensions(dtype):
    x = clew.arange(6.0).reshape(2, 3)
    minus = clew.tensor(-1.0)
    assert x.index_put((_mask(1, dtype),), minus).tolist() == [[-1.0] * 3] * 2
    assert x.index_put((_mask(0, dtype),), minus).tolist() == x.tolist()
    assert x.index_put((_mask(1, dtype),), minus, accumulate=True).tolist() == (x - 1).tolist()
    one = x.index_put((_mask(1, dtype), clew.tensor([1])), minus)
    assert one.tolist() == [[0, 1, 2], [-1] * 3]
    leaf = x.clone().requires_grad_()
    value = minus.clone().requires_grad_()
    y = leaf * 1
    y.index_put_((_mask(1, dtype), clew.tensor([1])), value)
    y.sum().backward()
    assert leaf.grad.tolist() == [[1.0] * 3, [0.0] * 3] and value.grad.item() == 3
    with pytest.raises(IndexError, match="broadcast"):
        x.index_put((_mask(0, dtype), clew.tensor([0, 1])), minus)


def test_uint8_masks_warn():
    x = clew.arange(3.0)
    mask = clew.tensor([1, 0, 2], dtype=clew.uint8)
    with pytest.warns(UserWarning, match="uint8 is now deprecated"):
        assert x[mask].tolist() == [0, 2]
    with pytest.warns(UserWarning, match="uint8 is now deprecated"):
        x[mask] = 7.0
    with pytest.warns(UserWarning, match="uint8 is now deprecated"):
        assert x.index_put((mask,), clew.tensor(8.0)).tolist() == [8, 1, 8]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = x.tolist()
        with pytest.raises(UserWarning):
            x[mask] = 9.0
        assert x.tolist() == before


def test_a_key_of_false_assigns_nothing():
    x = clew.arange(3.0)
    x[False] = clew.ones(2)
    assert x.tolist() == [0, 1, 2]
