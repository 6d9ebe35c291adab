"""Checkpointing gives the same gradients, runs the function again, and finds when it differs."""

import os

import pytest

import clew
from clew import nn
from clew._torch import _more
from clew.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)


def value(n=3, seed=0):
    clew.manual_seed(seed)
    return clew.randn(n, dtype=clew.float64).requires_grad_()


def grad_of(f, x):
    y = f(x)
    (g,) = clew.autograd.grad(y.sum(), x)
    return y.detach(), g


@pytest.mark.parametrize("reentrant", [False, True])
def test_same_values_and_gradients(reentrant):
    def f(x):
        return (x.sin() * x).exp()

    x = value()
    y, g = grad_of(f, x)
    out = checkpoint(f, x, use_reentrant=reentrant)
    out.sum().backward()
    assert clew.equal(out.detach(), y) and clew.equal(x.grad, g)


@pytest.mark.parametrize(
    "part",
    [
        clew.nn.LayerNorm(3, elementwise_affine=False),
        clew.nn.BatchNorm1d(3, affine=False),
        clew.nn.GroupNorm(1, 3, affine=False),
        lambda x: (x.abs() + 1) ** (x / (x * x + 1)),
        lambda x: clew.nn.functional.mse_loss(x, x.sin()),
        lambda x: clew.logaddexp(x.logcumsumexp(0), x.atan2(x.exp())),
        lambda x: clew.nn.functional.normalize(x),
    ],
)
def test_a_rule_that_reads_a_tensor_twice_runs_the_function_once(part):
    runs = 0

    def f(x):
        nonlocal runs
        runs += 1
        return part(part(x) + x)

    x = clew.linspace(-1, 2, 12).view(4, 3).requires_grad_()
    y = checkpoint(f, x, use_reentrant=False)
    y.square().sum().backward()
    assert runs == 2
    (want,) = clew.autograd.grad(f(x).square().sum(), x)
    assert clew.allclose(x.grad, want)


def test_the_older_form_fills_no_grad_that_was_not_asked_for():
    x, w = value(), value(seed=1)
    y = checkpoint(lambda t: t * w, x, use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match="use_reentrant=False"):
        clew.autograd.grad(y, x, retain_graph=True)
    with pytest.raises(RuntimeError, match="use_reentrant=False"):
        y.backward(inputs=[x], retain_graph=True)
    assert x.grad is None and w.grad is None
    y.backward()
    assert clew.equal(x.grad, w) and clew.equal(w.grad, x)


