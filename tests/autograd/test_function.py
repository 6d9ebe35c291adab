"""Custom Functions."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from leaves import leaf

import clew
from clew.autograd import Function
from clew.autograd.function import once_differentiable


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g


class CubeSetup(Function):
    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g


@pytest.mark.parametrize("f", [Cube, CubeSetup])
def test_both_forms_to_second_order(f):
    x = leaf([1.0, 2.0])
    y = f.apply(x)
    assert type(y.grad_fn).__name__ == f"{f.__name__}Backward"
    assert y.grad_fn.name() == f"{f.__name__}Backward"
    (g,) = clew.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), [3.0, 12.0])
    (h,) = clew.autograd.grad(g.sum(), x)
    np.testing.assert_allclose(h.numpy(), [6.0, 12.0])
    assert clew.autograd.gradcheck(f.apply, (x,))
    assert clew.autograd.gradgradcheck(f.apply, (x,))


def test_saved_output():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf([0.5])
    y = Exp.apply(x)
    assert clew.autograd.gradgradcheck(Exp.apply, (x,))
    ref = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert ref() is None


def test_needs_input_grad_and_none():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, a, flag, b):
            ctx.flag = flag
            return a * b

        @staticmethod
        def backward(ctx, g):
            seen.append((ctx.needs_input_grad, ctx.flag))
            return g, None, None

    a, b = leaf([1.0]), clew.ones(1, dtype=clew.float64)
    Two.apply(a, "flag", b).sum().backward()
    assert seen == [((True, False, False), "flag")]


def test_what_is_written_in_place_is_handed_back_itself():
    class AddOne(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.add_(1)

        @staticmethod
        def backward(ctx, g):
            return g

    x = clew.ones(2)
    assert AddOne.apply(x) is x and x.tolist() == [2, 2]


def test_mark_dirty():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    x = leaf([1.0, 2.0])
    y = x * 1
    z = Double.apply(y)
    assert z is y
    z.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 2.0])
    with pytest.raises(RuntimeError, match="leaf"):
        Double.apply(x)


def test_non_differentiable_outputs():
    class Sort(Function):
        @staticmethod
        def forward(ctx, x):
            values, order = x.sort()
            other = values * 2
            ctx.mark_non_differentiable(other)
            ctx.save_for_backward(order)
            return values, order, other

        @staticmethod
        def backward(ctx, g, g_order, g_other):
            (order,) = ctx.saved_tensors
            return clew.zeros_like(g).scatter(0, order, g)

    x = leaf([3.0, 1.0, 2.0])
    values, order, other = Sort.apply(x)
    assert values.requires_grad and not order.requires_grad and not other.requires_grad
    (values * clew.tensor([1.0, 2.0, 3.0], dtype=clew.float64)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3.0, 1.0, 2.0])


def test_materialized_and_missing_gradients():
    got = []

    def make(materialize):
        class Pair(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(materialize)
                return x * 1, x * 2

            @staticmethod
            def backward(ctx, a, b):
                got.append(b)
                return a

        return Pair

    x = leaf([1.0])
    make(True).apply(x)[0].sum().backward()
    make(False).apply(x)[0].sum().backward()
    assert got[0].item() == 0.0
    assert got[1] is None


def test_input_returned_as_output():
    class Identity(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return 5 * g

    x = leaf([1.0])
    y = Identity.apply(x)
    assert y is not x
    y.sum().backward()
    assert x.grad.item() == 5.0


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    x = leaf([3.0])
    (g,) = clew.autograd.grad(Once.apply(x), x, create_graph=True)
    assert g.item() == 6.0
    with pytest.raises(RuntimeError, match="differentiate twice"):
        g.backward()


def test_wrong_gradients_are_refused():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, what):
            ctx.what = what
            return x * 1

        @staticmethod
        def backward(ctx, g):
            if ctx.what == "count":
                return g, g, g
            if ctx.what == "shape":
                return clew.ones(7, dtype=clew.float64), None
            return "not a tensor", None

    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        Wrong.apply(x, "count").sum().backward()
    with pytest.raises(
        RuntimeError,
        match=r"invalid gradient at index 0 - got \[7\] but expected shape compatible with \[2\]",
    ):
        Wrong.apply(x, "shape").sum().backward()
    with pytest.raises(TypeError, match="tensors or None"):
        Wrong.apply(x, "type").sum().backward()


def test_exceptions_keep_their_traceback():
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise KeyError("from backward")

    x = leaf([1.0])
    with pytest.raises(KeyError, match="from backward") as info:
        Bad.apply(x).sum().backward()
    assert any(
        entry.name == "backward" and "test_function" in str(entry.path) for entry in info.traceback
    )
    Cube.apply(x).sum().backward()
    assert x.grad.item() == 3.0


def test_second_backward_of_saved_tensors():
    x = leaf([1.0])
    y = Cube.apply(x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_version_of_saved_input_is_checked():
    x = leaf([1.0])
    y = x * 1
    z = Cube.apply(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="inplace"):
        z.sum().backward()


def test_no_graph_without_need():
    assert not Cube.apply(clew.ones(1)).requires_grad
    with clew.no_grad():
        assert not Cube.apply(leaf([1.0])).requires_grad


def test_instances_are_refused():
    with pytest.raises(RuntimeError, match="apply"):
        Cube()
    with pytest.raises(NotImplementedError, match="forward"):
        Function.apply(leaf([1.0]))


def test_save_for_backward_refuses_other_things():
    class Keep(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward("text")
            return x

    with pytest.raises(TypeError, match="save_for_backward"):
        Keep.apply(leaf([1.0]))


def test_second_order_under_saved_tensor_hooks():
    x = leaf([2.0])
    with clew.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = Cube.apply(x * 1)
    (g,) = clew.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = clew.autograd.grad(g.sum(), x)
    assert h.item() == 12.0


def test_outputs_that_are_no_tensors_have_no_gradient():
    seen = []

    class Mixed(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, 5, "a", x + 1, None

        @staticmethod
        def backward(ctx, *grads):
            seen.append(grads)
            return grads[0] * 2

    x = leaf([1.0])
    out = Mixed.apply(x)
    assert out[1:3] == (5, "a") and out[4] is None
    out[0].sum().backward()
    doubled, *others = seen[0]
    assert doubled.item() == 1 and [others[i] for i in (0, 1, 3)] == [None] * 3
    assert others[2].tolist() == [0.0]


def test_a_gradient_for_what_is_no_tensor_is_refused():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, factor, other=None):
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return g, g

    x = clew.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="Scale: .* position 2"):
        Scale.apply(x, 3).sum().backward()
    Scale.apply(x, clew.tensor(3.0)).sum().backward()  # a tensor that needs none may get one
    assert x.grad.tolist() == [1, 1]


class _SquareWhereWanted(clew.autograd.Function):
    """Asks what it saved whether a gradient is wanted."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g if x.requires_grad else None


