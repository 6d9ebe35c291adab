"""Hooks of every kind, grad modes, re-entrance, threads."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from leaves import leaf

import clew
from clew.autograd import graph


def test_tensor_hooks_change_gradients_in_order():
    x = leaf([1.0])
    y = x * 2
    seen = []
    first = y.register_hook(lambda g: seen.append(g.item()) or g * 10)
    y.register_hook(lambda g: seen.append(g.item()))
    x.register_hook(lambda g: g + 1)
    (y * 3).sum().backward()
    assert seen == [3.0, 30.0]
    assert x.grad.item() == 61.0
    first.remove()
    first.remove()
    seen.clear()
    (x * 1).sum().backward()
    assert x.grad.item() == 63.0


def test_hooks_check_what_they_get():
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        clew.ones(1).register_hook(print)
    x = leaf([1.0])
    with pytest.raises(TypeError):
        x.register_hook("not callable")
    handle = x.register_hook(lambda g: clew.ones(5))
    with pytest.raises(RuntimeError, match="shape"):
        (x * 1).sum().backward()
    handle.remove()
    handle = x.register_hook(lambda g: "no")
    with pytest.raises(TypeError, match="None or a Tensor"):
        (x * 1).sum().backward()


def test_hook_as_context_of_exception_leaves_engine_usable():
    x = leaf([1.0])

    def fail(g):
        raise ValueError("hook")

    handle = x.register_hook(fail)
    y = (x * x).sum()
    with pytest.raises(ValueError, match="hook"):
        y.backward(retain_graph=True)
    handle.remove()
    y.backward()
    assert x.grad.item() == 2.0


def test_post_accumulate_hook():
    x = leaf([1.0])
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert seen == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="leaf"):
        (x * 1).register_post_accumulate_grad_hook(print)


def test_optimizer_step_inside_backward_frees_gradients():
    xs = [leaf([float(i)]) for i in range(3)]
    order = []
    for i, x in enumerate(xs):

        def step(t, i=i):
            order.append(i)
            t.grad = None

        x.register_post_accumulate_grad_hook(step)
    y = xs[0]
    for x in xs[1:]:
        y = y * x
    y.sum().backward()
    assert order[0] == 2  # the last used leaf is ready first, before the rest has run
    assert all(x.grad is None for x in xs)


def test_node_hooks():
    x = leaf([1.0])
    y = x * 2
    seen = []
    y.grad_fn.register_prehook(lambda grads: seen.append("pre") or (grads[0] * 10,))
    y.grad_fn.register_hook(lambda ins, outs: seen.append((ins[0].item(), outs[0].item())))
    y.sum().backward()
    assert seen == ["pre", (20.0, 10.0)]
    assert x.grad.item() == 20.0
    y = x * 2
    y.grad_fn.register_hook(lambda ins, outs: (ins[0] * 0, None))
    x.grad = None
    y.sum().backward()
    assert x.grad.item() == 0.0


def test_multi_grad_hook():
    a, b = leaf([1.0]), leaf([2.0])
    seen = []
    handle = graph.register_multi_grad_hook(
        [a, b], lambda grads: seen.append([g.item() for g in grads])
    )
    (a * b).sum().backward()
    assert seen == [[2.0, 1.0]]
    handle.remove()
    (a * b).sum().backward()
    assert len(seen) == 1


def test_saved_tensor_hooks_round_trip():
    packed = []

    def pack(t):
        packed.append(t.shape)
        return t.numpy().copy()

    x = leaf([1.0, 2.0])
    with graph.saved_tensors_hooks(pack, lambda a: clew.tensor(a)):
        y = (x * x).exp()
    y.sum().backward()
    np.testing.assert_allclose(
        x.grad.numpy(), 2 * x.detach().numpy() * np.exp(x.detach().numpy() ** 2)
    )
    assert len(packed) == 3


def test_saved_tensor_hooks_second_order():
    x = leaf([1.5])
    with graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = x**3
        (g,) = clew.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = clew.autograd.grad(g.sum(), x)
    assert abs(h.item() - 9.0) < 1e-12


def test_save_on_cpu_and_disable():
    x = leaf([1.0])
    with graph.save_on_cpu():
        y = x * x
    y.sum().backward()
    assert x.grad.item() == 2.0
    with (
        graph.disable_saved_tensors_hooks("not here"),
        pytest.raises(RuntimeError, match="not here"),
    ):
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass


def test_hooks_are_allowed_again_after_an_exception():
    with pytest.raises(KeyError), graph.disable_saved_tensors_hooks("not here"):
        raise KeyError
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        pass


def test_a_generator_is_closed_in_its_mode():
    modes = []

    @clew.no_grad()
    def numbers():
        try:
            yield 1
        finally:
            modes.append(clew.is_grad_enabled())

    running = numbers()
    assert next(running) == 1
    running.close()
    assert modes == [False] and clew.is_grad_enabled()


def test_unpack_hook_must_return_a_tensor():
    x = leaf([1.0])
    with graph.saved_tensors_hooks(lambda t: t, lambda t: "text"):
        y = x * x
    with pytest.raises(TypeError, match="must return a Tensor"):
        y.sum().backward()


def test_modes_as_contexts_and_decorators():
    x = leaf([1.0])
    with clew.no_grad():
        assert not clew.is_grad_enabled()
        assert not (x * 2).requires_grad
        with clew.enable_grad():
            assert (x * 2).requires_grad
    assert clew.is_grad_enabled()

    @clew.no_grad()
    def f():
        return x * 2

    @clew.no_grad
    def g():
        return x * 2

    class Kept:
        def __init__(self, of):
            self.of, self.recorded = of, clew.is_grad_enabled()

    with pytest.warns(FutureWarning, match="not its methods"):
        made = clew.no_grad()(Kept)(of=3)
    assert type(made) is Kept and made.of == 3 and not made.recorded
    assert not f().requires_grad and not g().requires_grad
    clew.set_grad_enabled(False)
    assert not (x * 2).requires_grad
    clew.set_grad_enabled(True)
    with clew.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_modes_survive_exceptions_and_generators():
    with pytest.raises(ValueError), clew.no_grad():
        raise ValueError
    assert clew.is_grad_enabled()

    @clew.no_grad()
    def numbers():
        for _ in range(3):
            yield clew.is_grad_enabled()

    for inside in numbers():
        assert inside is False
        assert clew.is_grad_enabled()


def test_inference_mode():
    x = leaf([1.0])
    with clew.inference_mode():
        y = x * 2
        assert clew.is_inference_mode_enabled()
        y.add_(1)
    assert y.is_inference() and not y.requires_grad
    with pytest.raises(RuntimeError, match="[Ii]nference"):
        y.add_(1)
    with pytest.raises(RuntimeError, match="[Ii]nference"):
        (x * y).sum().backward()

    @clew.inference_mode()
    def f():
        return x * 1

    assert f().is_inference()


MADE = {
    "repeat_interleave": lambda x: clew.repeat_interleave(clew.tensor([1, 2])),
    "one_hot": lambda x: clew.nn.functional.one_hot(clew.tensor([1, 2])),
    "bincount": lambda x: clew.bincount(clew.tensor([1, 2])),
    "unique": lambda x: x.unique(),
    "hash_tensor": clew.hash_tensor,
    "from_numpy": lambda x: clew.from_numpy(np.ones(2)),
    "asarray": lambda x: clew.asarray(np.ones(2)),
    "from_dlpack": lambda x: clew.from_dlpack(np.ones(2)),
    "ufunc": lambda x: np.sqrt(x),
    "Tensor": lambda x: clew.Tensor(2, 3),
    "Tensor of data": lambda x: clew.Tensor([1.0, 2.0]),
    "Tensor of sizes": lambda x: clew.Tensor(clew.Size([2])),
    "state": lambda x: clew.get_rng_state(),
    "given edges": lambda x: clew.histogram(x, clew.tensor([0.0, 1.0])).bin_edges,
    "pixel_shuffle": lambda x: clew.nn.functional.pixel_shuffle(x, 1),
    "channel_shuffle": lambda x: clew.nn.functional.channel_shuffle(x, 1),
    "interpolate": lambda x: clew.nn.functional.interpolate(x, scale_factor=1),
}


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_in_inference_mode_is_an_inference_tensor(name):
    x = clew.ones(1, 4, 2)
    with clew.inference_mode():
        assert MADE[name](x).is_inference()
        for same in (clew.atleast_1d(x), x.reshape(1, 4, 2), clew.as_tensor(x), x.contiguous()):
            assert not same.is_inference()
    assert not x.is_inference() and not MADE[name](x).is_inference()


VIEWS = {
    "index": lambda x: x[0],
    "view": lambda x: x.view(6),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "transpose": lambda x: x.t(),
    "unbind": lambda x: x.unbind(0)[1],
    "diagonal": lambda x: x.diagonal(),
    "real": lambda x: clew.view_as_complex(x.unflatten(1, (2, 2))).real,
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_normal_tensors_in_inference_mode_are_normal(name):
    x = clew.ones(2, 4) if name == "real" else clew.ones(2, 3)
    with clew.inference_mode():
        view = VIEWS[name](x)
        assert VIEWS[name](x.clone()).is_inference()
        view.add_(1)
    assert not view.is_inference() and x._version == 1
    view.add_(1)
    assert view.requires_grad_().requires_grad
    w = clew.ones(view.shape, requires_grad=True)
    (w * view.detach()).sum().backward()
    assert w.grad.equal(view.detach())


@pytest.mark.parametrize("recorded", [False, True])
def test_views_in_inference_mode_require_grad_as_their_base(recorded):
    x = clew.ones(2, 2, requires_grad=True)
    base = x * 2 if recorded else x
    with clew.inference_mode():
        views = [base[0], base.view(4), base.t(), base.expand(3, 2, 2), base.unsqueeze(0)]
        views.append(views[0].view(1, 2))
        assert all(v.requires_grad and v.is_leaf and not v.is_inference() for v in views)
        assert not base.detach().requires_grad
        assert not (base[0] * 2).requires_grad
        plain = x.detach()
        assert not plain[0].requires_grad
        made = clew.ones(3)
        assert made[0].is_inference() and not made[0].requires_grad
        views[0].add_(1)
    assert base.tolist()[0] == [3.0, 3.0] if recorded else base.tolist()[0] == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="do not track version counters"):
        _ = made._version
    assert made.clone()._version == 0


def test_views_of_inference_mode_are_not_written_where_gradients_are_recorded():
    x = leaf([1.0, 2.0]) * 1
    with clew.inference_mode():
        view = x[0]
    with pytest.raises(RuntimeError, match="created in inference_mode"):
        view.mul_(2)


def test_backward_inside_backward():
    x = leaf([2.0])

    class Nested(clew.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            ctx.save_for_backward(t)
            return t**2

        @staticmethod
        def backward(ctx, g):
            (t,) = ctx.saved_tensors
            inner = t.detach().requires_grad_()
            with clew.enable_grad():
                value = (inner**2).sum()
            value.backward()
            return g * inner.grad

    (Nested.apply(x) * x).sum().backward()
    assert x.grad.item() == 12.0


def test_backward_of_the_same_graph_from_a_hook():
    x = leaf([2.0])
    y = x * x
    z = y * 3
    inner = []
    z.register_hook(
        lambda g: inner.append(
            clew.autograd.grad(y, x, clew.ones_like(y), retain_graph=True)[0].item()
        )
    )
    z.sum().backward(retain_graph=True)
    assert inner == [4.0]
    assert x.grad.item() == 12.0


def test_threads_share_leaves():
    w = clew.ones(64, 64, requires_grad=True)
    errors = []

    def work():
        try:
            for _ in range(50):
                (w * 2).sum().backward()
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert (w.grad == 400).all()


@pytest.mark.parametrize("kind", ["copied", "turned", "recorded", "retained"])
def test_threads_share_leaves_whose_gradients_are_large(kind):
    """Kernels of such gradients let other threads run; none may come between and get lost."""
    ones = clew.ones(1024, 1024)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(10):
            leaf = clew.zeros(1024, 1024)
            leaf = (leaf.t() if kind == "turned" else leaf).requires_grad_()
            shared = leaf + 1
            if kind == "retained":
                shared.retain_grad()
            made = [shared + 1 if kind == "retained" else leaf + 1 for _ in range(3)]
            together = threading.Barrier(3)

            def work(y, together=together):
                together.wait()
                y.backward(ones, retain_graph=True, create_graph=kind == "recorded")

            threads = [threading.Thread(target=work, args=(y,)) for y in made]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            assert (leaf.grad == 3).all()
            if kind == "retained":
                assert (shared.grad == 3).all()
    finally:
        sys.setswitchinterval(before)


def test_modes_are_thread_local():
    seen = []
    with clew.no_grad():
        t = threading.Thread(target=lambda: seen.append(clew.is_grad_enabled()))
        t.start()
        t.join()
    assert seen == [True]


def test_threads_run_one_graph_with_retain():
    x = clew.ones(300, 300, requires_grad=True)
    y = x
    for _ in range(20):
        y = (y * 1.01).tanh()
    loss = y.sum()
    want = clew.autograd.grad(loss, x, retain_graph=True)[0]
    got = []

    def work():
        got.append(clew.autograd.grad(loss, x, retain_graph=True)[0])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(got) == 4
    for g in got:
        assert (g == want).all()


def test_hook_that_adds_hooks_to_its_own_node():
    x = leaf([1.0, 2.0])
    y = x * 2
    a, b = y.unbind()
    seen = []

    def adds(g):
        seen.append("first")
        b.register_hook(lambda g: seen.append("second"))

    a.register_hook(adds)
    (a + b).backward()
    assert seen == ["first", "second"]


def test_data_of_another_shape_while_a_graph_is_alive():
    x = leaf([1.0, 2.0])
    old = (x * 3).sum()
    x.data = clew.ones(3, dtype=clew.float64)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    del old
    (x * 2).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]


def test_prehooks_of_a_node_change_neither_captured_nor_retained_gradients():
    for inputs in ("z", "x", "xz"):
        x = clew.ones(2, requires_grad=True)
        z = x * 3
        calls = []

        def five_fold(grads, calls=calls):
            calls.append(1)
            return (grads[0] * 5,)

        z.grad_fn.register_prehook(five_fold)
        z.register_hook(lambda g: g * 2)
        z.retain_grad()
        wanted = [{"x": x, "z": z}[name] for name in inputs]
        got = clew.autograd.grad(z.sum(), wanted)
        for name, g in zip(inputs, got, strict=True):
            assert g.tolist() == {"x": [30, 30], "z": [2, 2]}[name]
        assert z.grad.tolist() == [2, 2]
        assert len(calls) == ("x" in inputs)  # where only z is asked for, its node does not run


def test_a_node_runs_once_in_each_of_two_interleaved_backwards():
    x = clew.ones(3, requires_grad=True)
    shared = x.exp()
    late, early = shared * 3, shared * 2
    second, first = shared * 7, shared * 5
    reached, delivered, done = threading.Event(), threading.Event(), threading.Event()
    seen = []
    shared.register_hook(lambda g: seen.append(g[0].item()))

    def wait_for_the_other(grad):  # this call has claimed the shared node and has yet to run it
        reached.set()
        delivered.wait(10)

    def let_the_other_end(grad):
        delivered.set()
        done.wait(10)

    late.register_hook(wait_for_the_other)
    second.register_hook(let_the_other_end)
    one, two = (early + late).sum(), (first + second).sum()

    def run_one():
        one.backward(retain_graph=True)
        done.set()

    def run_two():
        reached.wait(10)
        two.backward(retain_graph=True)

    threads = [threading.Thread(target=f) for f in (run_one, run_two)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == [5.0, 12.0]
    clew.testing.assert_close(x.grad, 17 * x.detach().exp())


def test_a_failed_call_of_a_node_withdraws_its_offer():
    def refuse(packed):
        raise ValueError("no")

    x = clew.ones(4, requires_grad=True)
    with clew.autograd.graph.saved_tensors_hooks(lambda t: t, refuse):
        y = x * 1
        y[:3].relu_()
    node = y.grad_fn
    ones = clew.ones(4)
    with clew.no_grad():
        for k in range(12):
            with pytest.raises(ValueError, match="no"):
                node(ones)
            aliases = [ones.data for _ in range(12)]  # in the memory of what the call let go of
            assert (aliases[k] + 1).tolist() == [2.0] * 4
            assert ones.tolist() == [1.0] * 4


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: clew.nn.functional.layer_norm(x, (48,), w),
        lambda x, w: clew.nn.functional.group_norm(x, 4, w),
        lambda x, w: clew.nn.functional.batch_norm(x, None, None, w, training=True),
    ],
)
def test_a_parameter_of_another_shape_than_was_saved(function):
    x, w = clew.randn(4, 48, requires_grad=True), clew.nn.Parameter(clew.ones(48))
    y = function(x, w)
    kept = w.data
    w.data = clew.ones(1)
    with pytest.raises(RuntimeError, match=r"saved for backward as float32\[48\]"):
        y.sum().backward(retain_graph=True)
    w.data = kept  # as those do who take weights out of memory in between
    y.sum().backward()
    assert w.grad.shape == (48,)


def test_prehooks_that_take_the_gradient_away():
    x = clew.ones(2, requires_grad=True)
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (None,))
    (y.sum() + x.sum()).backward()
    assert x.grad.tolist() == [1.0, 1.0]

    class Twice(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad + 1  # of zeros

    x.grad = None
    y = Twice.apply(x)
    y.grad_fn.register_prehook(lambda grads: (None,))
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: clew.nn.functional.embedding(clew.tensor([0, 1, 2]), x),
        lambda x: x.sort(1)[0],
        lambda x: x.tanh(),
        lambda x: x[1:],
    ],
)
def test_hooks_leave_shape_and_dtype(function):
    x = clew.randn(3, 4, requires_grad=True)
    for replace in (lambda g: g[:1], lambda g: clew.ones(7, 9), lambda g: g.double()):
        y = function(x)
        y.grad_fn.register_prehook(lambda grads, f=replace: (f(grads[0]), *grads[1:]))
        with pytest.raises(RuntimeError, match="a hook changed the gradient"):
            y.backward(clew.ones(y.shape))
        y = function(x)
        y.register_hook(replace)
        with pytest.raises(RuntimeError, match="a hook changed the gradient"):
            y.backward(clew.ones(y.shape))


def test_a_called_node_fits_its_gradient():
    x = clew.ones(3, 4, requires_grad=True)
    node = clew.nn.functional.embedding(clew.tensor([0, 1, 1]), x).grad_fn
    want = [[1.0] * 4, [2.0] * 4, [0.0] * 4]
    for grad in (clew.tensor(1.0), clew.ones(4), clew.ones(3, 4, dtype=clew.float64)):
        got = node(grad)
        got = got[0] if isinstance(got, tuple) else got
        assert got.tolist() == want
    with pytest.raises(RuntimeError, match="expand"):
        node(clew.ones(7, 9))


def test_post_accumulate_hooks_that_return_something_are_refused():
    x = clew.ones(2, requires_grad=True)
    handle = x.register_post_accumulate_grad_hook(lambda t: t.grad * 2)
    with pytest.raises(RuntimeError, match="must return None"):
        x.sum().backward()
    handle.remove()
    x.register_post_accumulate_grad_hook(lambda t: setattr(t, "grad", t.grad * 2))
    x.grad = None
    x[:1].sum().backward()
    assert x.grad.tolist() == [2.0, 0.0]


@pytest.mark.parametrize("change", ["set_", "data", "unsqueeze_", "t_"])
def test_a_leaf_of_another_shape_gathers_gradients_of_that_shape(change):
    """Also while a graph of its old shape is still there."""
    p = clew.nn.Parameter(clew.ones(2, 3))
    seen = []
    p.register_hook(lambda g: seen.append(tuple(g.shape)))
    before = (p * 2).sum()
    with clew.no_grad():
        if change == "set_":
            p.set_(p[1:])
        elif change == "data":
            p.data = p.data[1:]
        elif change == "unsqueeze_":
            p.unsqueeze_(0)
        else:
            p.t_()
    shape = {"unsqueeze_": (1, 2, 3), "t_": (3, 2)}.get(change, (1, 3))
    clew.cat((p, p)).sum().backward()
    assert p.grad.shape == shape and p.grad.unique().tolist() == [2.0]
    p.grad = None
    before.backward()
    assert seen == [shape, (2, 3)]