def test_backwards_tell_whether_they_may_compute_again():
    class Asks(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            told.append(_more.find("autograd", "_is_checkpoint_valid")())
            if len(told) == 2:  # within a backward to given inputs
                with clew.enable_grad():
                    Asks.apply(y).sum().backward()
            return grad

    x, y, told = value(), value(), []
    Asks.apply(x).sum().backward()
    clew.autograd.grad(Asks.apply(x).sum(), x)
    Asks.apply(x).sum().backward()
    assert told == [True, False, False, True]


@pytest.mark.parametrize("reentrant", [False, True])
def test_function_runs_again_once(reentrant):
    runs = []

    def f(x):
        runs.append(clew.is_grad_enabled())
        return x.exp().sin()

    x = value()
    out = checkpoint(f, x, use_reentrant=reentrant)
    assert len(runs) == 1
    out.sum().backward()
    assert runs == [not reentrant, True]


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("preserve", [True, False])
def test_random_numbers_are_repeated(reentrant, preserve):
    masks = []

    def f(x):
        masks.append(clew.rand(5, dtype=clew.float64))
        return x * masks[-1]

    x = value(5)
    checkpoint(f, x, use_reentrant=reentrant, preserve_rng_state=preserve).sum().backward()
    assert clew.equal(masks[0], masks[1]) == preserve
    # What comes after backward is not disturbed.
    if preserve:
        clew.manual_seed(3)
        checkpoint(f, x, use_reentrant=reentrant).sum().backward()
        after = clew.rand(2)
        clew.manual_seed(3)
        clew.rand(5, dtype=clew.float64)
        assert clew.equal(after, clew.rand(2))
        loss = checkpoint(f, x, use_reentrant=reentrant).sum()
        clew.manual_seed(4)
        loss.backward()
        after = clew.rand(2)
        clew.manual_seed(4)
        assert clew.equal(after, clew.rand(2))


def test_early_stop_does_not_run_the_rest():
    ends = []

    def f(x):
        y = x.exp()
        ends.append(1)
        return y + 1

    x = value()
    checkpoint(f, x, use_reentrant=False).sum().backward()
    assert len(ends) == 1
    checkpoint(f, x, use_reentrant=False, early_stop=False).sum().backward()
    assert len(ends) == 3
    with set_checkpoint_early_stop(False):
        checkpoint(f, x, use_reentrant=False).sum().backward()
    assert len(ends) == 5


@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("inner", [False, True])
def test_a_derivative_inside_of_the_function(early_stop, inner):
    """It runs the function again before the first run has saved everything."""

    def f(x):
        return x.sin().exp().sin()

    def penalty(x):
        with clew.enable_grad():
            y = checkpoint(f, x, use_reentrant=False) if inner else f(x)
            (g,) = clew.autograd.grad(y.sum(), x, create_graph=True)
        return g * g

    x = value()
    (want,) = clew.autograd.grad(
        clew.autograd.grad(f(x).sum(), x, create_graph=True)[0].square().sum(), x
    )
    with set_checkpoint_early_stop(early_stop):
        _, got = grad_of(lambda x: checkpoint(penalty, x, use_reentrant=False), x)
    assert clew.allclose(got, want)


def test_keyword_arguments_and_structures():
    def f(x, *, scale, both):
        return {"a": x.sin() * scale, "b": [x * both[0]]}

    x, s = value(), value(3, 1)
    out = checkpoint(f, x, use_reentrant=False, scale=s, both=(2.0,))
    (out["a"].sum() + out["b"][0].sum()).backward()
    assert clew.allclose(x.grad, x.detach().cos() * s.detach() + 2)
    assert clew.allclose(s.grad, x.detach().sin())


def test_nested_checkpoints():
    counts = [0, 0]

    def inner(x):
        counts[1] += 1
        return x.sin().exp()

    def outer(x):
        counts[0] += 1
        y = checkpoint(inner, x.cos(), use_reentrant=False)
        return y.tanh()

    x = value()
    y, g = grad_of(lambda x: x.cos().sin().exp().tanh(), x)
    out = checkpoint(outer, x, use_reentrant=False)
    out.sum().backward()
    assert clew.allclose(x.grad, g) and clew.allclose(out.detach(), y)
    assert counts[0] >= 2 and counts[1] >= 2


def test_backward_twice_and_create_graph():
    x = value()
    out = checkpoint(lambda x: x.sin() * x, x, use_reentrant=False).sum()
    out.backward(retain_graph=True)
    first = x.grad.clone()
    out.backward()
    assert clew.allclose(x.grad, 2 * first)
    y = checkpoint(lambda x: x**3, x, use_reentrant=False).sum()
    (g,) = clew.autograd.grad(y, x, create_graph=True)
    (h,) = clew.autograd.grad(g.sum(), x)
    assert clew.allclose(h, 6 * x.detach())


def test_nothing_is_recorded_without_gradients():
    with clew.no_grad():
        out = checkpoint(lambda x: x.sin(), value(), use_reentrant=False)
    assert not out.requires_grad


def test_a_different_second_run_is_found():
    runs = []

    def more(x):
        runs.append(1)
        return x.sin().exp() if len(runs) == 1 else x.sin()

    out = checkpoint(more, value(), use_reentrant=False)
    with pytest.raises(CheckpointError, match="saved 2 tensors at first and 1"):
        out.sum().backward()

    runs.clear()

    def shape(x):
        runs.append(1)
        return (x if len(runs) == 1 else x[:2]).sin().sum()

    out = checkpoint(shape, value(), use_reentrant=False)
    with pytest.raises(CheckpointError, match="saved tensor 0 was"):
        out.backward()
    runs.clear()
    with set_checkpoint_debug_enabled(True):
        out = checkpoint(shape, value(), use_reentrant=False)
    with pytest.raises(CheckpointError, match="first run, saved tensor 0"):
        out.backward()


def test_debug_shows_the_lines_of_the_program_also_in_deep_modules():
    runs = []

    class Varies(nn.Module):
        def forward(self, x):
            runs.append(1)
            return (x if len(runs) == 1 else x[:2]).sin()  # varies

    net = Varies()
    for _ in range(12):
        net = nn.Sequential(net)
    out = checkpoint(net, value(), use_reentrant=False, debug=True)  # the call
    with pytest.raises(CheckpointError) as e:
        out.sum().backward()  # backward
    first, second = str(e.value).split("second run")
    assert "# varies" in first and "# the call" in first
    assert "# varies" in second and "# backward" in second
    library = os.path.dirname(clew.__file__)
    assert library not in str(e.value)


def test_selective_contexts_of_neither_rule_nor_list():
    with pytest.raises(TypeError, match=r"create_selective_checkpoint_contexts: .*got int"):
        create_selective_checkpoint_contexts(3)


def test_contexts_surround_the_runs():
    log = []

    class Note:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            log.append(self.name)

        def __exit__(self, *exc):
            log.append("end " + self.name)

    x = value()
    out = checkpoint(
        lambda x: x.sin(),
        x,
        use_reentrant=False,
        context_fn=lambda: (Note("first"), Note("second")),
    )
    out.sum().backward()
    assert log == ["first", "end first", "second", "end second"]


def test_bad_arguments():
    x = value()
    with pytest.warns(UserWarning, match="state use_reentrant"):
        checkpoint(clew.sin, x)
    with pytest.warns(UserWarning, match="state use_reentrant"):
        checkpoint_sequential([clew.sin, clew.cos], 2, x)
    with pytest.raises(ValueError, match="unexpected keyword"):
        checkpoint(clew.sin, x, use_reentrant=True, foo=1)
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(clew.sin, x, use_reentrant=False, determinism_check="maybe")
    with pytest.raises(ValueError, match="context_fn"):
        checkpoint(clew.sin, x, use_reentrant=True, context_fn=lambda: None)
    with pytest.warns(UserWarning, match="requires_grad=True"):
        checkpoint(clew.sin, x.detach(), use_reentrant=True)
    with pytest.raises(ValueError, match="segments"):
        checkpoint_sequential([clew.sin], 3, x, use_reentrant=False)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_sequential(reentrant, segments):
    calls = []

    def layer(i):
        def run(x):
            calls.append(i)
            return (x * (i + 1)).sin()

        return run

    layers = [layer(i) for i in range(5)]
    x = value()

    def plain(x):
        for f in layers:
            x = f(x)
        return x

    y, g = grad_of(plain, x)
    calls.clear()
    out = checkpoint_sequential(layers, segments, x, use_reentrant=reentrant)
    out.sum().backward()
    assert clew.allclose(out.detach(), y) and clew.allclose(x.grad, g)
    size = 5 // segments
    again = size * (segments - 1)
    assert len(calls) >= 5 + max(0, again - 1) and calls[:5] == list(range(5))


def test_a_saved_tensor_written_in_the_second_run_is_no_silent_wrong_gradient():
    def part(x):
        h = x.exp()
        h += 1
        return h * h

    x = clew.ones(2, requires_grad=True)
    y = checkpoint(part, x, use_reentrant=False)
    with pytest.raises(RuntimeError, match="modified by an inplace") as e:
        y.sum().backward()
    first = part.__code__.co_firstlineno
    told = str(e.value)
    assert f"test_checkpoint.py:{first + 1} " in told.split("saved at ")[1].split("\n")[0]
    assert f"test_checkpoint.py:{first + 2} " in told.split("written at ")[1].split("\n")[0]

    def fine(x):
        h = x * 3
        h += 1  # nothing needs what it overwrites
        h.relu_()
        return h * h

    checkpoint(fine, x, use_reentrant=False).sum().backward()
    assert x.grad.tolist() == [24, 24]


@pytest.mark.parametrize("name", ["grad", "vmap of grad", "jacrev", "jacfwd", "vmap of hessian"])
def test_derivatives_inside_of_the_function(name):
    func = clew.func
    weight = clew.linspace(-1, 1, 16).reshape(4, 4).requires_grad_()
    x = clew.linspace(0, 1, 12).reshape(3, 4).requires_grad_()

    def f(t):
        return (t @ weight).tanh()

    functions = {
        "grad": lambda x: func.grad(lambda t: f(t).sum())(x),
        "vmap of grad": lambda x: func.vmap(func.grad(lambda t: f(t).sum()))(x),
        "jacrev": lambda x: func.jacrev(f)(x),
        "jacfwd": lambda x: func.vmap(func.jacfwd(f))(x),
        "vmap of hessian": lambda x: func.vmap(func.hessian(lambda t: f(t).sum()))(x),
    }
    want = clew.autograd.grad(functions[name](x).square().sum(), (x, weight))
    y = checkpoint(functions[name], x, use_reentrant=False)
    got = clew.autograd.grad(y.square().sum(), (x, weight))
    assert all(map(clew.equal, got, want))


def test_an_error_of_the_second_run_for_an_inner_derivative_is_raised():
    calls = []

    def function(x):
        calls.append(x)
        if len(calls) == 2:
            raise KeyError("second")
        return clew.func.vmap(clew.func.grad(lambda t: t.exp().sum()))(x)

    with pytest.raises(KeyError, match="second"):
        checkpoint(function, clew.ones(2, 3, requires_grad=True), use_reentrant=False)
