"""Cases that once went wrong: stale views, pass-through Functions, unrequested hooks, refusals."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from leaves import leaf

import clew
from clew.autograd import Function


def test_grad_through_a_stale_view_equals_backward():
    w = clew.tensor([2.0, 3.0], dtype=clew.float64)

    def f(a):
        b = a * 1
        v, v2 = b[1:], b[:2]
        v.mul_(w)
        v2.exp_()
        return (v2 * v.sum()).sum()

    a = leaf([1.0, 1.0, 1.0])
    (got,) = clew.autograd.grad(f(a), a)
    f(a).backward()
    np.testing.assert_allclose(got.numpy(), a.grad.numpy())
    assert clew.autograd.gradcheck(f, (a,))
    x = leaf([1.0, 1.0, 1.0])
    b = x * 1
    v = b[0:1]
    b.mul_(2)
    assert clew.autograd.grad((v * 3).sum(), x)[0].tolist() == [6.0, 0.0, 0.0]


def test_real_view_follows_writes_to_its_base():
    x = clew.ones(2, dtype=clew.complex64, requires_grad=True)
    b = x * 1
    r = clew.view_as_real(b)
    b.mul_(2)
    r.sum().backward()
    assert x.grad.tolist() == [2 + 2j, 2 + 2j]
    z = clew.zeros(1, dtype=clew.complex64)
    r = z.real
    w = clew.ones(1, dtype=clew.complex64, requires_grad=True)
    z.add_(w)
    with pytest.raises(RuntimeError):
        r.backward(clew.ones(3))


class Identity(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g


def test_output_that_is_an_input_is_not_written():
    a = leaf([1.0])
    x = a * 2
    y = Identity.apply(x)
    with pytest.raises(RuntimeError, match="custom Function"):
        y.mul_(3)
    with pytest.raises(RuntimeError):
        Identity.apply(a).mul_(3)
    assert a.tolist() == [1.0]


def test_view_from_forward_whose_base_is_written():
    class First(Function):
        @staticmethod
        def forward(ctx, x):
            return x[:1]

        @staticmethod
        def backward(ctx, g):
            return clew.cat([10 * g, 0 * g])

    b = leaf([1.0, 2.0]) * 1
    y = First.apply(b)
    b.mul_(2)
    with pytest.raises(RuntimeError, match="override the custom backward"):
        y.sum().backward()


def test_input_returned_and_saved():
    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = leaf(3.0)
    (g,) = clew.autograd.grad(Both.apply(x), x, create_graph=True)
    (h,) = clew.autograd.grad(g, x)
    assert (g.item(), h.item()) == (6.0, 2.0)


def test_calling_a_node():
    x = leaf([1.0, 2.0])
    node = (x * 2).grad_fn
    assert node(None) == (None, None)
    assert node(clew.ones(2, dtype=clew.float64))[0].tolist() == [2.0, 2.0]
    with pytest.raises(TypeError):
        node("text")


def test_unrequested_nodes_run_no_hooks():
    x, w = leaf([1.0]), leaf([2.0])
    fired = []
    w.register_hook(lambda g: fired.append("w"))
    m = w * 2
    m.retain_grad()
    clew.autograd.grad((x * m * w).sum(), x)
    assert not fired
    assert m.grad is None


def test_backward_with_inputs_adds_in_place_once_and_runs_hooks():
    x = leaf([1.0, 2.0])
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    (x * 3).sum().backward(inputs=[x, x])
    kept = x.grad
    (x * 3).sum().backward(inputs=[x])
    assert x.grad is kept
    assert seen == [[3.0, 3.0], [6.0, 6.0]]


def test_data_of_the_same_shape_keeps_the_leaf_in_its_graphs():
    p = leaf([1.0, 2.0])
    loss = (p * 2).sum()
    p.data = p.data.clone()
    assert clew.autograd.grad(loss, p)[0].tolist() == [2.0, 2.0]


def test_refused_inplace_writes_change_nothing():
    with clew.inference_mode():
        i = clew.ones(2, dtype=clew.float64) * 3
    a = leaf([1.0, 1.0])
    x = a * 1
    with pytest.raises(RuntimeError, match="[Ii]nference"):
        x.mul_(i)
    assert x.tolist() == [1.0, 1.0]
    x.sum().backward()
    assert a.grad.tolist() == [1.0, 1.0]


def test_copy_refuses_what_it_cannot_do():
    with pytest.raises(RuntimeError, match="meta"):
        clew.zeros(2).copy_(clew.ones(2, device="meta"))
    with pytest.raises(RuntimeError, match="device"):
        clew.add(clew.ones(2, device="meta"), 1, out=clew.zeros(2))
    with pytest.raises(RuntimeError, match="single memory location"):
        clew.zeros(1).expand(3).copy_(clew.arange(3.0))
    t = clew.zeros(2)
    assert t.copy_(non_blocking=True, src=clew.tensor([5.0, 6.0])).tolist() == [5.0, 6.0]
    with pytest.raises(TypeError):
        t.copy_(clew.ones(2), nonsense=True)


def test_inference_mode_off_records_again():
    x = leaf([1.0])
    with clew.inference_mode(), clew.inference_mode(False):
        assert (x * 2).requires_grad
    assert clew.is_grad_enabled() and not clew.is_inference_mode_enabled()


def test_multi_grad_hook_keeps_backward_calls_apart():
    a, b = leaf([1.0]), leaf([2.0])
    every, first = [], []
    clew.autograd.graph.register_multi_grad_hook(
        [a, b], lambda grads: every.append([g if g is None else g.item() for g in grads])
    )
    clew.autograd.graph.register_multi_grad_hook([a, b], first.append, mode="any")
    (a * 2).sum().backward()
    (b * 5).sum().backward()
    assert every == [[2.0, None], [None, 5.0]] and len(first) == 2
    (a * b).sum().backward()
    assert every[2:] == [[2.0, 1.0]] and len(first) == 3
    (leaf([1.0]) * 2).sum().backward()
    assert len(every) == 3


def test_multi_grad_hook_in_a_backward_inside_another():
    a, b = leaf([1.0]), leaf([2.0])
    every, first = [], []
    clew.autograd.graph.register_multi_grad_hook(
        [a, b], lambda grads: every.append([g if g is None else g.item() for g in grads])
    )
    clew.autograd.graph.register_multi_grad_hook(
        [a, b], lambda g: first.append(g.item()), mode="any"
    )
    middle, inner = a * 3, (b * 7).sum()
    middle.register_hook(lambda g: inner.backward())
    (middle + b * 5).sum().backward()
    assert every == [[None, 7.0], [3.0, 5.0]]
    assert len(first) == 2 and 7.0 in first


def test_a_failed_backward_leaves_nothing_to_a_multi_grad_hook():
    a, b = leaf([1.0]), leaf([2.0])
    every = []
    clew.autograd.graph.register_multi_grad_hook([a, b], lambda grads: every.append(grads))
    b_twice = b * 2

    def fail(grad):
        raise ValueError("stop")

    b_twice.register_hook(fail)
    with pytest.raises(ValueError, match="stop"):
        (b_twice + a).sum().backward()
    assert not every
    (a * 2).sum().backward()
    assert [g if g is None else g.item() for g in every[0]] == [2.0, None]


def test_a_multi_grad_hook_does_not_keep_the_graph_of_its_tensors():
    a = leaf([1.0]) * 2
    b = a * 3
    clew.autograd.graph.register_multi_grad_hook([a, b], lambda grads: None)
    kept = weakref.ref(a), weakref.ref(b)
    del a, b
    gc.collect()
    assert [t() for t in kept] == [None, None]


def test_more_outputs_than_sixteen_bits_count():
    x = clew.zeros(70_000, requires_grad=True)
    parts = x.unbind()
    (parts[69_999] * 3 + parts[1] * 2).backward()
    assert x.grad[69_999].item() == 3.0
    assert x.grad.sum().item() == 5.0


def test_absurd_numbers_of_parts_are_refused():
    with pytest.raises(RuntimeError, match="parts"):
        clew.zeros(0).chunk(2**40)
    with pytest.raises(RuntimeError, match="parts|memory"):
        clew.zeros(1).expand(2**40).unbind()
