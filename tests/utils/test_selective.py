"""Checkpoints that keep the results of some operations: gradients, what runs again, memory."""

from __future__ import annotations

import contextlib
import functools
import threading

import pytest

import clew
from clew import nn
from clew._torch.utils._python_dispatch import TorchDispatchMode
from clew.utils.checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    checkpoint,
    create_selective_checkpoint_contexts,
    noop_context_fn,
)

aten = clew.ops.aten


def keeping(rule, **options):
    return functools.partial(create_selective_checkpoint_contexts, rule, **options)


def run(function, x, context_fn, seed=3):
    """The result, the gradient of x, and what is drawn next."""
    clew.manual_seed(seed)
    x = x.clone().requires_grad_()
    y = checkpoint(function, x, use_reentrant=False, context_fn=context_fn)
    (grad,) = clew.autograd.grad((y * y).sum(), x)
    return y, grad, clew.rand(2)


RULES = {
    "nothing": lambda told, op, *args, **kwargs: CheckpointPolicy.MUST_RECOMPUTE,
    "everything": lambda told, op, *args, **kwargs: CheckpointPolicy.PREFER_SAVE,
    "offloaded": lambda told, op, *args, **kwargs: CheckpointPolicy.MUST_CPU_OFFLOAD,
    "products": lambda told, op, *args, **kwargs: "mm" in str(op) or "conv" in str(op),
    "elementwise": lambda told, op, *args, **kwargs: str(op).split(".")[1] in ("tanh", "gelu"),
    "norms": lambda told, op, *args, **kwargs: "norm" in str(op),
    "attention": lambda told, op, *args, **kwargs: "attention" in str(op),
    "views": lambda told, op, *args, **kwargs: op.is_view,
    "a list": [aten.addmm.default, aten.mm.default, aten.softmax.int, aten._softmax.default],
}


def of_layers():
    clew.manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 4), nn.LayerNorm(4), nn.GELU(), nn.Softmax(1)
    )


def of_images():
    clew.manual_seed(0)
    return nn.Sequential(
        nn.Unflatten(1, (1, 2, 2)), nn.Conv2d(1, 3, 2), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten()
    )


def of_tokens():
    clew.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Unflatten(0, (1, -1)), layer, nn.Flatten(0, 1))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("make", [of_layers, of_images, of_tokens])
def test_gradients_are_those_of_the_plain_program(make, rule):
    x = clew.randn(3, 4)
    plain, kept = make(), make()
    a = run(plain, x, noop_context_fn)
    b = run(kept, x, keeping(RULES[rule]))
    assert all(clew.equal(p, q) for p, q in zip(a, b))
    for p, q in zip(plain.parameters(), kept.parameters()):
        clew.manual_seed(0)
        x1, x2 = x.clone(), x.clone()
        (plain(x1) ** 2).sum().backward()
        checkpoint(
            kept, x2, use_reentrant=False, context_fn=keeping(RULES[rule])
        ).square().sum().backward()
        assert clew.equal(p.grad, q.grad)
        plain.zero_grad()
        kept.zero_grad()


