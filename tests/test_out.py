"""out=: results are written where they belong, and nothing else is made where they fit."""

from __future__ import annotations

import numpy as np
import pytest

import clew


def test_a_fitting_out_is_written_without_a_temporary():
    x, y, out = clew.rand(1000, 1000), clew.rand(1000, 1000), clew.empty(1000, 1000)
    w = clew.rand(64, 1000)
    small = clew.empty(1000, 64)
    before = out.data_ptr()
    assert clew.add(x, y, alpha=2, out=out) is out
    assert out.data_ptr() == before
    np.testing.assert_allclose(out.numpy(), x.numpy() + 2 * y.numpy(), rtol=1e-6)
    assert clew.mm(x, w.t(), out=small) is small
    np.testing.assert_allclose(small.numpy(), x.numpy() @ w.numpy().T, rtol=1e-4)
    assert clew.cat([x, y], out=clew.empty(2000, 1000)).shape == (2000, 1000)


def test_writing_counts_as_a_change():
    x = clew.rand(3)
    out = clew.empty(3)
    version = out._version
    clew.exp(x, out=out)
    assert out._version == version + 1


OVERLAP = "single memory location"


def test_out_may_be_an_input():
    base = clew.arange(10.0)
    want = base[:8].clone() * 3
    clew.mul(base[:8], 3, out=base[:8])
    assert clew.equal(base[:8], want)
    clew.add(base[::2], base[1::2], out=base[::2])  # side by side
    assert base[1::2].tolist() == [3.0, 9.0, 15.0, 21.0, 9.0]


@pytest.mark.parametrize(
    "write",
    [
        lambda x, y: clew.mul(x[:-1], 3, out=x[1:]),
        lambda x, y: clew.exp(x[1:], out=x[:-1]),
        lambda x, y: clew.add(y, y.t(), out=y),
        lambda x, y: x[1:].add_(x[:-1]),
        lambda x, y: x.add_(x[0]),
        lambda x, y: y.mul_(y.t()),
        lambda x, y: x[1:].copy_(x[:-1]),
        lambda x, y: x.__setitem__(slice(1, None), x[:-1]),
        lambda x, y: x.scatter_(0, clew.tensor([0, 1]), x[2:4]),
        lambda x, y: clew.gather(x, 0, clew.tensor([0, 2]), out=x[:2]),
        lambda x, y: clew.take(x, clew.tensor([0, 2]), out=x[:2]),
        lambda x, y: clew.cat([x[:5], x[5:]], out=x),
        lambda x, y: clew.stack([x[:3], x[3:6]], out=x[:6].view(2, 3)),
        lambda x, y: clew.mode(y, 0, out=(y[0], clew.empty(3, dtype=clew.int64))),
        lambda x, y: clew.aminmax(y, dim=0, out=(y[0], y[1])),
        lambda x, y: clew.max(y, 0, out=(y[0], clew.empty(3, dtype=clew.int64))),
        lambda x, y: clew.where(x > 2, x[0], x, out=x),
    ],
)
def test_memory_read_while_it_is_written_is_refused(write):
    x, y = clew.arange(10.0), clew.arange(9.0).reshape(3, 3)
    before = x.tolist(), y.tolist()
    with pytest.raises(RuntimeError, match=OVERLAP):
        write(x, y)
    assert (x.tolist(), y.tolist()) == before


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (lambda **k: clew.gather(clew.arange(3.0), 0, clew.tensor([0]), **k), clew.float64),
        (lambda **k: clew.multinomial(clew.ones(3), 1, **k), clew.int32),
        (lambda **k: clew.nonzero(clew.ones(1), **k), clew.float32),
        (lambda **k: clew.all(clew.ones(3), **k), clew.float32),
        (lambda **k: clew.any(clew.ones(3), **k), clew.int64),
        (lambda **k: clew.take(clew.ones(3), clew.tensor([0]), **k), clew.float64),
        (lambda **k: clew.argmax(clew.ones(3), **k), clew.float32),
        (lambda **k: clew.mm(clew.ones(1, 1), clew.ones(1, 1), **k), clew.float64),
        (lambda **k: clew.softmax(clew.ones(3), 0, **k), clew.float64),
        (lambda **k: clew.neg(clew.ones(3), **k), clew.float64),
        (lambda **k: clew.searchsorted(clew.arange(3), clew.tensor([1]), **k), clew.int32),
    ],
)
def test_out_of_another_dtype_is_refused_where_results_are_not_converted(make, dtype):
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        make(out=clew.empty(0, dtype=dtype))
    for pair in (
        lambda **k: clew.aminmax(clew.ones(3), **k),
        lambda **k: clew.mode(clew.ones(3), 0, **k),
        lambda **k: clew.sort(clew.ones(3), **k),
    ):
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
            pair(out=(clew.empty(0, dtype=clew.float64), clew.empty(0, dtype=clew.int64)))


