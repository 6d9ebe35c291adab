"""Python code that runs in the middle of graph operations: finalizers, hooks, weak references."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

import clew
from clew.autograd.graph import saved_tensors_hooks


def in_child(code: str, timeout: float = 60) -> str:
    """What the program prints; it may crash without taking the tests along."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout.strip()


def test_finalizer_that_uses_a_leaf_whose_graph_is_being_freed():
    out = in_child(
        """
import clew
x = clew.ones(4, requires_grad=True)
y = x * 2
class D:
    def __del__(self):
        global z
        z = x * 3
y.grad_fn.metadata["d"] = D()
del y
others = [clew.ones(4, requires_grad=True) for _ in range(5)]
kept = [q * 2 for q in others]
z.sum().backward()
print(x.grad.tolist(), [q.grad for q in others])
"""
    )
    assert out == "[3.0, 3.0, 3.0, 3.0] [None, None, None, None, None]"


def test_finalizer_that_asks_for_the_grad_fn_whose_object_is_being_freed():
    out = in_child(
        """
import clew
x = clew.ones(4, requires_grad=True)
y = x * 2
got = []
class D:
    def __del__(self):
        got.append(y.grad_fn)
y.grad_fn.attribute = D()
other = y.grad_fn
print(got[0].name(), other is got[0])
"""
    )
    assert out == "MulBackward0 True"


def test_finalizer_that_uses_the_context_of_a_node_being_freed():
    out = in_child(
        """
import clew
class F(clew.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        global held
        held = ctx
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g
x = clew.ones(4, requires_grad=True)
y = F.apply(x)
class D:
    def __del__(self):
        for f in (lambda: held.saved_tensors, lambda: held.next_functions, lambda: held(x)):
            try:
                f()
            except RuntimeError as e:
                told.append("not part of a graph" in str(e))
told = []
z = y * 3
z.grad_fn.metadata["d"] = D()
del y, z
print(told)
"""
    )
    assert out == "[True, True, True]"


def test_retained_gradient_of_a_tensor_on_its_way_out():
    out = in_child(
        """
import clew
x = clew.ones(4, requires_grad=True)
y = x * 2
y.retain_grad()
z = y * 3
class D:
    def __del__(self):
        z.sum().backward()
y.attribute = D()
del y
print(x.grad.tolist())
"""
    )
    assert out == "[6.0, 6.0, 6.0, 6.0]"


def test_retained_gradients_whose_release_lets_another_tensor_go():
    out = in_child(
        """
import clew
x = clew.ones(4, requires_grad=True)
parts = list((x * 2).split(2))
class D:
    def __del__(self):
        parts.clear()
for p in parts:
    p.retain_grad()
z = clew.cat(parts).sum()
class Sub(clew.Tensor):
    pass
g = clew.ones(2).as_subclass(Sub)
g.attribute = D()
parts[0].grad = g
del g
z.backward()
print(x.grad.tolist(), parts)
"""
    )
    assert out == "[2.0, 2.0, 2.0, 2.0] []"


@pytest.mark.parametrize(
    "link",
    [
        "n.grad = t",
        "n.next = t",
        "n.requires_grad_(); n.register_hook(lambda g, t=t: None)",
        "n.requires_grad_(); n = n * 1; n.grad_fn.metadata['next'] = t",
        "n.requires_grad_(); n = n * 1; n.grad_fn.register_hook(lambda a, b, t=t: None)",
        "n.grad = t.view(1).detach(); n.next = [t]",
        "n = clew.from_numpy(t.numpy())",
        "n = clew.from_dlpack(t)",
        "n = clew.frombuffer(memoryview(t.numpy()), dtype=clew.float32)",
    ],
)
def test_long_chains_are_freed_without_a_stack(link):
    out = in_child(
        f"""
import clew, threading
def chain():
    t = clew.ones(1)
    for _ in range(5000):
        n = clew.ones(1)
        {link}
        t = n
threading.stack_size(1 << 18)
thread = threading.Thread(target=chain)
thread.start()
thread.join()
print("freed")
"""
    )
    assert out == "freed"


