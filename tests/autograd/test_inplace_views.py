"""In-place writes, version counters, views, and in-place on views."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from leaves import leaf

import clew


def test_versions_are_shared_by_views():
    x = clew.zeros(4)
    v = x[1:3]
    d = x.detach()
    assert x._version == v._version == d._version == 0
    v.add_(1)
    assert x._version == v._version == d._version == 1
    d.mul_(2)
    assert x._version == 2
    x.data.fill_(9.0)
    assert x._version == 2
    assert x[0].item() == 9.0


@pytest.mark.parametrize("through_view", [False, True])
def test_a_view_that_was_written_follows_a_base_that_becomes_a_leaf(through_view):
    x = clew.ones(2, 3)
    v = x[0]
    (v if through_view else x).mul_(2)
    x.requires_grad_()
    assert v.requires_grad and not v.is_leaf
    (v * clew.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [[1, 2, 3], [0, 0, 0]]
    with pytest.raises(RuntimeError, match="leaf"):
        v.add_(1)
    w, d = x.view(-1), x.detach()
    with clew.no_grad():
        x.add_(1)  # as an optimizer does
    assert not d.requires_grad and not (d * 2).requires_grad
    x.grad = None
    (w * w).sum().backward()
    assert x.grad.tolist() == (2 * x).tolist()
    other = clew.ones(3)
    apart = other[:2]
    apart.mul_(2)
    apart.data = clew.full((2,), 5.0)  # no view of it any more
    other.requires_grad_()
    assert not (apart * 2).requires_grad


def test_write_to_saved_input_is_caught():
    x = leaf([1.0, 2.0])
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(
        RuntimeError, match="modified by an inplace operation.*version 1; expected version 0"
    ):
        z.sum().backward()


def test_write_to_saved_output_is_caught():
    x = leaf([1.0, 2.0])
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="output 0 of ExpBackward0"):
        y.sum().backward()


def test_write_through_a_view_is_caught():
    x = leaf([1.0, 2.0])
    y = x * 1
    z = y.sin()
    y[0] = 5.0
    with pytest.raises(RuntimeError, match="inplace"):
        z.sum().backward()


def test_inplace_on_leaf_is_refused():
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="view of a leaf Variable that requires grad"):
        x[0].mul_(2)
    with pytest.raises(RuntimeError, match="leaf"):
        x[0] = 1.0
    with clew.no_grad():
        x.add_(1)
    np.testing.assert_array_equal(x.detach().numpy(), [2.0, 3.0])


def test_inplace_continues_history():
    x = leaf([1.0, 2.0])
    y = x * 1
    y.mul_(3)
    y.add_(x)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [4.0, 4.0])


@pytest.mark.parametrize("name", ["sin_", "exp_", "sigmoid_", "tanh_", "sqrt_", "square_", "log_"])
def test_inplace_gradient_equals_out_of_place(name):
    x = leaf([0.5, 1.5])
    y = x * 1
    assert getattr(y, name)() is y
    y.sum().backward()
    x2 = leaf([0.5, 1.5])
    getattr(x2, name[:-1])().sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), x2.grad.numpy())


def test_inplace_binary_saves_the_old_value():
    x = leaf([1.0, 2.0])
    y = x * 1
    y.mul_(y)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 4.0])


def test_inplace_on_view_reaches_the_base():
    x = leaf([1.0, 2.0, 3.0])
    base = x * 1
    view = base[1:]
    view.mul_(10)
    base.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 10.0, 10.0])


def test_inplace_on_base_reaches_the_view():
    x = leaf([1.0, 2.0, 3.0])
    base = x * 1
    view = base[1:]
    base.mul_(5)
    view.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 5.0, 5.0])


def test_write_of_a_differentiable_value_into_a_plain_tensor():
    w = leaf(2.0)
    a = clew.zeros(3, dtype=clew.float64)
    view = a[2]
    a[1] = w * 3
    assert a.requires_grad and view.requires_grad
    (a * clew.tensor([1.0, 10.0, 100.0], dtype=clew.float64)).sum().backward()
    assert w.grad.item() == 30.0


def test_views_of_views_and_transposes():
    x = leaf(np.arange(6.0).reshape(2, 3))
    base = x * 1
    base.t()[1:].view(-1, 2)[0].mul_(7)
    base.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[1, 7, 1], [1, 7, 1]])


def test_inplace_on_view_second_order():
    def f(x):
        y = x * 1
        y[1:].mul_(y[:-1].clone())
        y[0].sin_()
        return y.exp()

    x = leaf([0.3, 0.4, 0.5])
    assert clew.autograd.gradcheck(f, (x,))
    assert clew.autograd.gradgradcheck(f, (x,))


def test_no_grad_view_written_in_grad_mode_is_refused():
    x = leaf([1.0, 2.0])
    base = x * 1
    with clew.no_grad():
        view = base[0]
    with pytest.raises(RuntimeError, match="no_grad mode"):
        view.mul_(2)


@pytest.mark.parametrize(
    "split", [lambda t: t.unbind(), lambda t: t.split(1), lambda t: t.chunk(2)]
)
def test_multi_output_view_written_in_place_is_refused(split):
    x = leaf([1.0, 2.0])
    base = x * 1
    part = split(base)[0]
    with pytest.raises(RuntimeError, match="multiple views"):
        part.mul_(2)


def test_expanded_target_is_refused():
    with pytest.raises(RuntimeError, match="single memory location"):
        clew.zeros(1).expand(3).add_(1)


def test_overlapping_source_and_target():
    x, a = clew.arange(6.0), clew.arange(9.0).view(3, 3)
    for write in (lambda: x[1:].copy_(x[:-1]), lambda: a.add_(a.t())):
        with pytest.raises(RuntimeError, match="single memory location"):
            write()
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    # Elements side by side, and those whose order decides nothing.
    x[::2].add_(x[1::2])
    assert x.tolist() == [1, 1, 5, 3, 9, 5]
    a.add_(a)
    np.testing.assert_array_equal(a.numpy(), 2 * np.arange(9.0).reshape(3, 3))


def test_inplace_type_rules():
    x = clew.ones(2, dtype=clew.int64)
    with pytest.raises(RuntimeError, match="can't be cast"):
        x.add_(0.5)
    with pytest.raises(RuntimeError, match="can't be cast"):
        x /= 2
    with pytest.raises(RuntimeError, match="broadcast shape"):
        x.add_(clew.ones(3, 2, dtype=clew.int64))


def test_base_and_is_view():
    x = clew.zeros(2, 3)
    v = x.view(6)[1:]
    assert v._base is x
    assert x._base is None
    assert x.detach()._base is None


def test_detach_inplace():
    x = leaf([1.0])
    y = x * 2
    y.detach_()
    assert not y.requires_grad and y.is_leaf


def test_data_assignment():
    x = leaf([1.0, 2.0])
    x.data = clew.tensor([5.0, 6.0, 7.0], dtype=clew.float64)
    assert x.shape == (3,)
    assert x.requires_grad


def complex_leaf():
    return clew.tensor([1 + 2j, 3 - 4j], dtype=clew.complex128, requires_grad=True)


def add_real(z):
    z.real.add_(1)


def imag_by_real(z):
    z.imag.mul_(z.real.clone())


def set_parts(z):
    z.real = clew.tensor([2.0, 0.5], dtype=clew.float64)
    z.imag = z.imag * 2


def one_pair(z):
    clew.view_as_real(z)[1].exp_()


@pytest.mark.parametrize("write", [add_real, imag_by_real, set_parts, one_pair])
def test_recorded_writes_through_the_parts_of_complex_numbers(write):
    def f(z):
        y = z * (0.7 + 0.4j)
        part = y.imag
        write(y)
        return (y * part * part).abs()

    assert clew.autograd.gradcheck(f, (complex_leaf(),))
    assert clew.autograd.gradgradcheck(f, (complex_leaf(),))


def test_recorded_write_through_a_complex_view_of_pairs():
    def f(x):
        y = x * 2
        clew.view_as_complex(y.view(3, 2)[1:]).mul_(clew.tensor(1 + 3j, dtype=clew.complex128))
        return y**2

    x = clew.arange(6, dtype=clew.float64).requires_grad_()
    assert clew.autograd.gradcheck(f, (x,))


def test_parts_of_a_leaf_are_not_written():
    with pytest.raises(RuntimeError, match="a view of a leaf"):
        complex_leaf().imag.add_(1)


def test_write_through_a_view_of_another_dtype_is_refused_when_recorded():
    y = leaf([1.0, 2.0]) * 1
    with pytest.raises(RuntimeError, match="another dtype"):
        y.view(clew.int64).add_(2)
    plain = clew.tensor([1.0 + 2.0j])
    plain.real.mul_(2)
    plain.imag = 7.0
    assert plain.tolist() == [2 + 7j]


def test_second_derivative_through_a_write_into_a_view():
    """exp_ saves its result; the write's node and the base's both lead to it."""
    x = clew.tensor([0.1, -0.5, 0.3, 0.9], dtype=clew.float64, requires_grad=True)
    y = x * 1
    y.view(2, 2).exp_()
    (g,) = clew.autograd.grad(y.sin().sum(), x, create_graph=True)
    (h,) = clew.autograd.grad(g.sum(), x)
    e = x.detach().exp()
    assert h.allclose(e.cos() * e - e.sin() * e * e, atol=1e-12)


def test_a_view_of_a_leaf_that_is_a_view_is_not_written():
    whole = clew.ones(4, dtype=clew.float64)
    x = whole.view(2, 2).requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf"):
        x.view(4).mul_(2)
    with clew.no_grad():
        x.view(4).mul_(2)
    assert x.is_leaf and x.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    y = x * 1
    y.view(4).mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [[3.0, 3.0], [3.0, 3.0]]


@pytest.mark.parametrize("function", ["member", "result_name"])
def test_what_was_written_may_change_while_its_message_is_made(monkeypatch, function):
    # Names are found by Python code, and meanwhile another thread may give the tensor other data.
    x = clew.ones(3, requires_grad=True)
    value = x.exp() if function == "result_name" else clew.ones(3)
    out = (x * value).sum()
    value.detach().add_(1)

    def renamed(*place):
        value.data = clew.zeros(5)
        return ""

    monkeypatch.setattr(importlib.import_module("clew._insight.explain"), function, renamed)
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        out.backward()
    assert value.shape == (5,)


def test_as_subclass_is_a_view():
    class Named(clew.Tensor):
        pass

    for back in (False, True):
        x = clew.ones(3, requires_grad=True)
        y = x * 2
        if back:
            y = y.as_subclass(Named)
        z = y.as_subclass(clew.Tensor if back else Named)
        assert type(z) is (clew.Tensor if back else Named) and z._is_view()
        z.mul_(3)
        y.sum().backward()
        assert x.grad.tolist() == [6.0, 6.0, 6.0]
        x.grad = None
        y = x * 2
        z = y.as_subclass(Named)
        y.mul_(z.detach())  # and a write to the base reaches the view
        clew.sum(z).backward()
        assert x.grad.tolist() == [4.0, 4.0, 4.0]
    leaf = clew.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.as_subclass(Named).mul_(2)
    assert leaf.detach().as_subclass(Named).requires_grad_().is_leaf


@pytest.mark.parametrize(
    "split",
    [
        lambda x: clew.unsafe_chunk(x, 2, -1),
        lambda x: clew.unsafe_split(x, 2, 1),
        lambda x: x.unsafe_split_with_sizes([2, 2], 1),
    ],
)
@pytest.mark.parametrize("leaf", [False, True])
def test_parts_of_an_unsafe_split_may_be_written_to(split, leaf):
    w = clew.arange(8.0).reshape(2, 4).requires_grad_()
    x = w if leaf else w * 1
    first, second = split(x)
    first.mul_(second)
    (g,) = clew.autograd.grad(first.sum(), w)
    values = w.detach()
    assert clew.equal(g[:, :2], values[:, 2:]) and clew.equal(g[:, 2:], values[:, :2])
    assert [t.shape for t in split(w.detach())] == [(2, 2), (2, 2)]
    assert split(values)[1].data_ptr() == values[:, 2:].data_ptr()