def test_out_receives_converted_results():
    wide = clew.empty(0, dtype=clew.float64)
    assert clew.add(clew.ones(2), 1, out=wide).tolist() == [2, 2]
    assert clew.sum(clew.ones(2), out=clew.empty((), dtype=clew.float64)).item() == 2
    assert clew.cat([clew.ones(2)], out=clew.empty(2, dtype=clew.float64)).tolist() == [1, 1]
    assert clew.any(clew.ones(2), out=clew.empty((), dtype=clew.uint8)).item() == 1


def test_bounds_that_are_tensors_convert_their_result():
    """As PyTorch: those that are numbers do not."""
    x, out = clew.tensor([-1.0, 0.25, 3.0]), clew.empty(3, dtype=clew.float64)
    assert clew.clamp(x, clew.tensor(0.0), clew.tensor(1.0), out=out) is out
    assert out.tolist() == [0.0, 0.25, 1.0]
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float32"):
        clew.clamp(x, 0.0, 1.0, out=out)
    with pytest.raises(RuntimeError, match="can't be cast"):
        clew.clamp(x, clew.zeros(3), out=clew.empty(3, dtype=clew.int64))


def test_out_may_be_an_input_of_a_reduction_or_product():
    a = clew.rand(4, 4)
    want = a @ a
    clew.mm(a, a, out=a)
    assert clew.allclose(a, want)
    b = clew.rand(4, 4)
    want = b.cumsum(0)
    clew.cumsum(b, 0, out=b)
    assert clew.allclose(b, want)


def test_out_of_another_layout_or_dtype():
    x, y = clew.rand(4, 6), clew.rand(4, 6)
    turned = clew.empty(6, 4).t()
    clew.add(x, y, out=turned)
    assert clew.equal(turned, x + y)
    wide = clew.empty(4, 6, dtype=clew.float64)
    clew.add(x, y, out=wide)
    assert clew.equal(wide, (x + y).double())
    every_other = clew.zeros(4, 12)
    clew.sub(x, y, out=every_other[:, ::2])
    assert clew.equal(every_other[:, ::2], x - y) and every_other[:, 1::2].abs().sum() == 0
    resized = clew.empty(0)
    clew.add(x, y, out=resized)
    assert clew.equal(resized, x + y)


def test_out_keeps_the_sum_of_rows_and_the_softmax():
    x = clew.rand(5, 7)
    s, p = clew.empty(5), clew.empty(5, 7)
    clew.sum(x, 1, out=s)
    clew.softmax(x, 1, out=p)
    assert clew.equal(s, x.sum(1)) and clew.equal(p, x.softmax(1))


def test_large_results_are_the_same_streamed():
    # Larger than what stays in a cache: such results go past it, block by block.
    n = (9 << 20) + 37
    x, y = clew.rand(n), clew.rand(n)
    np.testing.assert_array_equal((x + y).numpy(), x.numpy() + y.numpy())
    np.testing.assert_array_equal((x < 0.5).numpy(), x.numpy() < 0.5)
    shifted = clew.empty(n + 3)[3:]
    clew.mul(x, 2, out=shifted)
    np.testing.assert_array_equal(shifted.numpy(), x.numpy() * 2)
    x.mul_(3)
    square = clew.rand(3001, 3003)
    np.testing.assert_array_equal(square.t().contiguous().numpy(), square.numpy().T)


