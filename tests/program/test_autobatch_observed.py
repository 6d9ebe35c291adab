"""Results that wait are looked at, written to, differentiated and saved as any others."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
from plain_and_batched import both

import clew
from clew import nn
from clew._program import autobatch


@pytest.fixture(autouse=True)
def no_history():
    """Regions of one line in helpers belong to many tests."""
    autobatch._history.clear()


def test_a_value_can_be_asked_for_at_any_time():
    x = clew.randn(3)
    with clew.autobatch():
        y = x * 2
        n = y.sum().item()
        z = y + n
        assert bool((z == x * 2 + n).all())
        assert np.array_equal(y.numpy(), (x * 2).numpy())
        assert z.tolist() == (x * 2 + n).tolist()
    assert len(clew.autobatch.report().observations) >= 3
    assert "test_autobatch_observed.py" in clew.autobatch.report().observations[0][0]


def test_writing_in_place():
    x = clew.zeros(3)
    with clew.autobatch():
        y = x + 1
        x.add_(5)  # y must be of the old x
        z = y * 2
        z.add_(1)
        v = (y * 3)[0:2]
        w = v + 0
        v.fill_(7)
    assert y.tolist() == [1.0] * 3 and z.tolist() == [3.0] * 3
    assert w.tolist() == [3.0] * 2 and v.tolist() == [7.0] * 2


def test_views_share_memory_with_what_they_are_views_of():
    with clew.autobatch():
        y = clew.ones(4, 2) * 3
        first, rows = y[0], y.T
    first.fill_(0)
    assert y.tolist() == [[0, 0], [3, 3], [3, 3], [3, 3]]
    assert rows.tolist() == [[0, 3, 3, 3], [0, 3, 3, 3]]
    assert first._base is y and rows._base is y


def test_two_views_of_what_is_gone_share_memory():
    with clew.autobatch():
        y = clew.ones(4) * 3
        a, b = y[:2], y[1:]
        del y
    a.fill_(0)
    assert b.tolist() == [0, 3, 3]


def test_gradients_of_views():
    x = clew.ones(4, 2, requires_grad=True)
    with clew.autobatch():
        y = x * 3
        a, b = y[0], y.chunk(2)[1]
    (a.sum() + 2 * b.sum() + y.sum()).backward()
    assert x.grad.tolist() == [[6, 6], [3, 3], [9, 9], [9, 9]]


def test_a_result_written_afterwards_does_not_harm_backward():
    x = clew.ones(3, requires_grad=True)
    with clew.autobatch():
        y = [(x * i).exp() for i in range(3)]
    with clew.no_grad():
        y[0].zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z = clew.ones(3, requires_grad=True).exp()
        with clew.no_grad():
            z.zero_()
        z.sum().backward()
    y[1].sum().backward()
    assert clew.allclose(x.grad, clew.ones(3).exp())


def test_backward_inside():
    model = nn.Linear(3, 1)
    optimizer = clew.optim.SGD(model.parameters(), 0.1)
    x = clew.ones(2, 3)
    with clew.autobatch():
        for _ in range(3):
            loss = sum(model(r).square().sum() for r in x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        last = loss.item()
    first = sum((model(r) * 0 + 5).sum() for r in x).item()
    assert np.isfinite(last) and first == 10


def test_hooks_and_grad_fn():
    x = clew.ones(3, requires_grad=True)
    seen = []
    with clew.autobatch():
        y = x * 2
        assert y.requires_grad and not y.is_leaf
        y.register_hook(seen.append)
        z = x * 3
        assert z.grad_fn.name() == "MulBackward0"
        z.retain_grad()
        w = y + z
    w.sum().backward()
    assert seen[0].tolist() == [1.0] * 3 and z.grad.tolist() == [1.0] * 3
    assert x.grad.tolist() == [5.0] * 3


def test_detach_waits_on():
    x = clew.ones(3, requires_grad=True)
    with clew.autobatch():
        ys = [(x * i).detach() * 2 for i in range(4)]
    report = clew.autobatch.report()
    assert len(report.observations) == 1 and not ys[0].requires_grad
    assert [y[0].item() for y in ys] == [0, 2, 4, 6]


def test_a_custom_function():
    class Double(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * (x == x)

    w = clew.ones(3, requires_grad=True)
    both(lambda s: Double.apply(w * s) + 1, [1.0, 2.0], [w])


def test_saved_tensor_hooks_checkpoint_and_vmap():
    w = clew.randn(3, 3, requires_grad=True)

    def run(x):
        with clew.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
            y = (w @ x).tanh()
        y = clew.utils.checkpoint.checkpoint(lambda v: (v * 2).sin(), y, use_reentrant=False)
        return y + clew.func.vmap(lambda v: v * v)(w @ x)

    both(run, list(clew.randn(4, 3)), [w])


def test_numpy_memory_is_read_when_the_call_is_made():
    array = np.ones(3, np.float32)
    x = clew.from_numpy(array)
    with clew.autobatch():
        y = x * 2
        array[:] = 5
    assert y.tolist() == [2.0] * 3


def test_changed_data_and_flags():
    w = clew.ones(3, requires_grad=True)
    with clew.autobatch():
        y = w * 2
        w.data = clew.full((3,), 7.0)
        z = w * 2
    assert y.tolist() == [2.0] * 3 and z.tolist() == [14.0] * 3
    w = clew.ones(3, requires_grad=True)
    with clew.autobatch():
        y = w * 2
        w.requires_grad_(False)
        z = w * 2
    assert y.requires_grad and not z.requires_grad


def squares(w):
    return lambda x: (x @ w).pow(2)


FUNCTIONS_OF_DERIVATIVES = {
    "grad": lambda w, x: clew.func.grad(lambda q: squares(w)(q).sum())(x @ w),
    "vjp": lambda w, x: clew.func.vjp(squares(w), x @ w)[1](clew.ones(1, 4))[0],
    "jvp": lambda w, x: clew.func.jvp(squares(w), (x @ w,), (x,))[1],
    "linearize": lambda w, x: clew.func.linearize(squares(w), x @ w)[1](x),
    "jacrev": lambda w, x: clew.func.jacrev(squares(w))(x @ w),
    "jacfwd": lambda w, x: clew.func.jacfwd(squares(w))(x @ w),
    "hessian": lambda w, x: clew.func.hessian(lambda q: squares(w)(q).sum())(x),
    "each": lambda w, x: clew.vmap(clew.func.grad(lambda q: squares(w)(q).sum()))(x @ w),
    "jacobian": lambda w, x: clew.autograd.functional.jacobian(
        squares(w), x @ w, create_graph=True
    ),
}


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS_OF_DERIVATIVES)
def test_transforms_of_results_that_wait(name, mapped):
    clew.manual_seed(0)
    w, samples = clew.randn(4, 4, requires_grad=True), list(clew.randn(4, 1, 4).unbind())

    def run(x):
        return FUNCTIONS_OF_DERIVATIVES[name](w, x)

    want = [run(x) for x in samples]
    if mapped:
        pytest.importorskip("greenlet")
        got = clew.autobatch.map(run, samples)
    else:
        with clew.autobatch():
            got = [run(x) for x in samples]
    grads = []
    for results in (got, want):
        assert all(r.requires_grad for r in results)
        grads.append(clew.autograd.grad(sum((r**2).sum() for r in results), w)[0])
    for g, v in zip((*got, grads[0]), (*want, grads[1]), strict=True):
        np.testing.assert_allclose(
            g.detach(), v.detach(), rtol=1e-4, atol=1e-5 * float(v.detach().abs().max())
        )


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("transform", ["vjp", "grad", "jvp"])
def test_transforms_with_respect_to_one_weight_of_all_samples(transform, mapped):
    clew.manual_seed(0)
    w, samples = clew.nn.Parameter(clew.randn(4, 4)), list(clew.randn(3, 3, 4).unbind())

    def run(x):
        if transform == "vjp":
            return clew.func.vjp(lambda v: (x @ v).tanh(), w)[1]
        if transform == "grad":
            return clew.func.grad(lambda v: (x @ v).tanh().sum())(w)
        return clew.func.jvp(lambda v: (x @ v).tanh(), (w,), (clew.ones(4, 4),))[1]

    def values(results):
        return [r(clew.ones(3, 4))[0] if transform == "vjp" else r for r in results]

    want = values([run(x) for x in samples])
    if mapped:
        pytest.importorskip("greenlet")
        got = values(clew.autobatch.map(run, samples))
    else:
        with clew.autobatch():
            got = [run(x) for x in samples]
        got = values(got)
    for g, v in zip(got, want, strict=True):
        assert g.requires_grad and v.requires_grad
        np.testing.assert_allclose(g.detach(), v.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "repeat",
    [lambda z: z.repeat(2, 1), lambda z: z.tile(2, 1), lambda z: z.repeat_interleave(2, 0)],
    ids=["repeat", "tile", "repeat_interleave"],
)
def test_repeated_rows_have_memory_of_their_own(repeat):
    """A result that waited was taken for a copy, so a write reached the other rows."""

    def f(x):
        z = x * 2
        y = repeat(z)
        y[0, 0] += 100.0
        return y, z

    x = clew.ones(1, 4)
    with clew.autobatch():
        y, z = f(x)
        f(x * 3)
    assert y.tolist() == [[102, 2, 2, 2], [2, 2, 2, 2]] and z.tolist() == [[2, 2, 2, 2]]


CHANGES_OF_SHAPE = {
    "squeeze_": ((1, 3), (0,)),
    "unsqueeze_": ((3,), (0,)),
    "t_": ((2, 3), ()),
    "transpose_": ((2, 3), (0, 1)),
    "swapaxes_": ((2, 3), (0, 1)),
    "as_strided_": ((2, 3), ((2,), (1,))),
}


@pytest.mark.parametrize("name", CHANGES_OF_SHAPE)
def test_changing_the_shape_of_a_result_in_place(name):
    shape, args = CHANGES_OF_SHAPE[name]
    w = clew.randn(*shape, requires_grad=True)

    def change(i):
        y = w * i
        return getattr(y, name)(*args).exp()

    both(change, range(3), [w])


def test_the_storage_of_a_result_is_its_memory():
    with clew.autobatch():
        y = clew.ones(4) * 3
        storage = y.untyped_storage()
        shown = clew.empty(0).set_(storage, 0, (4,))
        y.fill_(7)
        z = clew.ones(4) * 2
        assert z.detach().is_set_to(z)
    assert shown.tolist() == [7.0] * 4
    assert storage.data_ptr() == y.data_ptr()


@pytest.mark.parametrize("way", ["save", "pickle"])
def test_saved_results_share_memory_as_they_did(way):
    with clew.autobatch():
        y = clew.ones(6) * 3
        made = {"whole": y, "part": y[2:], "other": y + 1}
        if way == "save":
            file = io.BytesIO()
            clew.save(made, file)
            got = clew.load(io.BytesIO(file.getvalue()))
        else:
            got = pickle.loads(pickle.dumps(made))
    got["whole"].fill_(0)
    assert got["part"].tolist() == [0.0] * 4
    assert got["other"].tolist() == [4.0] * 6


def test_leaves_over_one_memory_get_their_own_gradients():
    w, xs = clew.randn(4, 4), clew.randn(2, 3, 4)
    with clew.autobatch():
        leaves = [w.detach().requires_grad_() for _ in xs]
        losses = [(x @ v).sum() for x, v in zip(xs, leaves)]
    sum(losses).backward()
    for x, v in zip(xs, leaves):
        np.testing.assert_allclose(v.grad, x.sum(0)[:, None].expand(4, 4), rtol=1e-5)


def test_views_of_leaves_over_one_memory_get_their_own_gradients():
    w, xs = clew.randn(4, 4), clew.randn(6, 3, 4)
    leaves = [w.detach().requires_grad_() for _ in range(2)]
    with clew.autobatch():
        losses = [(x @ leaves[i % 2].t()[1:].t()).sum() for i, x in enumerate(xs)]
    sum(losses).backward()
    for i, v in enumerate(leaves):
        want = clew.zeros(4, 4)
        want[:, 1:] = xs[i::2].sum((0, 1))[:, None].expand(4, 3)
        np.testing.assert_allclose(v.grad, want, rtol=1e-5)


@pytest.mark.parametrize("watch", ["hook", "retain_grad", "node"])
def test_who_watches_one_of_two_views_sees_its_own_gradient(watch):
    w, xs = clew.randn(4, 4, requires_grad=True), clew.randn(2, 3, 4)
    seen = []
    with clew.autobatch():
        a, b = w[:4], w[:4]
        if watch == "hook":
            a.register_hook(seen.append)
        elif watch == "node":
            a.grad_fn.register_prehook(lambda grads: seen.append(grads[0]))
        else:
            a.retain_grad()
        loss = (xs[0] @ a).sum() + (xs[1] @ b).sum()
    loss.backward()
    own, other = (x.sum(0)[:, None].expand(4, 4) for x in xs)
    np.testing.assert_allclose(a.grad if watch == "retain_grad" else seen[0], own, rtol=1e-5)
    np.testing.assert_allclose(w.grad, own + other, rtol=1e-5)


def test_views_of_one_weight_still_run_together():
    w, xs = clew.randn(4, 4, requires_grad=True), clew.randn(16, 3, 4)
    with clew.autobatch():
        losses = [(x @ w.t()).sum() for x in xs]
    report = clew.autobatch.report()
    sum(losses).backward()
    np.testing.assert_allclose(w.grad, xs.sum((0, 1)).expand(4, 4), rtol=1e-4)
    assert len(report.groups) < 12


def test_frequencies_of_an_embedding_are_those_of_each_sample():
    e = clew.nn.Embedding(3, 2, scale_grad_by_freq=True)
    with clew.autobatch():
        losses = [e(clew.tensor([1, 2, 2])).sum() for _ in range(4)]
    sum(losses).backward()
    assert e.weight.grad.tolist() == [[0.0, 0.0], [4.0, 4.0], [4.0, 4.0]]


@pytest.mark.parametrize("call", [lambda x: x.flip(()), lambda x: x.any(()), lambda x: x.all(())])
def test_no_dims_name_none(call):
    x = clew.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 4.0]])
    assert clew.equal(clew.vmap(call)(x), call(x))
    with clew.autobatch():
        rows = [call(r * 1) for r in x]
    assert clew.equal(clew.stack(rows), call(x))