def test_a_kept_operation_does_not_run_again():
    ran = []

    class Sees(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            ran.append(str(func).split(".")[1])
            return func(*args, **(kwargs or {}))

    @contextlib.contextmanager
    def seen(second):
        with Sees(), second:
            yield

    x = clew.randn(3, 3, requires_grad=True)
    for rule, again in (
        ([], ["mm", "sin", "mm"]),
        ([aten.mm.default], ["sin"]),
        ([aten.sin.default], ["mm", "mm"]),
        ([aten.mm.default, aten.sin.default], []),
    ):

        def contexts(rule=rule):
            first, second = create_selective_checkpoint_contexts(rule)
            return first, seen(second)

        f = lambda x: ((x @ x).sin() @ x).cos()
        y = checkpoint(f, x, use_reentrant=False, context_fn=contexts)
        ran.clear()
        y.sum().backward()
        assert [name for name in ran if name in ("mm", "sin")] == again


def test_memory_is_that_of_the_kept_results():
    net = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(6)])
    x = clew.randn(256, 64, requires_grad=True)
    one = 256 * 64 * 4

    def held(context_fn):
        before = clew.memory_stats()["live_bytes"]
        y = checkpoint(net, x, use_reentrant=False, context_fn=context_fn)
        live = clew.memory_stats()["live_bytes"] - before
        y.sum().backward()
        del y
        net.zero_grad()
        x.grad = None
        assert clew.memory_stats()["live_bytes"] - before < 1000
        return live / one

    assert held(noop_context_fn) == pytest.approx(1, abs=0.1)
    assert held(keeping([aten.addmm.default])) == pytest.approx(7, abs=0.1)
    assert held(keeping([aten.gelu.default])) == pytest.approx(6, abs=0.1)


def test_random_operations_that_are_kept_leave_later_draws_as_they_were():
    def net(x):
        kept = clew.bernoulli(clew.sigmoid(x))
        return x * kept * nn.functional.dropout(x, 0.5) * clew.rand(3, 4)

    x = clew.randn(3, 4)
    a = run(net, x, noop_context_fn)
    for rule in ([aten.bernoulli.default], [aten.rand.default], [aten.mul.Tensor]):
        assert all(clew.equal(p, q) for p, q in zip(a, run(net, x, keeping(rule))))


def test_what_a_rule_is_told():
    seen = []

    def rule(told, op, *args, **kwargs):
        assert type(told) is SelectiveCheckpointContext
        seen.append((str(op), told.is_recompute, tuple(told.op_output.shape), len(args), [*kwargs]))
        return CheckpointPolicy.PREFER_RECOMPUTE

    x = clew.randn(2, 3, requires_grad=True)
    f = lambda x: clew.add(x @ x.t(), 1.0, alpha=2)
    checkpoint(f, x, use_reentrant=False, context_fn=keeping(rule)).sum().backward()
    assert seen == [
        ("aten.t.default", False, (3, 2), 1, []),
        ("aten.mm.default", False, (2, 2), 2, []),
        ("aten.add.Tensor", False, (2, 2), 2, ["alpha"]),
    ]


def test_writes_into_kept_results():
    def f(x):
        y = x @ x
        y.relu_()
        return y.sin()

    x = clew.randn(3, 3)
    with pytest.raises(
        RuntimeError, match=r"aten.mm.default that was kept has been written.*clone"
    ):
        run(f, x, keeping([aten.mm.default]))
    # relu_ twice is relu_ once, so that its value is meant.
    a = run(f, x, noop_context_fn)
    b = run(f, x, keeping([aten.mm.default], allow_cache_entry_mutation=True))
    assert all(clew.equal(p, q) for p, q in zip(a, b))
    # What is written in place is made again.
    b = run(f, x, keeping([aten.relu_.default]))
    assert all(clew.equal(p, q) for p, q in zip(a, b))


def test_views_of_without_gradients_are_made_again():
    def f(x):
        y = x * 2
        with clew.no_grad():
            row = y.detach().clone()
            first = row[0]
            row.mul_(3)
        return y * first

    x = clew.randn(3, 3)
    a = run(f, x, noop_context_fn)
    b = run(f, x, keeping(lambda told, op, *args, **kwargs: op.is_view))
    assert all(clew.equal(p, q) for p, q in zip(a, b))


def test_a_second_backward_computes_all_of_it_again():
    x = clew.randn(3, 3, requires_grad=True)
    y = checkpoint(
        lambda x: (x @ x).sin(), x, use_reentrant=False, context_fn=keeping([aten.mm.default])
    ).sum()
    y.backward(retain_graph=True)
    once = x.grad.clone()
    y.backward()
    assert clew.equal(x.grad, 2 * once)