@pytest.mark.parametrize(
    "dtype", [clew.uint8, clew.bfloat16, clew.float32, clew.float64, clew.complex128]
)
@pytest.mark.parametrize("shape", [(130, 67), (64, 64), (5, 200), (3, 4, 33, 70), (2, 37, 5, 6)])
def test_transposed_copies(shape: tuple[int, ...], dtype: clew.dtype):
    x = (clew.rand(shape) * 200).to(dtype)
    n = len(shape)
    orders = [tuple(reversed(range(n)))]
    if n == 4:
        orders += [(0, 2, 3, 1), (0, 3, 1, 2), (1, 0, 2, 3), (2, 3, 0, 1)]
    for order in orders:
        moved = x.permute(order)
        got = moved.contiguous()
        assert got.is_contiguous()
        assert got.tolist() == moved.tolist()
        back = clew.empty(shape, dtype=dtype).permute(order)
        back.copy_(got)
        assert clew.equal(back, moved)


def test_resizing_to_the_same_size_keeps_the_layout():
    part = clew.zeros(3, 4, 3)[..., 1]
    assert part.resize_(3, 4).stride() == (12, 3)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, out: clew.max(x, 0, out=out),
        lambda x, out: clew.median(x, 0, out=out),
        lambda x, out: clew.sort(x, out=out),
        lambda x, out: clew.topk(x, 1, out=out),
        lambda x, out: clew.kthvalue(x, 1, out=out),
        lambda x, out: clew.mode(x, out=out),
        lambda x, out: clew.cummax(x, 0, out=out),
    ],
)
def test_several_outputs_that_require_grad_are_refused(call):
    x = clew.arange(6.0).reshape(2, 3)
    out = clew.empty(0, requires_grad=True), clew.empty(0, dtype=clew.int64)
    with pytest.raises(RuntimeError, match="but out requires grad"):
        call(x, out)
    with clew.no_grad():
        assert call(x, out)[0] is out[0]


def unrecorded_view() -> clew.Tensor:
    """A part of a leaf that requires grad, taken where nothing is recorded."""
    leaf = clew.zeros(4, requires_grad=True)
    with clew.no_grad():
        return leaf[:3]


def made_for_inference() -> clew.Tensor:
    with clew.inference_mode():
        return clew.zeros(3)