def test_tensor_of_a_storage_whose_owner_looks_at_it_as_it_goes():
    np = pytest.importorskip("numpy")

    class Array(np.ndarray):
        def __del__(self):
            seen.append(t.sum().item())

    seen: list[float] = []
    t = clew.from_numpy(np.ones(3, np.float32).view(Array))
    t.data = clew.full((5,), 2.0)
    assert seen == [10.0]


class KeepsResult(clew.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.result = x.exp()
        return ctx.result

    @staticmethod
    def backward(ctx, g):
        return g * ctx.result


def test_function_that_keeps_its_output_on_the_context_is_collected():
    import weakref

    x = clew.ones(3, requires_grad=True)
    contexts = []
    for _ in range(3):
        y = KeepsResult.apply(x)
        contexts.append(weakref.ref(y.grad_fn))
        y.sum().backward()
    del y
    gc.collect()
    assert [c() for c in contexts] == [None] * 3


def test_collector_leaves_a_kept_output_alone_while_its_graph_is_held():
    x = clew.ones(3, requires_grad=True)
    loss = KeepsResult.apply(x).sum()
    gc.collect()
    loss.backward()
    assert x.grad.tolist() == pytest.approx([2.7182817] * 3)


@pytest.mark.slow
def test_memory_is_bounded_where_functions_keep_their_output():
    out = in_child(
        """
import clew, resource
class F(clew.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.result = x.exp()
        return ctx.result
    @staticmethod
    def backward(ctx, g):
        return g * ctx.result
x = clew.ones(1 << 20, requires_grad=True)
for _ in range(300):
    F.apply(x).sum().backward()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
    )
    assert int(out) < 600


# ---- gradients that hooks change ----


def test_hook_that_resizes_the_gradient_in_place():
    x = clew.ones(4, requires_grad=True)
    y = x.exp()
    y.register_hook(lambda g: g.resize_(1000))
    with pytest.raises(RuntimeError, match="shape"):
        y.sum().backward()


@pytest.mark.parametrize("kind", ["tensor", "leaf", "node", "post", "function", "seed", "call"])
def test_gradient_on_another_device_is_refused(kind):
    x = clew.ones(4, requires_grad=True)
    y = x.exp()
    meta = clew.ones(4, device="meta")
    seed = clew.ones(4)
    if kind == "tensor":
        y.register_hook(lambda g: meta)
    elif kind == "leaf":
        x.register_hook(lambda g: meta)
    elif kind == "node":
        y.grad_fn.register_prehook(lambda gs: (meta,))
    elif kind == "post":
        y.grad_fn.register_hook(lambda ins, outs: (meta,))
    elif kind == "function":

        class F(clew.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return meta

        y = F.apply(x.exp())
    with pytest.raises(RuntimeError, match="meta"):
        if kind == "seed":
            y.backward(meta)
        elif kind == "call":
            y.grad_fn(meta)
        else:
            y.backward(seed)


def test_unpack_hook_that_resizes_the_gradient_its_rule_uses():
    held = []
    x = clew.rand(64, 64, requires_grad=True)

    def unpack(t):
        for g in held:
            g.resize_(0)
        return t

    with saved_tensors_hooks(lambda t: t, unpack):
        y = x @ x
    y.register_hook(held.append)
    y.backward(clew.ones(64, 64))
    ones = clew.ones(64, 64)
    clew.testing.assert_close(x.grad, ones @ x.detach().T + x.detach().T @ ones)


# ---- saved-tensor hooks ----


def backward_with(unpack, f):
    with saved_tensors_hooks(lambda t: t, unpack):
        out = f()
    out.sum().backward()


def garbage():
    return {
        "meta": lambda t: clew.empty(t.shape, dtype=t.dtype, device="meta"),
        "empty": lambda t: clew.empty(0, dtype=t.dtype),
        "longer": lambda t: clew.zeros(*[n + 7 for n in t.shape] or [9], dtype=t.dtype),
        "scalar": lambda t: clew.zeros((), dtype=t.dtype),
        "kind": lambda t: t.to(clew.int64 if t.dtype.is_floating_point else clew.float32),
        "huge": lambda t: t * 0 + (10**9 if not t.dtype == clew.bool else True),
        "negative": lambda t: -(t * 0 + 10**9) if t.dtype != clew.bool else t * 0,
        "expanded": lambda t: t.new_zeros(()).expand(t.shape),
    }


RULES = {
    "index": lambda: clew.rand(5, 4, requires_grad=True)[clew.tensor([0, 4, 2])],
    "mask": lambda: clew.rand(5, requires_grad=True)[clew.tensor([True, False, True, True, False])],
    "masked_select": lambda: clew.rand(4, requires_grad=True).masked_select(
        clew.tensor([True, False, True, False])
    ),
    "take": lambda: clew.rand(5, 4, requires_grad=True).take(clew.tensor([0, 19, 3])),
    "gather": lambda: clew.rand(5, 4, requires_grad=True).gather(0, clew.tensor([[0, 4, 2, 1]])),
    "embedding": lambda: clew.nn.functional.embedding(
        clew.tensor([1, 4]), clew.rand(5, 3, requires_grad=True)
    ),
    "embedding_bag": lambda: clew.nn.functional.embedding_bag(
        clew.tensor([1, 4, 0]), clew.rand(5, 3, requires_grad=True), clew.tensor([0, 2])
    ),
    "cross_entropy": lambda: clew.nn.functional.cross_entropy(
        clew.rand(4, 6, requires_grad=True), clew.tensor([0, 5, 2, 1])
    ),
    "nll_loss": lambda: clew.nn.functional.nll_loss(
        clew.rand(4, 6, requires_grad=True), clew.tensor([0, 5, 2, 1])
    ),
    "rms_norm": lambda: clew.nn.functional.rms_norm(
        clew.rand(4, 64, requires_grad=True), (64,), clew.rand(64, requires_grad=True)
    ),
    "layer_norm": lambda: clew.nn.functional.layer_norm(
        clew.rand(4, 64, requires_grad=True), (64,), clew.rand(64, requires_grad=True)
    ),
    "batch_norm": lambda: clew.nn.functional.batch_norm(
        clew.rand(4, 8, 5, requires_grad=True), None, None, training=True
    ),
    "max_pool": lambda: clew.nn.functional.max_pool2d(clew.rand(1, 2, 6, 6, requires_grad=True), 2),
    "max": lambda: clew.rand(5, 4, requires_grad=True).max(1).values,
    "sort": lambda: clew.rand(50, requires_grad=True).sort().values,
    "cumprod": lambda: clew.rand(50, requires_grad=True).cumprod(0),
    "softmax": lambda: clew.rand(5, 40, requires_grad=True).softmax(1),
    "mm": lambda: clew.rand(30, 40, requires_grad=True) @ clew.rand(40, 20, requires_grad=True),
    "conv": lambda: clew.nn.functional.conv2d(
        clew.rand(1, 2, 8, 8, requires_grad=True), clew.rand(3, 2, 3, 3, requires_grad=True)
    ),
    "attention": lambda: clew.nn.functional.scaled_dot_product_attention(
        *(clew.rand(1, 2, 8, 16, requires_grad=True) for _ in range(3))
    ),
    "ctc": lambda: clew.nn.functional.ctc_loss(
        clew.rand(9, 2, 4, requires_grad=True).log_softmax(2),
        clew.tensor([1, 2, 3, 1]),
        clew.tensor([9, 9]),
        clew.tensor([1, 3]),
    ),
    "grid_sample": lambda: clew.nn.functional.grid_sample(
        clew.rand(1, 2, 6, 6, requires_grad=True),
        clew.rand(1, 4, 4, 2, requires_grad=True),
        align_corners=False,
    ),
    "exp": lambda: clew.rand(200, requires_grad=True).exp(),
    "gru": lambda: clew.nn.GRU(4, 8)(clew.rand(5, 2, 4, requires_grad=True))[0],
}


def test_an_unpack_hook_is_asked_once_for_each_saved_tensor():
    asked = []

    def unpack(pair):
        asked.append(pair[0])
        return pair[1]

    x, y = (clew.rand(2, 3, requires_grad=True) for _ in range(2))
    numbers = iter(range(100))
    with saved_tensors_hooks(lambda t: (next(numbers), t), unpack):
        z = clew.atan2(x, y) / (x + 1) + x.pow(y) + clew.nn.functional.layer_norm(x, (3,))
    given = next(numbers)
    grads = clew.autograd.grad(z.sum(), (x, y), create_graph=True)
    assert sorted(asked) == list(range(given))
    assert all(g.requires_grad for g in grads)
    want = clew.atan2(x, y) / (x + 1) + x.pow(y) + clew.nn.functional.layer_norm(x, (3,))
    for a, b in zip(grads, clew.autograd.grad(want.sum(), (x, y), create_graph=True)):
        assert clew.allclose(a, b)
        for first, second in zip(
            clew.autograd.grad(a.sum(), (x, y), retain_graph=True),
            clew.autograd.grad(b.sum(), (x, y), retain_graph=True),
        ):
            assert clew.allclose(first, second)


def test_rules_are_safe_whatever_unpack_hooks_return():
    """Each either computes something or raises; in a child, since a crash is looked for."""
    out = in_child(
        """
import clew, warnings
warnings.simplefilter("ignore")
from tests.autograd.test_graph_safety import RULES, garbage, backward_with
for name, rule in RULES.items():
    for kind, unpack in garbage().items():
        try:
            backward_with(unpack, rule)
        except (RuntimeError, IndexError, ValueError, TypeError) as e:
            assert "internal error" not in str(e), (name, kind, e)
print("done")
""",
        timeout=200,
    )
    assert out == "done"


@pytest.mark.parametrize("kind", ["meta", "empty", "longer", "scalar"])
def test_what_an_unpack_hook_returns_is_checked(kind):
    with pytest.raises(RuntimeError, match="unpack hook"):
        backward_with(garbage()[kind], RULES["exp"])


def test_indices_must_come_back_from_unpack_hooks_as_they_were():
    with pytest.raises(RuntimeError, match="unchanged"):
        backward_with(lambda t: t + 1, RULES["take"])
    x = clew.rand(5, requires_grad=True)
    with saved_tensors_hooks(lambda t: t.tolist(), clew.tensor):
        y = x.take(clew.tensor([0, 4, 0]))
    y.sum().backward()
    assert x.grad.tolist() == [2, 0, 0, 0, 1]


def test_unpack_hooks_may_return_another_precision_or_layout():
    x = clew.rand(6, 8, requires_grad=True)
    for pack, unpack, tolerance in (
        (lambda t: t.half(), lambda t: t.float(), 1e-2),
        (lambda t: t.half(), lambda t: t, 1e-2),
        (lambda t: t.T.contiguous(), lambda t: t.T, 0),
    ):
        x.grad = None
        with saved_tensors_hooks(pack, unpack):
            y = x.sigmoid().tanh().softmax(1)
        (y * clew.arange(8.0)).sum().backward()
        got, x.grad = x.grad, None
        (x.sigmoid().tanh().softmax(1) * clew.arange(8.0)).sum().backward()
        clew.testing.assert_close(got, x.grad, atol=tolerance, rtol=tolerance)


def test_hooks_that_release_what_they_bring_back():
    x = clew.rand(4, requires_grad=True)
    again = []

    def unpack(t):
        if not again:
            again.append(True)
            y.backward(clew.ones(4))
        return t

    with saved_tensors_hooks(lambda t: t, unpack):
        y = x.exp()
    y.backward(clew.ones(4))
    clew.testing.assert_close(x.grad, 2 * x.detach().exp())


def test_pack_hook_that_takes_itself_off():
    def pack(t):
        clew._C._pop_saved_hooks()
        return t

    x = clew.rand(4, requires_grad=True)
    clew._C._push_saved_hooks((pack, lambda t: t * 1))
    y = x.exp()
    y.sum().backward()
    clew.testing.assert_close(x.grad, x.detach().exp())


def test_numbers_are_not_given_to_saved_tensor_hooks():
    x = clew.rand(4, requires_grad=True)
    shapes = []
    with saved_tensors_hooks(lambda t: (shapes.append(tuple(t.shape)), t)[1], lambda t: t):
        y = (x**3) * 2 / 3 + 1 / x + clew.where(x > 0, x, 3.0)
        y.sum().backward()
    assert () not in shapes
    with saved_tensors_hooks(lambda t: (shapes.append(tuple(t.shape)), t)[1], lambda t: t):
        x * clew.tensor(2.0)
    assert () in shapes


@pytest.mark.parametrize("f", [clew.exp, clew.sin])
def test_pack_hook_that_writes_its_argument(f):
    with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        with saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
            f(clew.rand(3, requires_grad=True) * 1)


# ---- backward inside of backward ----

NESTED = """
import clew
from clew.autograd import Function

class Deep(Function):
    @staticmethod
    def forward(ctx, x):
        with clew.enable_grad():
            ctx.x = x.detach().requires_grad_() - 1
        return ctx.x.detach()

    @staticmethod
    def backward(ctx, g):
        if ctx.x < 0:
            {innermost}
        with clew.enable_grad():
            Deep.apply(ctx.x).sum().backward()
        return g

x = clew.tensor(1500.0, requires_grad=True)
"""


def test_backward_nested_deeper_than_the_recursion_limit():
    out = in_child(
        NESTED.format(innermost="return g")
        + """
Deep.apply(x).sum().backward()
print(x.grad.item(), clew.is_grad_enabled())
calls = 0
def hook(g):
    global calls
    calls += 1
    if calls < 1500:
        with clew.enable_grad():
            y = clew.ones(2, requires_grad=True) * 2
            y.register_hook(hook)
            y.sum().backward()
y = clew.ones(2, requires_grad=True) * 2
y.register_hook(hook)
y.sum().backward()
print(calls)
"""
    )
    assert out == "1.0 True\n1500"


def test_what_a_deeply_nested_backward_raises_arrives():
    out = in_child(
        NESTED.format(innermost="raise KeyError('innermost')")
        + """
try:
    Deep.apply(x).sum().backward()
except KeyError as e:
    print(e.args[0], x.grad)
clew.ones(2, requires_grad=True).sum().backward()
"""
    )
    assert out == "innermost None"


def test_modes_reach_a_deeply_nested_backward():
    out = in_child(
        NESTED.format(innermost="seen.append(clew.is_grad_enabled()); return packed_by_hook(g)")
        + """
x = clew.tensor(200.0, requires_grad=True)
seen, packed = [], []
def packed_by_hook(g):
    with clew.enable_grad():
        clew.ones(2, requires_grad=True).exp()
    return g
with clew.autograd.graph.saved_tensors_hooks(lambda t: (packed.append(1), t)[1], lambda t: t):
    Deep.apply(x).sum().backward()
print(seen, len(packed) > 0)
"""
    )
    assert out == "[False] True"


@pytest.mark.parametrize("product", [clew.mul, clew.matmul, clew.nn.functional.linear])
def test_a_parameter_that_was_written_and_then_gets_other_data(product):
    weight = clew.nn.Parameter(clew.empty(2, 2))
    clew.nn.init.constant_(weight, 2.0)  # a write, which its storage counts
    x = clew.ones(2, 2, requires_grad=True)
    out = product(x, weight)
    weight.data = clew.full((2, 2), 9.0)
    out.sum().backward()  # what replaces the data is no write to what was saved
    assert weight.grad.tolist() == clew.autograd.grad(product(x, weight).sum(), weight)[0].tolist()
    assert x.grad is not None

    out = product(x, weight)
    with clew.no_grad():
        weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


@pytest.mark.parametrize(
    "move",
    [lambda w: w.share_memory_(), lambda w: w.untyped_storage().resize_(64)],
    ids=["shared", "grown"],
)
def test_a_written_parameter_whose_bytes_move_is_still_written(move):
    weight = clew.nn.Parameter(clew.ones(4))
    out = (weight * weight).sum()
    with clew.no_grad():
        weight.add_(1)
    move(weight)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()
