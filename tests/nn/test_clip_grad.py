"""Norms and clipping of many gradients at once: dtypes, layouts, sizes, and what does not fit the
native pass.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import clew
from clew.nn.utils import clip_grad_norm_, clip_grad_value_, get_total_norm

DTYPES = (clew.float32, clew.float64, clew.bfloat16, clew.float16)
TOLERANCE = {clew.float32: 1e-6, clew.float64: 1e-12, clew.bfloat16: 1e-2, clew.float16: 2e-3}


def parameters(dtype, sizes=((3, 4), (), (0, 2), (20011,), (257,))):
    clew.manual_seed(1)
    params = []
    for size in sizes:
        p = clew.zeros(size, dtype=dtype, requires_grad=True)
        p.grad = clew.randn(size).to(dtype)
        params.append(p)
    params.append(clew.zeros(2, requires_grad=True))  # without a gradient
    return params


def flat(params):
    grads = [p.grad.double().numpy().ravel() for p in params if p.grad is not None]
    return np.concatenate(grads)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, 0.5, math.inf])
def test_norms(dtype, order):
    sizes = ((3, 4), (), (257,)) if order == math.inf else ((3, 4), (), (0, 2), (2011,), (257,))
    params = parameters(dtype, sizes)
    if order == 0.5:
        params = parameters(dtype, ((3,), ()))
    want = np.linalg.norm(flat(params), order)
    got = get_total_norm([p.grad for p in params if p.grad is not None], order)
    assert got.dtype == dtype and got.shape == ()
    assert got.item() == pytest.approx(want, rel=3 * TOLERANCE[dtype])


def test_old_name_passes_all_on():
    p = clew.zeros(2, requires_grad=True)
    p.grad = clew.tensor([math.inf, 1.0])
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="non-finite"):
        clew.nn.utils.clip_grad_norm([p], 1.0, error_if_nonfinite=True)
    p.grad = clew.tensor([3.0, -4.0])
    with pytest.warns(FutureWarning):
        assert clew.nn.utils.clip_grad_norm([p], 3.5, 1.0).item() == 7
    assert p.grad.tolist() == pytest.approx([1.5, -2.0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_clipping_by_norm(dtype):
    params = parameters(dtype)
    before = flat(params)
    norm = np.linalg.norm(before)
    versions = [p.grad._version for p in params if p.grad is not None]
    got = clip_grad_norm_(params, 2.5)
    assert got.item() == pytest.approx(norm, rel=2 * TOLERANCE[dtype])
    np.testing.assert_allclose(
        flat(params), before * (2.5 / norm), rtol=3 * TOLERANCE[dtype], atol=1e-4
    )
    assert [p.grad._version for p in params if p.grad is not None] == [v + 1 for v in versions]
    after = flat(params)
    clip_grad_norm_(params, 1e6)
    assert (flat(params) == after).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_clipping_by_value(dtype):
    params = parameters(dtype)
    params[0].grad[0, 0] = math.nan
    params[0].grad[0, 1] = -math.inf
    before = flat(params)
    bound = 0.5
    clip_grad_value_(params, bound)
    np.testing.assert_array_equal(flat(params), np.clip(before, -bound, bound))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("order", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("at", [0, 8192, 20010])
def test_what_is_not_finite_is_seen_everywhere(bad, order, at):
    params = parameters(clew.float32)
    params[3].grad[at] = bad
    norm = get_total_norm([p.grad for p in params[:-1]], order).item()
    assert math.isnan(norm) if math.isnan(bad) else norm == math.inf
    with pytest.raises(RuntimeError, match="non-finite") as e:
        clip_grad_norm_(params, 1.0, order, error_if_nonfinite=True)
    grads = [p.grad for p in params if p.grad is not None]
    index = next(i for i, g in enumerate(grads) if g is params[3].grad)
    shape = list(params[3].shape)
    assert f"\n  gradient {index}: float32{shape} in [" in str(e.value)
    assert str(e.value).endswith(f", 1 {'NaN' if math.isnan(bad) else 'inf'}")
    clip_grad_norm_(params, 1.0, order)
    assert math.isnan(params[3].grad[at].item())


def test_squares_that_overflow():
    p = clew.zeros(4, requires_grad=True)
    p.grad = clew.full((4,), 1e30)
    assert clip_grad_norm_(p, 1.0).item() == pytest.approx(2e30)
    assert p.grad.tolist() == pytest.approx([0.5] * 4)


def test_transposed_and_strided_gradients():
    dense, strided = clew.zeros(3, 4, requires_grad=True), clew.zeros(3, 2, requires_grad=True)
    dense.grad = clew.arange(12.0).reshape(4, 3).t()
    strided.grad = clew.arange(12.0).reshape(3, 4)[:, ::2]
    want = np.linalg.norm(flat([dense, strided]))
    before = flat([dense, strided])
    assert clip_grad_norm_([dense, strided], 1.0).item() == pytest.approx(want)
    np.testing.assert_allclose(flat([dense, strided]), before / want, rtol=1e-5)


def test_one_gradient_twice_is_clipped_twice():
    p, q = clew.zeros(2, requires_grad=True), clew.zeros(2, requires_grad=True)
    p.grad = q.grad = clew.tensor([3.0, 4.0])
    total = clip_grad_norm_([p, q], 1.0)
    assert total.item() == pytest.approx(math.sqrt(50))
    assert p.grad.tolist() == pytest.approx([3 / 50, 4 / 50], rel=1e-5)
    # Views of one buffer do not overlap: each is clipped once.
    buffer = clew.tensor([3.0, 4.0, 12.0])
    p.grad, q.grad = buffer[:2], None
    r = clew.zeros(1, requires_grad=True)
    r.grad = buffer[2:]
    clip_grad_norm_([p, r], 1.0)
    assert buffer.tolist() == pytest.approx([3 / 13, 4 / 13, 12 / 13], rel=1e-5)


def test_gradients_with_a_graph():
    x = clew.tensor([3.0, 4.0], requires_grad=True)
    (x**2).sum().backward(create_graph=True)
    clip_grad_norm_([x], 1.0)
    assert x.grad.tolist() == pytest.approx([0.6, 0.8], rel=1e-5)


def test_norms_do_not_depend_on_threads():
    grads = [clew.randn(100_003), clew.randn(77, 999)]
    before = clew.get_num_threads()
    found = set()
    try:
        for n in (1, 2, 3, 8):
            clew.set_num_threads(n)
            found.add(get_total_norm(grads).item())
    finally:
        clew.set_num_threads(before)
    assert len(found) == 1


def test_iterators_and_single_parameters():
    params = parameters(clew.float32)
    want = np.linalg.norm(flat(params))
    assert clip_grad_norm_(iter(params), 1e9).item() == pytest.approx(want)
    clip_grad_value_(params[0], 0.0)
    assert params[0].grad.abs().sum().item() == 0
    assert get_total_norm([]).item() == 0
    assert clip_grad_norm_([params[-1]], 1.0).item() == 0
    with pytest.raises(TypeError):
        clip_grad_value_([3], 1.0)


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize(
    ("dtypes", "want"),
    [
        ((clew.float16, clew.float32), clew.float32),
        ((clew.float32, clew.float64), clew.float64),
        ((clew.float16, clew.bfloat16), clew.float32),
    ],
)
def test_the_norm_of_mixed_dtypes_is_of_the_wider_one(dtypes, want, order):
    params = []
    for dtype in dtypes:
        p = clew.zeros(3, dtype=dtype, requires_grad=True)
        p.grad = clew.full((3,), 1e6 if params else 1e-3, dtype=dtype)
        params.append(p)
    norm = clip_grad_norm_(params, 1e5, order)
    assert norm.dtype == want
    assert norm.item() == pytest.approx(np.linalg.norm([1e6] * 3, order), rel=1e-2)
    assert params[1].grad.float().norm(order).item() == pytest.approx(1e5, rel=1e-2)


def test_a_used_up_generator_is_warned_of():
    model = clew.nn.Linear(2, 2)
    params = model.parameters()
    list(params)
    with pytest.warns(UserWarning, match="empty generator"):
        assert clip_grad_norm_(params, 1.0).item() == 0
