"""clew.testing: what assert_close accepts and says, what make_tensor draws."""

from __future__ import annotations

import numpy as np
import pytest

import clew
from clew.testing import assert_allclose, assert_close, make_tensor

nan = float("nan")


@pytest.mark.parametrize(
    ("a", "b", "options"),
    [
        (clew.ones(2), clew.ones(2) + 1e-6, {}),
        (clew.ones(2, dtype=clew.float64), clew.ones(2, dtype=clew.float64) + 1e-8, {}),
        (clew.tensor([1, 2]), clew.tensor([1, 2]), {}),
        (clew.tensor([nan]), clew.tensor([nan]), {"equal_nan": True}),
        (nan, nan, {"equal_nan": True}),
        (clew.ones(2), clew.ones(2, dtype=clew.float64), {"check_dtype": False}),
        (clew.ones(2), clew.full((2,), 1.5), {"rtol": 0.4, "atol": 0.0}),
        ([1, (2.0, clew.ones(1))], (1, [2.0, clew.ones(1)]), {}),
        ({"a": 1, "b": [None]}, {"b": [None], "a": 1}, {}),
        (np.ones(3), np.ones(3), {}),
        (1, 1.0, {"check_dtype": False}),
        (float("inf"), float("inf"), {}),
        (clew.zeros(0), clew.zeros(0), {}),
        (clew.nn.Parameter(clew.ones(2)), clew.ones(2), {}),
        (clew.ones(2, 3).t(), clew.ones(3, 2), {}),
    ],
)
def test_close(a, b, options):
    assert_close(a, b, **options)


@pytest.mark.parametrize(
    ("a", "b", "options", "say"),
    [
        (clew.ones(2), clew.ones(2) + 1e-4, {}, "Mismatched elements: 2 / 2"),
        (clew.tensor([1, 5]), clew.tensor([1, 2]), {}, r"difference: 3 at index \(1,\)"),
        (clew.ones(2), clew.ones(3), {}, "'shape'"),
        (clew.ones(2), clew.ones(2).double(), {}, "'dtype'"),
        (clew.ones(2, 3).t(), clew.ones(3, 2), {"check_stride": True}, "stride"),
        (clew.tensor([nan]), clew.tensor([nan]), {}, "not close"),
        (nan, nan, {}, "not close"),
        (1, 2, {}, "Expected 2 but got 1"),
        (1, 1.0, {}, "types do not match"),
        (float("inf"), 1.0, {}, "not close"),
        ([1], [1, 2], {}, "length"),
        ({"a": 1}, {"b": 1}, {}, "keys"),
        ([[0, 1]], [[0, 3]], {}, r"item \[0\]\[1\]"),
        (None, 1, {}, "None"),
        (clew.tensor([True, False]), clew.tensor([True, True]), {}, "1 / 2"),
        (clew.tensor(1 + 1j), clew.tensor(1 + 2j), {}, "not close"),
        (clew.tensor([2**62]), clew.tensor([-(2**62)]), {}, str(2**63)),
    ],
)
def test_not_close(a, b, options, say):
    with pytest.raises(AssertionError, match=say):
        assert_close(a, b, **options)


def test_messages_and_refusals():
    with pytest.raises(AssertionError, match="^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match="^so: Scalars"):
        assert_close(1, 2, msg=lambda text: "so: " + text)
    with pytest.raises(ValueError, match="atol"):
        assert_close(1.0, 1.0, rtol=1e-3)
    for a, b in [("a", "a"), (clew.ones(1), [1.0]), (clew.ones(1), np.ones(1)), (1, "1")]:
        with pytest.raises(TypeError):
            assert_close(a, b)
    with pytest.raises(TypeError):
        assert_close(clew.nn.Parameter(clew.ones(2)), clew.ones(2), allow_subclasses=False)
    with pytest.warns(FutureWarning):
        assert_allclose([1.0, nan], clew.tensor([1.0, nan], dtype=clew.float64))


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (clew.bool, 0, 1),
        (clew.uint8, 0, 9),
        (clew.int8, -9, 9),
        (clew.int64, -9, 9),
        (clew.float16, -9, 9),
        (clew.bfloat16, -9, 9),
        (clew.float32, -9, 9),
        (clew.float64, -9, 9),
    ],
)
def test_make_tensor_defaults(dtype, low, high):
    clew.manual_seed(0)
    t = make_tensor(40, 25, dtype=dtype, device="cpu")
    values = t.double()
    assert t.dtype is dtype and t.shape == (40, 25) and t.is_contiguous()
    assert values.min() >= low and values.max() <= high
    spread = (high - low) * (0.5 if dtype is not clew.bool else 1)
    assert values.max() - values.min() >= spread


def test_make_tensor_options():
    t = make_tensor((3, 4), dtype=clew.float32, device="cpu", noncontiguous=True)
    assert not t.is_contiguous() and t.shape == (3, 4)
    t = make_tensor([100], dtype=clew.int32, device="cpu", low=0, high=2, exclude_zero=True)
    assert t.eq(1).all()
    t = make_tensor(50, dtype=clew.uint8, device="cpu", low=-500, high=500)
    assert t.max() > 60
    t = make_tensor((), dtype=clew.complex64, device="cpu", requires_grad=True)
    assert t.requires_grad and t.is_leaf and t.dtype is clew.complex64
    t = make_tensor(1, 2, 3, 4, dtype=clew.float32, device="cpu", memory_format=clew.channels_last)
    assert t.is_contiguous(memory_format=clew.channels_last)
    t = make_tensor(9, dtype=clew.float32, device="cpu", low=-float("inf"), high=float("inf"))
    assert t.isfinite().all()
    for bad in (
        {"low": 2, "high": 1},
        {"low": nan},
        {"requires_grad": True},
        {"noncontiguous": True, "memory_format": clew.contiguous_format},
    ):
        with pytest.raises(ValueError, match="make_tensor"):
            make_tensor(2, dtype=clew.int64, device="cpu", **bad)


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_sparse_tensors(layout):
    x = getattr(clew.eye(3), layout)()
    clew.testing.assert_close(x, x.clone())
    clew.testing.assert_close(x, clew.eye(3), check_layout=False)
    with pytest.raises(AssertionError, match="not close"):
        clew.testing.assert_close(x, x * 2)
    with pytest.raises(AssertionError, match="places of the elements"):
        clew.testing.assert_close(x, getattr(clew.ones(3, 3), layout)())
    twice = clew.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,))
    clew.testing.assert_close(twice, clew.tensor([3.0, 0.0]).to_sparse())


def test_ragged_tensors():
    x = clew.nested.nested_tensor([clew.ones(2), clew.ones(3)])
    gaps = clew.nested.narrow(clew.ones(2, 4), 1, clew.tensor([1, 0]), clew.tensor([2, 3]))
    clew.testing.assert_close(x, x.clone())
    clew.testing.assert_close(x, gaps)
    with pytest.raises(AssertionError, match="not close"):
        clew.testing.assert_close(x, x * 2)
