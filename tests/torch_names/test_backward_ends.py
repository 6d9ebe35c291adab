"""`Variable._execution_engine`: functions that run when a backward is over."""

import threading

import pytest

import clew
from clew._torch import _C as native
from clew.autograd import Variable

engine = Variable._execution_engine


def product(hook):
    """A root whose backward calls a hook on the way to the leaf, and the leaf."""
    x = clew.tensor([2.0, 3.0], requires_grad=True)
    y = x * x
    y.register_hook(lambda grad: hook())
    return y.sum(), x


@pytest.mark.parametrize(
    "run",
    [
        lambda root, x: root.backward(),
        lambda root, x: clew.autograd.backward(root, inputs=[x]),
        lambda root, x: engine.run_backward((root,), (clew.ones(()),), accumulate_grad=True),
    ],
)
def test_they_run_in_order_when_gradients_are_there(run):
    seen = []

    def hook():
        assert native._current_graph_task_id() >= 0 and x.grad is None
        engine.queue_callback(lambda: seen.append(x.grad.tolist()))
        engine.queue_callback(lambda: engine.queue_callback(lambda: seen.append("late")))
        engine.queue_callback(lambda: seen.append(native._current_graph_task_id() >= 0))

    root, x = product(hook)
    run(root, x)
    assert seen == [[4, 6], True, "late"]
    assert native._current_graph_task_id() == -1


def test_grad_ends_too_and_runs_by_the_engine():
    seen = []
    root, x = product(lambda: engine.queue_callback(lambda: seen.append(1)))
    assert clew.autograd.grad(root, x, retain_graph=True)[0].tolist() == [4, 6] and seen == [1]
    (got,) = engine.run_backward((root,), (None,), True, False, (x,))
    assert got.tolist() == [4, 6] and seen == [1, 1] and x.grad is None
    other = clew.ones(1, requires_grad=True)
    assert engine.run_backward((root,), (None,), True, False, (other,), True) == (None,)


def test_a_backward_inside_ends_first():
    seen = []

    def outer():
        engine.queue_callback(lambda: seen.append("outer"))
        number = native._current_graph_task_id()
        with clew.enable_grad():
            inner, _ = product(lambda: engine.queue_callback(lambda: seen.append("inner")))
        inner.backward()
        seen.append("goes on")
        assert native._current_graph_task_id() == number

    product(outer)[0].backward()
    assert seen == ["inner", "goes on", "outer"]


def test_after_a_failure_nothing_runs():
    seen = []

    def hook():
        engine.queue_callback(lambda: seen.append(1))
        raise KeyError("hook")

    with pytest.raises(KeyError, match="hook"):
        product(hook)[0].backward()
    product(lambda: None)[0].backward()
    assert seen == []

    def queue():
        engine.queue_callback(lambda: 1 / 0)
        engine.queue_callback(lambda: seen.append(2))

    with pytest.raises(ZeroDivisionError):
        product(queue)[0].backward()
    product(lambda: None)[0].backward()
    assert seen == []


def test_threads_do_not_run_those_of_others():
    seen = []

    def hook():
        engine.queue_callback(lambda: seen.append(threading.current_thread()))
        other = threading.Thread(target=lambda: product(lambda: None)[0].backward())
        other.start()
        other.join()
        assert not seen

    product(hook)[0].backward()
    assert seen == [threading.main_thread()]


def test_outside_of_a_backward():
    with pytest.raises(RuntimeError, match="only be installed during backward"):
        engine.queue_callback(lambda: None)
    with pytest.raises(TypeError, match="expected a function; got int"):
        engine.queue_callback(1)
    assert native._current_autograd_node() is None


def test_the_node_whose_hooks_run():
    seen = []

    def tell(name):
        return lambda *_: seen.append((name, native._current_autograd_node()))

    a = clew.ones(3, requires_grad=True)
    b = a * 2
    n = b.exp()
    n.grad_fn.register_prehook(tell("before exp"))
    n.grad_fn.register_hook(tell("after exp"))
    b.register_hook(tell("b"))
    a.register_hook(tell("a"))
    a.register_post_accumulate_grad_hook(tell("after a"))
    with clew.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: (tell("sin")(), x)[1]):
        c = n.sin()
    c.sum().backward()
    names = ["SinBackward0", "ExpBackward0", "ExpBackward0", "MulBackward0"]
    assert [name for name, _ in seen] == ["sin", "before exp", "after exp", "b", "a", "after a"]
    assert [node.name() for _, node in seen[:4]] == names
    assert all("AccumulateGrad" in node.name() for _, node in seen[4:])
    assert seen[3][1] is b.grad_fn and seen[4][1].variable is a
    assert native._current_autograd_node() is None


def test_a_function_of_the_programs_own_is_the_node_that_runs():
    class Doubles(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x, inner):
            ctx.inner = inner
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            seen.append(native._current_autograd_node() is ctx)
            if ctx.inner is not None:
                ctx.inner.backward()
                seen.append(native._current_autograd_node() is ctx)
            return grad * 2, None

    seen = []
    x = clew.ones(2, requires_grad=True)
    Doubles.apply(x, Doubles.apply(x, None).sum()).sum().backward()
    assert seen == [True, True, True]
    assert x.grad.tolist() == [4.0, 4.0]

    # A hook of a backward inside of another one is not run by the outer one's node.
    inner = []
    root, _ = product(lambda *_: inner.append(native._current_autograd_node()))
    Doubles.apply(x, root).sum().backward()
    assert inner and not any(isinstance(node, clew.autograd.function.FunctionCtx) for node in inner)
    assert seen[3:] == [True, True]


def test_an_unpacking_hook_in_a_function_of_the_programs_own():
    class Keeps(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            found = ctx.saved_tensors
            assert len(found) == 1
            seen.append(ctx)
            return grad * 2

    def unpack(x):
        seen.append(native._current_autograd_node())
        return x

    seen = []
    with clew.autograd.graph.saved_tensors_hooks(lambda x: x, unpack):
        y = Keeps.apply(clew.ones(2, requires_grad=True) * 1)
    y.sum().backward()
    assert len(seen) == 2 and seen[0] is seen[1]


def test_who_holds_a_storage():
    x = clew.ones(2)
    key = x.untyped_storage()._cdata
    assert native._storage_Use_Count(key) == 1
    v, s = x.view(2, 1), x.untyped_storage()
    assert native._storage_Use_Count(key) == 3
    del v, s
    assert native._storage_Use_Count(key) == 1