def test_second_derivatives():
    x = clew.randn(3, 3, dtype=clew.float64, requires_grad=True)
    f = lambda x: checkpoint(
        lambda x: (x @ x).sin(), x, use_reentrant=False, context_fn=keeping([aten.mm.default])
    )
    assert clew.autograd.gradgradcheck(f, (x,))


def test_within_and_around_other_checkpoints():
    inner = lambda x: (x @ x).tanh()

    def outer(x, context_fn=noop_context_fn):
        y = checkpoint(inner, x.sin(), use_reentrant=False, context_fn=context_fn)
        return y.exp() @ x

    x = clew.randn(3, 3)
    a = run(outer, x, noop_context_fn)
    for rule in (RULES["everything"], RULES["products"], RULES["nothing"]):
        b = run(outer, x, keeping(rule))
        c = run(functools.partial(outer, context_fn=keeping(rule)), x, noop_context_fn)
        d = run(functools.partial(outer, context_fn=keeping(rule)), x, keeping(rule))
        assert all(clew.equal(p, q) for other in (b, c, d) for p, q in zip(a, other))


def test_a_function_that_does_something_else_the_second_time():
    calls = []

    def f(x):
        calls.append(1)
        return (x @ x).sin() if len(calls) == 1 else (x * x).sin()

    with pytest.raises(RuntimeError, match=r"where aten.mm.default was at first, aten.mul.Tensor"):
        run(f, clew.randn(3, 3), keeping([aten.mm.default]))


def test_backward_in_another_thread():
    x = clew.randn(3, 3, requires_grad=True)
    f = lambda x: (x @ x).sin() @ x
    y = checkpoint(f, x, use_reentrant=False, context_fn=keeping([aten.mm.default])).sum()
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    assert clew.equal(x.grad, clew.autograd.grad(f(x).sum(), x)[0])


def test_in_a_memory_budget():
    net = nn.Sequential(*[nn.Sequential(nn.Linear(32, 32), nn.GELU()) for _ in range(6)])
    x = clew.randn(64, 32)
    a = run(net, x, noop_context_fn)
    live = clew._C._memory_stats()["live_bytes"]  # also what other tests left
    with clew.memory_budget(live + 200_000):
        b = run(net, x, keeping([aten.addmm.default]))
    assert all(clew.equal(p, q) for p, q in zip(a, b))


def test_operations_that_a_program_added():
    @clew.library.custom_op("kept::twice", mutates_args=())
    def twice(x: clew.Tensor) -> clew.Tensor:
        runs.append("twice")
        return 2 * x

    @clew.library.custom_op("kept::write", mutates_args=("x",))
    def write(x: clew.Tensor) -> None:
        runs.append("write")
        x.mul_(3)

    twice.register_autograd(lambda ctx, g: 2 * g)
    here = clew.ops.kept
    assert not here.twice.default.is_view and not here.twice.default._schema.is_mutable
    assert here.write.default._schema.is_mutable

    def f(x):
        with clew.no_grad():
            factor = x.cos()
            write(factor)
        return twice(x.sin()).exp() * factor

    runs = []
    x = clew.randn(3)
    a = run(f, x, noop_context_fn)
    assert runs == 2 * ["write", "twice"]
    for rule, again in (
        ([here.twice.default], ["write"]),
        ([here.write.default], ["write", "twice"]),
    ):
        runs.clear()
        b = run(f, x, keeping(rule))
        assert runs == ["write", "twice", *again]
        assert all(clew.equal(p, q) for p, q in zip(a, b))


def test_wrong_rules():
    with pytest.raises(ValueError, match=r"name its overload: aten.mm.default"):
        create_selective_checkpoint_contexts([aten.mm])
    with pytest.raises(ValueError, match="to be an OpOverload"):
        create_selective_checkpoint_contexts([clew.mm])
    with pytest.raises(TypeError, match="function or a list"):
        create_selective_checkpoint_contexts(3)
