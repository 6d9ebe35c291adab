"""Recording, backward and grad: values by calculus, rules for leaves, roots and freed graphs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import clew


def leaf(value, **kwargs):
    return clew.tensor(value, dtype=clew.float64, requires_grad=True, **kwargs)


def test_polynomial_has_derivative_seven():
    x = leaf(2.0)
    y = x**2 + 3 * x + 1
    y.backward()
    assert y.item() == 11.0
    assert x.grad.item() == 7.0


def test_mlp_against_formula():
    rng = np.random.default_rng(0)
    x, w, v = rng.normal(size=(5, 3)), rng.normal(size=(3, 4)), rng.normal(size=(4, 1))
    tw, tv = leaf(w), leaf(v)
    loss = ((clew.tensor(x) @ tw).tanh() @ tv).square().mean()
    loss.backward()
    h = np.tanh(x @ w)
    o = h @ v
    do = 2 * o / o.size
    np.testing.assert_allclose(tv.grad.numpy(), h.T @ do)
    np.testing.assert_allclose(tw.grad.numpy(), x.T @ ((do @ v.T) * (1 - h**2)))


def test_recursion_makes_its_own_graph():
    def power(x, n):
        return clew.ones((), dtype=clew.float64) if n == 0 else x * power(x, n - 1)

    for n in (1, 2, 7):
        x = leaf(1.5)
        power(x, n).backward()
        assert math.isclose(x.grad.item(), n * 1.5 ** (n - 1))


@pytest.mark.parametrize(("value", "slope"), [(2.0, 3.0), (-2.0, -1.0)])
def test_branch_on_data(value, slope):
    x = leaf(value)
    y = 3 * x if x > 0 else -x
    y.backward()
    assert x.grad.item() == slope


def test_loop_whose_length_depends_on_data():
    x = leaf(1.3)
    y, n = x, 0
    while y < 10:
        y, n = y * x, n + 1
    y.backward()
    assert math.isclose(x.grad.item(), (n + 1) * 1.3**n)


def test_gradients_accumulate_and_zero():
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [4.0, 8.0])
    x.grad = None
    (3 * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3.0, 3.0])


def test_same_tensor_twice_and_diamond():
    x = leaf(3.0)
    a = x * x
    (a * a + a).backward()
    assert x.grad.item() == 4 * 27 + 6


def test_gradient_argument_and_shapes():
    x = leaf([1.0, 2.0, 3.0])
    y = x * 2
    y.backward(clew.tensor([1.0, 0.0, -1.0], dtype=clew.float64))
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 0.0, -2.0])
    with pytest.raises(RuntimeError, match="implicitly created only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * 2).backward(clew.ones(2, dtype=clew.float64))


def test_roots_without_grad():
    with pytest.raises(RuntimeError, match="does not require grad"):
        clew.ones(()).backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        clew.autograd.grad(clew.ones(()), [leaf(1.0)])


def test_second_backward_explains():
    x = leaf(2.0)
    y = x * x
    y.backward()
    with pytest.raises(
        RuntimeError, match=r"(?s)backward through the graph a second time.*retain_graph=True"
    ):
        y.backward()
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 12.0


def test_addition_saves_nothing_and_may_run_twice():
    x = leaf(2.0)
    y = x + x
    y.backward()
    y.backward()
    assert x.grad.item() == 4.0


def test_grad_leaves_dot_grad_alone():
    x, z = leaf(2.0), leaf(5.0)
    (gx,) = clew.autograd.grad(x**3, x)
    assert gx.item() == 12.0
    assert x.grad is None
    with pytest.raises(RuntimeError, match="not have been used in the graph"):
        clew.autograd.grad(x * 2, [x, z])
    got = clew.autograd.grad(x * 2, [x, z], allow_unused=True)
    assert got[1] is None
    got = clew.autograd.grad(x * 2, [x, z], materialize_grads=True)
    assert got[1].item() == 0.0


def test_grad_of_intermediate_prunes_the_rest():
    x = leaf(2.0)
    ran = []

    class Watch(clew.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t * 1

        @staticmethod
        def backward(ctx, g):
            ran.append(1)
            return g

    mid = Watch.apply(x) * 3
    (g,) = clew.autograd.grad(mid * mid, mid)
    assert g.item() == 12.0
    assert not ran


def test_backward_with_inputs():
    x, w = leaf(2.0), leaf(3.0)
    clew.autograd.backward(x * w, inputs=[w])
    assert x.grad is None
    assert w.grad.item() == 2.0


def test_create_graph_any_order():
    x = leaf(1.2)
    f = x.sin()
    expect = [math.cos(1.2), -math.sin(1.2), -math.cos(1.2), math.sin(1.2)]
    for want in expect:
        (f,) = clew.autograd.grad(f, x, create_graph=True)
        assert math.isclose(f.item(), want, rel_tol=1e-12)


def test_is_grads_batched():
    x = leaf([1.0, 2.0])
    (rows,) = clew.autograd.grad(x * x, x, clew.eye(2, dtype=clew.float64), is_grads_batched=True)
    np.testing.assert_array_equal(rows.numpy(), [[2.0, 0.0], [0.0, 4.0]])


def test_leaf_rules():
    x = leaf([1.0])
    y = x * 2
    assert x.is_leaf and x.grad_fn is None
    assert not y.is_leaf and y.requires_grad
    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf"):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="floating point"):
        clew.tensor([1]).requires_grad_()
    assert not x.detach().requires_grad
    assert x.detach().data_ptr() == x.data_ptr()


def test_retain_grad():
    x = leaf(2.0)
    y = x * 3
    y.retain_grad()
    assert y.retains_grad
    (y * y).backward()
    assert y.grad.item() == 12.0
    with pytest.warns(UserWarning, match="not a leaf"):
        assert (x * 1).grad is None


def test_retained_gradients_add_up():
    x = leaf([1.0, 2.0])
    y = x * 3
    y.retain_grad()
    loss = (y * y).sum()
    loss.backward(retain_graph=True)
    before = y.grad
    loss.backward()
    assert before.tolist() == [6.0, 12.0]
    assert y.grad.tolist() == [12.0, 24.0]


def test_backward_into_what_is_no_leaf(recwarn):
    x = leaf([1.0, 2.0])
    for retain in (False, True):
        y = x * 3
        if retain:
            y.retain_grad()
        loss = (y * 2).sum()
        loss.backward(inputs=[y], retain_graph=True)
        assert y.grad.tolist() == [2.0, 2.0]
        loss.backward(inputs=[y])
        assert y.grad.tolist() == [4.0, 4.0]
        assert x.grad is None
    assert not recwarn.list


def test_a_leaf_that_asks_no_more_gets_no_gradient():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    loss = (x * w).sum()
    x.requires_grad_(False)
    loss.backward()
    assert x.grad is None
    assert w.grad.tolist() == [1.0, 2.0]


def test_graph_can_be_walked():
    x, w = leaf(2.0), leaf(3.0)
    y = x * w + x
    assert y.grad_fn.name() == "AddBackward0"
    mul, x_edge = y.grad_fn.next_functions
    assert mul[0].name() == "MulBackward0"
    assert x_edge[0].name() == "AccumulateGrad"
    assert x_edge[0].variable is x
    assert mul[0] is y.grad_fn.next_functions[0][0]
    assert mul[0]._saved_other is w
    y.grad_fn.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}


def test_million_operations_without_recursion():
    x = clew.ones(1, requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0
    del y


def test_long_chain_with_saved_outputs_is_freed():
    x = clew.zeros(1, requires_grad=True)
    y = x
    for _ in range(200_000):
        y = y.sigmoid()
    before = clew.memory_stats()["live_bytes"]
    assert before >= 200_000 * 4
    del y
    assert clew.memory_stats()["live_bytes"] < before - 199_000 * 4


def test_saved_tensors_are_freed_as_backward_goes():
    x = clew.zeros(1024, 256, requires_grad=True)
    y = x
    for _ in range(10):
        y = y.exp().tanh()
    loss = y.sum()
    base = clew.memory_stats()["live_bytes"]
    del y
    clew.reset_peak_memory_stats()
    loss.backward()
    assert clew.memory_stats()["peak_bytes"] <= base + 4 * 1024 * 256 * 4
    assert clew.memory_stats()["live_bytes"] <= base - 15 * 1024 * 256 * 4


def test_broadcast_gradients_are_summed():
    a, b = leaf(np.ones((3, 1))), leaf(np.ones(4))
    (a * b).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), np.full((3, 1), 4.0))
    np.testing.assert_array_equal(b.grad.numpy(), np.full(4, 3.0))


def test_mixed_dtypes_give_gradients_of_their_own_dtype():
    a = clew.ones(2, dtype=clew.float32, requires_grad=True)
    b = clew.ones(2, dtype=clew.float64, requires_grad=True)
    (a * b).sum().backward()
    assert a.grad.dtype is clew.float32
    assert b.grad.dtype is clew.float64


def test_complex_gradient_convention():
    z = clew.tensor(1.0 + 2.0j, requires_grad=True)
    (z * z.conj()).real.backward()
    assert z.grad.item() == 2 * (1.0 + 2.0j)
    x = clew.tensor(3.0, requires_grad=True)
    (x * (1.0 + 2.0j)).real.backward()
    assert x.grad.item() == 1.0


def test_grad_assignment_is_checked():
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="shape"):
        x.grad = clew.ones(3, dtype=clew.float64)
    with pytest.raises(RuntimeError, match="dtype"):
        x.grad = clew.ones(2)
    with pytest.raises(TypeError):
        x.grad = 1.0
    x.grad = clew.ones(2, dtype=clew.float64)
    x.grad = None


def test_first_gradient_is_not_shared_with_the_seed():
    x = leaf([1.0, 2.0])
    seed = clew.ones(2, dtype=clew.float64)
    (x + 0).backward(seed)
    seed.zero_()
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 1.0])


def test_two_leaves_do_not_share_one_gradient_buffer():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (a + b).sum().backward()
    a.grad.zero_()
    np.testing.assert_array_equal(b.grad.numpy(), [1.0, 1.0])
