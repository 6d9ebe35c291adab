"""Small writes by index and into out=, which take shorter ways than large ones."""

from __future__ import annotations

import numpy as np
import pytest

import clew

DTYPES = [clew.float32, clew.float64, clew.bfloat16, clew.int32, clew.int64, clew.uint8]


def small(shape, dtype):
    return clew.randint(0, 9, shape).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_index_add_of_repeated_places(dtype, strided, dim):
    clew.manual_seed(1)
    index = clew.tensor([1, 0, 1, 1])
    size = [3, 3]
    size[dim] = 4
    x, source = small((3, 3), dtype), small(size, dtype)
    if strided:
        x, source = x.t(), source.t().contiguous().t()
    want = x.float().numpy().copy()
    np.add.at(
        want, (index.numpy(),) if dim == 0 else (slice(None), index.numpy()), source.float().numpy()
    )
    version = x._version
    x.index_add_(dim, index, source)
    assert x._version == version + 1
    np.testing.assert_array_equal(x.float().numpy(), want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("add", [False, True])
def test_scatter(dtype, dim, add):
    clew.manual_seed(2)
    shape = (4, 5) if dim == 0 else (5, 4)
    x, index = small((3, 5) if dim == 0 else (5, 3), dtype), clew.randint(0, 3, shape)
    src = small(shape, dtype)
    want = x.float().numpy().copy()
    for i, j in np.ndindex(*shape):
        at = (index[i, j].item(), j) if dim == 0 else (i, index[i, j].item())
        want[at] = src[i, j].item() + (want[at] if add else 0)
    (x.scatter_add_ if add else x.scatter_)(dim, index, src)
    np.testing.assert_array_equal(x.float().numpy(), want)


@pytest.mark.parametrize("bad", [-1, 3])
def test_nothing_is_written_where_an_index_is_out_of_range(bad):
    x, index = clew.zeros(3), clew.tensor([0, bad])
    for write in (
        lambda: x.index_add_(0, index, clew.ones(2)),
        lambda: x.scatter_add_(0, index, clew.ones(2)),
        lambda: x.scatter_(0, index, clew.ones(2)),
    ):
        with pytest.raises((IndexError, RuntimeError), match=f"index {bad} is out of bounds"):
            write()
    assert x.tolist() == [0.0] * 3 and x._version == 0


def test_what_is_recorded_or_forbidden_takes_the_long_way():
    x, index = clew.zeros(3), clew.tensor([0, 0, 2])
    source = clew.ones(3, requires_grad=True)
    (x + 0).index_add_(0, index, source * 2).backward(clew.tensor([1.0, 10.0, 100.0]))
    assert source.grad.tolist() == [2.0, 2.0, 200.0]
    leaf = clew.zeros(3, requires_grad=True)
    for write in (
        lambda: leaf.index_add_(0, index, clew.ones(3)),
        lambda: leaf.scatter_add_(0, index, clew.ones(3)),
        lambda: leaf[:].scatter_add_(0, index, clew.ones(3)),
    ):
        with pytest.raises(RuntimeError, match="leaf"):
            write()
    with pytest.raises(RuntimeError, match=r"index_add_.*single memory location"):
        clew.zeros(1).expand(3).index_add_(0, index, clew.ones(3))
    x = clew.zeros(3)
    with pytest.raises(RuntimeError, match="single memory location"):
        x.index_add_(0, index, x)
    x.scatter_add_(0, clew.tensor([0, 0, 0]), x + 1)
    assert x.tolist() == [3.0, 0.0, 0.0]


def test_out_of_elementwise_operations():
    a, b = clew.tensor([1.0, 4.0]), clew.tensor([2.0, 2.0])
    out = clew.zeros(2)
    assert clew.add(a, b, out=out) is out and out.tolist() == [3.0, 6.0]
    assert clew.sqrt(b * 2, out=out) is out and out.tolist() == [2.0, 2.0]
    assert clew.mul(a, b, out=a) is a and a.tolist() == [2.0, 8.0]
    assert clew.add(a, b, alpha=3, out=out).tolist() == [8.0, 14.0]
    half = clew.zeros(2, dtype=clew.bfloat16)
    assert clew.add(a, b, out=half) is half and half.tolist() == [4.0, 10.0]
    with pytest.raises(RuntimeError, match="can't be cast"):
        clew.add(a, b, out=clew.zeros(2, dtype=clew.int64))
    with pytest.warns(UserWarning, match="resized"):
        assert clew.add(a, b, out=clew.zeros(1)).tolist() == [4.0, 10.0]
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        clew.add(a.requires_grad_(), b, out=out)
    with clew.no_grad():
        assert clew.add(a, b, out=out).tolist() == [4.0, 10.0] and not out.requires_grad
    whole = clew.arange(4.0)
    with pytest.raises(RuntimeError, match="memory"):
        clew.exp(whole[:3], out=whole[1:])


def test_errors_name_the_function_that_was_called():
    part, source = clew.zeros(4).chunk(2)[0], clew.ones(1, requires_grad=True)
    for name in ("index_add_", "index_copy_"):
        with pytest.raises(RuntimeError, match=f"^{name}: output 0"):
            getattr(part, name)(0, clew.tensor([0]), source)
    mask, value = clew.tensor([True, False, True]), clew.tensor([1j])
    for name in ("index_put", "index_put_"):
        with pytest.raises(RuntimeError, match=f"^{name}: "):
            getattr(clew.zeros(3), name)((mask,), value)
