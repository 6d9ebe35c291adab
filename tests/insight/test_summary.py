"""clew.debug.summary: one line for a tensor, counted against NumPy."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

import clew
from clew import _C, nn
from clew.debug import summary


def numbers(text: str) -> list[float]:
    """Low, high, mean and std of a line."""
    found = re.search(r"in \[(\S+), (\S+)\], mean ([^\s,]+), std ([^\s,]+)", text)
    assert found, text
    return [float(g) for g in found.groups()]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int16", "uint8"])
def test_statistics_are_those_of_numpy(dtype):
    data = np.random.default_rng(0).integers(0, 100, (30, 40)).astype(np.float64)
    data += 0.25 * ("float" in dtype)
    t = clew.tensor(data).to(getattr(clew, dtype))
    data = t.double().numpy()
    expected = [data.min(), data.max(), data.mean(), data.std(ddof=1)]
    text = summary(t)
    assert text.startswith(f"{dtype}[30, 40] in [")
    np.testing.assert_allclose(numbers(text), expected, rtol=2e-3)
    np.testing.assert_allclose(
        numbers(summary(t.t()[::2])),
        [data.T[::2].min(), data.T[::2].max(), data.T[::2].mean(), data.T[::2].std(ddof=1)],
        rtol=2e-3,
    )


def test_pieces_add_up():
    rng = np.random.default_rng(1)
    data = rng.normal(1000.0, 1e-3, 200_000)  # a variance that sums of squares would lose
    low, high, mean, std = numbers(summary(clew.tensor(data)))
    assert mean == 1000 and std == pytest.approx(data.std(ddof=1), rel=1e-3)
    assert low <= high
    data = rng.normal(size=200_000).astype(np.float32)
    data[70_000] = np.nan
    data[150_000] = -np.inf
    text = summary(clew.tensor(data))
    good = data[np.isfinite(data)].astype(np.float64)
    np.testing.assert_allclose(
        numbers(text), [good.min(), good.max(), good.mean(), good.std(ddof=1)], rtol=2e-3
    )
    assert text.endswith(", 1 NaN, 1 inf")


def test_special_values():
    assert summary(clew.full((20,), clew.nan)) == "float32[20], 20 NaN"
    assert summary(clew.zeros(20)) == "float32[20], all 0"
    assert summary(clew.tensor([1.5] * 19 + [clew.inf])) == "float32[20], else all 1.5, 1 inf"
    assert summary(clew.tensor([1.0, clew.nan, -clew.inf])) == ("float32[3] = [1, nan, -inf]")
    biggest = clew.finfo(clew.float64).max
    assert "in [-1.798e+308, 1.798e+308]" in summary(
        clew.tensor([biggest, -biggest] * 5, dtype=clew.float64)
    )


def test_every_dtype_and_shape():
    assert summary(clew.tensor(3.5)) == "float32[] = 3.5"
    assert summary(clew.tensor([[1, 2], [3, 4]])) == "int64[2, 2] = [[1, 2], [3, 4]]"
    assert summary(clew.zeros(0, 3)) == "float32[0, 3], empty"
    assert summary(clew.tensor([True, False])) == "bool[2] = [True, False]"
    assert summary(clew.arange(20) < 5) == "bool[20], 5 of 20 true"
    assert summary(clew.tensor([1 + 2j])) == "complex64[1] = [1+2j]"
    assert summary(clew.tensor([3 + 4j, 0j] * 5)) == "complex64[10] abs in [0, 5], mean 1.5+2j"
    assert summary(clew.tensor([1.5], dtype=clew.bfloat16)) == "bfloat16[1] = [1.5]"
    assert summary(clew.tensor([2**63], dtype=clew.uint64)) == f"uint64[1] = [{2**63}]"
    assert summary(clew.ones(2, 3, device="meta")) == "float32[2, 3], on meta: no values"
    assert summary(clew.ones(3, 1).expand(3, 9)) == "float32[3, 9], all 1"
    assert summary(clew.ones(10, dtype=clew.complex64).conj()).startswith(
        "complex64[10] abs in [1, 1]"
    )
    with clew.inference_mode():
        assert summary(clew.ones(9)) == "float32[9], all 1, inference"
    for dtype in (clew.int8, clew.uint16, clew.uint32, clew.int32, clew.complex128):
        assert summary(clew.ones(9, dtype=dtype)).startswith(dtype.name)


def test_where_it_comes_from():
    class Doubles(nn.Module):
        def forward(self, x):
            return x * 2

    x = clew.ones(9, requires_grad=True)
    assert summary(x) == "float32[9], all 1, requires_grad"
    y = nn.Sequential(Doubles())(x)
    line = Doubles.forward.__code__.co_firstlineno + 1
    place = rf"made by mul at \S*test_summary\.py:{line} \(module 0\)$"
    assert re.search(rf"^float32\[9\], all 2, requires_grad, {place}", summary(y))
    z = y.detach()
    here = test_where_it_comes_from.__code__.co_firstlineno + 11
    assert re.search(rf", detached at \S*test_summary\.py:{here}$", summary(z))
    with clew.no_grad():
        assert ", computed under no_grad at " in summary(x * 3)
    assert ", cut off by gt at " in summary(x > 0)
    net = nn.Linear(2, 3)
    net(clew.ones(1, 2))
    assert summary(net.bias).endswith(", requires_grad, bias of Linear")


def test_looking_changes_nothing():
    x = clew.ones(9, requires_grad=True)
    y = x.exp()
    version, refs = y._version, y.grad_fn
    for t in (x, y, x.data, y.detach(), y.bfloat16()):
        summary(t)
    assert _C._cut_of(x) is None and _C._cut_of(y) is None
    assert y._version == version and y.grad_fn is refs
    y.sum().backward()
    assert x.grad is not None


def test_inside_vmap():
    seen = []

    def f(x):
        seen.append(str(summary(x)))
        return x * 2

    clew.vmap(f)(clew.arange(12.0).view(4, 3))
    assert seen == ["float32[3] for each of 4 samples in [0, 11], mean 5.5, std 3.606"]
    kept = []
    clew.vmap(lambda x: kept.append(x) or x)(clew.ones(2, 3))
    assert summary(kept[0]).startswith("float32[3]")  # of a vmap that is over, too


def test_collections():
    net = nn.Linear(2, 1)
    lines = summary(net).split("\n")
    assert [line.partition(":")[0] for line in lines] == ["weight", "bias"]
    assert lines[0].startswith("weight: float32[1, 2] = [[") and lines[0].endswith("requires_grad")
    text = summary({"a": [clew.ones(1), {"b": 1}], "betas": (0.9, 0.99), "c": {}, "": clew.ones(1)})
    assert text.split("\n") == [
        "a[0]: float32[1] = [1]",
        "a[1].b: 1",
        "betas: (0.9, 0.99)",
        "c: empty dict",
        "float32[1] = [1]",
    ]
    assert summary(net.state_dict()).startswith("weight: float32[1, 2]")
    assert summary("x" * 200).endswith("...") and len(summary("x" * 200)) == 80
    assert summary(np.arange(3.0)) == "numpy float64[3] = [0, 1, 2]"
    assert repr(summary(3)) == "3" and isinstance(summary(3), str)


def test_in_messages_of_a_subclass():
    class Mine(clew.Tensor):
        pass

    assert summary(clew.ones(1).as_subclass(Mine)) == "Mine float32[1] = [1]"


def test_large_tensors_are_read_once():
    t = clew.ones(4_000_000)
    start = time.process_time()
    summary(t)
    assert time.process_time() - start < 1.0
    clew.reset_peak_memory_stats()
