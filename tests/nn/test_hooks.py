"""Hooks of modules: forward, backward, registration and global ones."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import pytest

import clew
from clew import nn
from clew.nn.modules import module as module_file


class Scale(nn.Module):
    def forward(self, x, by=2.0):
        return x * by


def test_forward_hooks_see_and_change():
    m, seen = Scale(), []

    def before(mod, args):
        seen.append(("before", mod is m, args))
        return (args[0] + 1,)

    def after(mod, args, out):
        seen.append(("after", mod is m, args))
        return out * 10

    h1, h2 = m.register_forward_pre_hook(before), m.register_forward_hook(after)
    assert m(clew.tensor(1.0)).item() == 40
    assert [s[0] for s in seen] == ["before", "after"] and all(s[1] for s in seen)
    assert seen[0][2][0].item() == 1 and seen[1][2][0].item() == 2
    h1.remove()
    assert m(clew.tensor(1.0)).item() == 20
    h2.remove()
    h2.remove()
    assert m(clew.tensor(1.0)).item() == 2


def test_hooks_with_kwargs_order_and_context():
    m, order = Scale(), []
    m.register_forward_pre_hook(lambda mod, a: order.append(1))
    m.register_forward_pre_hook(lambda mod, a: order.append(0), prepend=True)
    m.register_forward_pre_hook(
        lambda mod, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True
    )
    with m.register_forward_hook(lambda mod, a, k, out: out + k["by"], with_kwargs=True):
        assert m(clew.tensor(1.0), by=3.0).item() == 8
    assert m(clew.tensor(1.0), by=3.0).item() == 4
    assert order == [0, 1, 0, 1]
    bad = Scale()
    bad.register_forward_pre_hook(lambda mod, a, k: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        bad(1)


def test_always_call():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    m, seen = Fails(), []
    m.register_forward_hook(lambda mod, a, out: seen.append(("always", out)), always_call=True)
    m.register_forward_hook(lambda mod, a, out: seen.append("never"))
    with pytest.raises(ValueError, match="no"):
        m(1)
    assert seen == [("always", None)]


def test_full_backward_hooks():
    m, seen = Scale(), []

    def hook(mod, grad_in, grad_out):
        seen.append((grad_in, grad_out))
        return (grad_in[0] * 10,)

    def pre(mod, grad_out):
        return (grad_out[0] + 1,)

    m.register_full_backward_hook(hook)
    m.register_full_backward_pre_hook(pre)
    x = clew.tensor(3.0, requires_grad=True)
    m(x).backward()
    assert x.grad.item() == 40  # (1 + 1) * 2 * 10
    (grad_in, grad_out) = seen[0]
    assert grad_in[0].item() == 4 and grad_out[0].item() == 2


def test_full_backward_hook_without_a_learned_input():
    m, seen = nn.Linear(2, 1), []
    m.register_full_backward_hook(lambda mod, gi, go: seen.append((gi, go)))
    with pytest.warns(UserWarning, match="Linear: no input of the module requires grad"):
        m(clew.ones(1, 2)).sum().backward()
    assert seen[0][0] == (None,) and seen[0][1][0].item() == 1
    assert m.weight.grad is not None
    m.register_full_backward_hook(lambda mod, gi, go: (None,))  # may be said outright
    with pytest.warns(UserWarning, match="no input of the module requires grad"):
        m(clew.ones(1, 2)).sum().backward()
    assert len(seen) == 2


def test_full_backward_hook_sees_zeros_for_inputs_without_influence():
    class First(nn.Module):
        def forward(self, x, *others):
            return x * 2

    m, seen = First(), []
    m.register_full_backward_hook(lambda mod, gi, go: seen.append(gi))
    x, unused = clew.ones(3, requires_grad=True), clew.ones(2, requires_grad=True)
    m(x, clew.ones(2), unused, clew.tensor([1, 2]), 5, clew.tensor(True)).sum().backward()
    assert seen[0][0].tolist() == [2, 2, 2] and seen[0][4] is None
    assert [g.tolist() for g in seen[0][1:4]] == [[0, 0]] * 3 and not seen[0][5]
    assert [g.dtype for g in seen[0][1:4]] == [clew.float32, clew.float32, clew.int64]
    assert unused.grad.tolist() == [0, 0]


def test_backward_hooks_with_several_tensors_and_other_values():
    class Two(nn.Module):
        def forward(self, x, n, y):
            return x * n, "text", y + x

    m, seen = Two(), []
    m.register_full_backward_hook(lambda mod, gi, go: seen.append((gi, go)))
    x, y = clew.ones(2, requires_grad=True), clew.ones(2, requires_grad=True)
    a, text, b = m(x, 3, y)
    assert text == "text"
    (a.sum() + 2 * b.sum()).backward()
    gi, go = seen[0]
    assert gi[0].tolist() == [5, 5] and gi[1] is None and gi[2].tolist() == [2, 2]
    assert go[0].tolist() == [1, 1] and go[1] is None and go[2].tolist() == [2, 2]


def test_old_and_full_backward_hooks_do_not_mix():
    m = Scale()
    m.register_backward_hook(lambda mod, gi, go: None)
    with pytest.raises(RuntimeError, match="Cannot use both"):
        m.register_full_backward_hook(lambda mod, gi, go: None)
    x = clew.ones(1, requires_grad=True)
    m(x).sum().backward()
    assert x.grad.item() == 2


def test_wrong_number_of_gradients():
    m = Scale()
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0], gi[0]))
    with pytest.raises(RuntimeError, match="as many gradients"):
        m(clew.ones(1, requires_grad=True)).sum().backward()


def test_global_hooks():
    seen = []
    handles = [
        module_file.register_module_forward_pre_hook(lambda m, a: seen.append("pre")),
        module_file.register_module_forward_hook(lambda m, a, o: o + 1),
        module_file.register_module_full_backward_hook(lambda m, gi, go: seen.append("back")),
        module_file.register_module_full_backward_pre_hook(lambda m, go: seen.append("first")),
    ]
    try:
        x = clew.tensor(1.0, requires_grad=True)
        out = Scale()(x)
        assert out.item() == 3
        out.backward()
        assert seen == ["pre", "first", "back"]
    finally:
        for handle in handles:
            handle.remove()
    assert Scale()(clew.tensor(1.0)).item() == 2 and len(seen) == 3


def test_registration_hooks():
    names = []
    handles = [
        module_file.register_module_parameter_registration_hook(
            lambda m, n, p: names.append(("p", n))
        ),
        module_file.register_module_buffer_registration_hook(
            lambda m, n, b: names.append(("b", n))
        ),
        module_file.register_module_module_registration_hook(
            lambda m, n, c: names.append(("m", n))
        ),
    ]
    try:
        m = nn.Module()
        m.a = nn.Parameter(clew.ones(1))
        m.register_buffer("b", clew.ones(1))
        m.c = nn.ReLU()
    finally:
        for handle in handles:
            handle.remove()
    m.d = nn.ReLU()
    assert names == [("p", "a"), ("b", "b"), ("m", "c")]


def _double(mod, args, out):
    return out * 2


def test_hooks_are_copied_and_pickled():
    m = Scale()
    m.register_forward_hook(_double)
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert other(clew.tensor(1.0)).item() == 4


def test_removed_hooks_leave_no_cost():
    m = Scale()
    m.register_forward_hook(_double).remove()
    assert "_hooked" in vars(m) and m(1.0) == 2 and "_hooked" not in vars(m)
    handle = module_file.register_module_forward_hook(_double)
    assert m(1.0) == 4
    handle.remove()
    assert m(1.0) == 2 and "_hooked" not in vars(m)


def test_hooks_put_in_by_hand():
    m, other = Scale(), Scale()
    other.register_forward_hook(_double)
    m._forward_hooks = other._forward_hooks
    assert m(clew.tensor(1.0)).item() == 4


class Product(clew.nn.Module):
    def forward(self, a, b):
        return a * b


def test_full_backward_hooks_run_only_where_the_gradient_came_through_the_outputs():
    m, calls = Product(), []
    m.register_full_backward_hook(lambda m, gi, go: calls.append([g.tolist() for g in gi]))
    a = clew.tensor([1.0, 2.0], requires_grad=True)
    b = clew.tensor([3.0, 4.0], requires_grad=True)
    ga, gb = clew.autograd.grad(m(a, b).sum(), (a, b), create_graph=True)
    assert calls == [[[3.0, 4.0], [1.0, 2.0]]]
    (ga * gb).sum().backward()  # past the outputs
    assert len(calls) == 1 and a.grad.tolist() == [3.0, 4.0] and b.grad.tolist() == [1.0, 2.0]


def test_full_backward_hook_edits_the_first_gradient_only():
    m = Product()
    m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2, gi[1]))
    a = clew.tensor([1.0, 2.0], requires_grad=True)
    (g,) = clew.autograd.grad(m(a, a).sum(), a, create_graph=True)
    assert g.tolist() == [3.0, 6.0]
    (h,) = clew.autograd.grad(g.sum(), a)
    assert h.tolist() == [3.0, 3.0]


def test_what_is_not_recorded_passes_by_the_gates_of_backward_hooks():
    seen = []

    class Keeps(nn.Module):
        def forward(self, x):
            seen.append(x)
            return x * 2

    m = Keeps()
    m.register_full_backward_hook(lambda *_: None)
    x = clew.ones(2, requires_grad=True)
    with clew.no_grad():
        m(x)
    m(x)
    assert seen[0] is x and seen[1] is not x


def test_hooks_that_a_pickle_leaves_out_are_warned_of():
    x = clew.ones(2, requires_grad=True)
    plain = pickle.dumps(x)
    handle = x.register_hook(lambda g: 2 * g)
    with pytest.warns(UserWarning, match="backward hook .* will not be serialized"):
        assert pickle.dumps(x) == plain
    with pytest.warns(UserWarning, match="backward hook"):
        clew.save({"x": x}, io.BytesIO())
    handle.remove()

    @clew.utils.hooks.unserializable_hook
    def double(grad):
        return 2 * grad

    x.register_hook(double)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.dumps(x) == plain
    assert clew.autograd.grad(x.sum(), x)[0].tolist() == [2, 2]