@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize(
    "region",
    [
        lambda: clew.memory_budget("1 GB"),
        lambda: clew.offload(least=0),
        lambda: clew.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t),
        lambda: clew.autograd.graph.save_on_cpu(),
    ],
    ids=["budget", "offload", "hooks", "save_on_cpu"],
)
def test_saved_tensors_require_grad_in_a_plain_backward(region, leaf):
    w = clew.ones(1000, requires_grad=True)
    with region():
        x = w if leaf else w * 2
        _SquareWhereWanted.apply(x).sum().backward()
    assert w.grad is not None
    assert w.grad[0].item() == (2 if leaf else 8)


class _SavesItsOutputs(clew.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y, z = x.exp(), x.sin()
        ctx.save_for_backward(y, z, x)
        return y, z

    @staticmethod
    def backward(ctx, g, h):
        y, z, x = ctx.saved_tensors
        ctx.seen = y.requires_grad, z.requires_grad
        return g * y + h * x.cos() * (1 + 0 * z) + 0 * z * z


@pytest.mark.parametrize("hooks", [False, True])
def test_saved_outputs_belong_to_the_output_that_they_are(hooks):
    x = clew.ones(2, dtype=clew.float64, requires_grad=True)

    def second():
        y, z = _SavesItsOutputs.apply(x * 2)
        (g,) = clew.autograd.grad(y.sum() + z.sum(), x, create_graph=True)
        return clew.autograd.grad(g.sum(), x)[0]

    if hooks:
        with clew.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
            got = second()
    else:
        got = second()
    want = 4 * (np.exp(2.0) - np.sin(2.0))
    assert got.tolist() == pytest.approx([want] * 2)


@pytest.mark.parametrize("hooks", [False, True])
def test_saved_outputs_require_grad_in_a_plain_backward(hooks):
    class Seen(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y if y.requires_grad else None

    x = clew.zeros(2, requires_grad=True)
    if hooks:
        with clew.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            y = Seen.apply(x)
    else:
        y = Seen.apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]


@pytest.mark.parametrize("name", ["eigvalsh", "svdvals"])
def test_second_derivatives_of_decompositions_under_hooks(name):
    a = clew.tensor([[2.0, 0.5], [0.5, -1.0]], dtype=clew.float64, requires_grad=True)
    weights = clew.tensor([1.0, 3.0], dtype=clew.float64)

    def second():
        values = getattr(clew.linalg, name)(a)
        (g,) = clew.autograd.grad((values * weights).sum(), a, create_graph=True)
        return clew.autograd.grad((g * g * a).sum(), a)[0]

    want = second()
    with clew.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        got = second()
    assert clew.allclose(got, want)