X = clew.tensor([1.0, 2.0, 3.0])
WRITERS = {
    "elementwise": lambda o: clew.add(X, X, out=o),
    "converted": lambda o: clew.add(X, X.double(), out=o),
    "named arguments": lambda o: clew.add(X, X, alpha=2, out=o),
    "composite": lambda o: clew.cat([X[:1], X[1:]], out=o),
    "reduction": lambda o: clew.sum(X.view(1, 3), 0, out=o),
    "product": lambda o: clew.mv(clew.eye(3), X, out=o),
    "several": lambda o: clew.sort(X, out=(o, clew.empty(3, dtype=clew.int64))),
    "made": lambda o: clew.ones(3, out=o),
    "drawn": lambda o: clew.rand(3, out=o),
    "Python": lambda o: clew.linalg.multi_dot([clew.eye(3), clew.eye(3), X], out=o),
    "special": lambda o: clew.special.zeta(X + 1, X, out=o),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_part_of_a_leaf_is_not_written_where_gradients_are_recorded(name):
    out = unrecorded_view()
    with pytest.raises(RuntimeError, match=r"out=... arguments don't support.*requires? grad"):
        WRITERS[name](out)
    assert out.tolist() == [0, 0, 0] and out._version == 0
    with clew.no_grad():
        WRITERS[name](out)
    assert out._base.tolist() == [*out.tolist(), 0] and 0 not in out.tolist()
    assert out._version > 0


@pytest.mark.parametrize("name", WRITERS)
def test_inference_tensors_are_written_in_inference_mode_alone(name):
    out = made_for_inference()
    for mode in (clew.enable_grad(), clew.no_grad()):
        with mode, pytest.raises(RuntimeError, match="inference tensor outside InferenceMode"):
            WRITERS[name](out)
    assert out.tolist() == [0, 0, 0]
    with clew.inference_mode():
        WRITERS[name](out)
    assert 0 not in out.tolist() and out.is_inference()


def test_an_inference_tensor_that_is_refused_keeps_its_size():
    with clew.inference_mode():
        out = clew.zeros(3, dtype=clew.complex64)
    with pytest.raises(RuntimeError, match="InferenceMode"):
        clew.complex(clew.ones(5), clew.ones(5), out=out)
    assert out.shape == (3,)


def test_results_without_a_derivative_may_be_of_inputs_that_require_grad():
    w = X.clone().requires_grad_()
    mask, place = clew.empty(3, dtype=clew.bool), clew.empty((), dtype=clew.int64)
    assert clew.gt(w, 1, out=mask) is mask and mask.tolist() == [False, True, True]
    assert clew.eq(w, X, out=mask).all()
    assert clew.argmax(w, 0, out=place).item() == 2
    # Nor does the dtype of `out` give a comparison a derivative, or take one away from a sum.
    number = clew.empty(3)
    assert clew.gt(w, 1, out=number) is number and number.tolist() == [0, 1, 1]
    assert clew.logical_and(w, X - 1, out=number).tolist() == [0, 1, 1]
    for call in (
        lambda: clew.cumsum(w, 0, out=clew.empty(3, dtype=clew.int64)),
        lambda: clew.floor(w, out=clew.empty(3)),
        lambda: clew.complex(w, w, out=clew.empty(3, dtype=clew.complex64)),
        lambda: clew.polar(w, w, out=clew.empty(3, dtype=clew.complex64)),
    ):
        with pytest.raises(RuntimeError, match="one of the arguments requires grad"):
            call()


def test_functions_of_several_steps_give_out_the_history():
    """PyTorch writes the result with copy_, which is recorded."""
    a = clew.tensor([[2.0, 1.0], [0.5, 3.0]], requires_grad=True)
    calls = {
        "quantile": lambda x, out=None: clew.quantile(x, 0.3, out=out),
        "nanquantile": lambda x, out=None: clew.nanquantile(x, 0.3, out=out),
        "tensordot": lambda x, out=None: clew.tensordot(x, x, 1, out=out),
        "linalg.matrix_norm": lambda x, out=None: clew.linalg.matrix_norm(x, 1, out=out),
        "linalg.norm": lambda x, out=None: clew.linalg.norm(x, out=out),
        "linalg.cond": lambda x, out=None: clew.linalg.cond(x, out=out),
        "linalg.pinv": lambda x, out=None: clew.linalg.pinv(x, out=out),
        "linalg.tensorinv": lambda x, out=None: clew.linalg.tensorinv(x, ind=1, out=out),
        "view_copy": lambda x, out=None: clew.view_copy(x, (4,), out=out),
        "slice_scatter": lambda x, out=None: clew.slice_scatter(x, x[:1], 0, 1, 2, out=out),
    }
    for name, call in calls.items():
        (want,) = clew.autograd.grad(call(a).sum(), a)
        out = clew.empty(call(a).shape)
        assert call(a, out=out) is out and out.requires_grad, name
        (got,) = clew.autograd.grad(out.sum(), a)
        assert clew.equal(got, want), name
        with clew.no_grad():
            assert not call(a, out=clew.empty(out.shape)).requires_grad, name
        assert call(a, out=out) is out  # now no leaf
        with pytest.raises(RuntimeError, match="but out requires grad"):
            call(a, out=clew.empty(out.shape, requires_grad=True))


def test_functions_without_a_derivative_in_pytorch_write_out():
    x = clew.tensor([0.5, 1.5], requires_grad=True)
    out = clew.empty(2)
    clew.special.bessel_j0(x, out=out)
    assert clew.equal(out, clew.special.bessel_j0(x))
    assert clew.special.hermite_polynomial_h(x, 2, out=clew.empty(2)).tolist() == [-1.0, 7.0]
    parts = clew.empty(3), clew.empty(4)
    assert clew.histogram(x, 3, out=parts).hist is parts[0]
    assert parts[0].tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(RuntimeError, match="one of the arguments requires grad"):
        clew.special.gammainc(x, x, out=out)


@pytest.mark.parametrize("make", [clew.zeros, clew.empty, clew.rand, clew.eye])
def test_an_option_that_does_not_fit_out_is_refused(make):
    """It was left out of account, or out was."""
    out = clew.full((2, 2), 7.0)
    size = (2,) if make is clew.eye else (2, 2)
    with pytest.raises(RuntimeError, match="device meta does not match the device of out"):
        make(*size, out=out, device="meta")
    with pytest.raises(RuntimeError, match="layout"):
        make(*size, out=out, layout=clew.sparse_coo)
    assert out.tolist() == [[7.0, 7.0]] * 2
    assert make(*size, out=out, device="cpu", layout=clew.strided) is out
