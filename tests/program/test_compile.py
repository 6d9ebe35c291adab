"""clew.compile and clew.deferred: what they promise about calls, errors, modules and generators."""

from __future__ import annotations

import asyncio
import copy
import gc
import inspect
import io
import pickle
import threading
import weakref

import numpy as np
import pytest

import clew
from clew import _C, nn

N = 100_000  # elements that wait


def waiting() -> int:
    """How many calls of this thread wait (they run)."""
    return _C._run_deferred()


def noted(seen: list[bool]) -> None:
    seen.append(_C._defer(None) is not None)
    if seen[-1]:
        _C._defer(65536)


def chain(x: clew.Tensor) -> clew.Tensor:
    return (x * 2 + 1).sin().exp() - x


def test_a_compiled_function_gives_the_same_bits():
    x = clew.randn(N)
    assert clew.compile(chain)(x).equal(chain(x))
    assert waiting() == 0


def test_gradients_of_a_compiled_forward_are_the_same_and_wait():
    x = clew.randn(N, requires_grad=True)
    chain(x).sum().backward()
    eager, x.grad = x.grad, None
    clew.compile(chain)(x).sum().backward()
    assert waiting() == 0
    assert x.grad.equal(eager)


def test_name_signature_and_documentation_are_the_functions():
    def f(a: clew.Tensor, *, b: int = 3) -> clew.Tensor:
        """Adds."""
        return a + b

    g = clew.compile(f)
    assert g.__name__ == "f" and g.__doc__ == "Adds." and g.__wrapped__ is f
    assert inspect.signature(g) == inspect.signature(f)
    assert g(clew.zeros(2), b=1).tolist() == [1, 1]
    assert g._torchdynamo_orig_callable is f


def test_as_a_decorator_with_and_without_options():
    @clew.compile
    def f(x):
        return x + 1

    @clew.compile(fullgraph=True, dynamic=False, mode="reduce-overhead")
    def g(x):
        return x + 2

    assert f(clew.zeros(1)).item() == 1 and g(clew.zeros(1)).item() == 2


def test_methods():
    class A:
        def __init__(self):
            self.k = 3

        @clew.compile
        def times(self, x):
            return x * self.k

    assert A().times(clew.ones(2)).tolist() == [3, 3]
    assert clew.compile(A().times)(clew.ones(2)).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"backend": "tvm"}, NotImplementedError),
        ({"backend": lambda gm, inputs: gm}, NotImplementedError),
        ({"mode": "fast"}, RuntimeError),
        ({"options": {"max_autotune": True}}, RuntimeError),
        ({"mode": "default", "options": {"a": 1}}, RuntimeError),
    ],
)
def test_what_cannot_be_kept_is_refused(options, error):
    with pytest.raises(error, match="compile:"):
        clew.compile(chain, **options)


def test_what_only_a_compiler_asks_for_is_taken():
    x = clew.rand(5)
    options = {"name": "part", "recompile_limit": 2, "isolate_recompiles": True}
    made = clew.compile(chain, backend=None, shapes_spec=None, **options)
    assert clew.equal(made(x), chain(x))
    assert clew.equal(clew.compile(**options)(chain)(x), chain(x))


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="compile: expected a function or module; got Tensor"):
        clew.compile(clew.ones(2))
    with pytest.raises(TypeError):
        _C.Deferring(3, 4)


def test_disable_gives_the_model_itself():
    assert clew.compile(chain, disable=True) is chain
    layer = nn.Linear(2, 2)
    assert clew.compile(layer, disable=True) is layer
    compiled = clew.compile(chain)
    assert clew.compile(compiled) is compiled


def test_nothing_goes_stale():
    scale = [2.0]
    f = clew.compile(lambda x: x * scale[0] if x.sum() > 0 else x - scale[0])
    assert f(clew.ones(N))[0].item() == 2
    scale[0] = 5.0
    assert f(clew.ones(N))[0].item() == 5
    assert f(-clew.ones(N))[0].item() == -6


def test_an_exception_of_the_function_goes_first_and_nothing_waits_behind_it():
    x = clew.zeros(N)

    @clew.compile
    def f():
        x.add_(1)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        f()
    assert waiting() == 0 and x[0].item() == 1


def test_an_error_of_values_comes_at_the_end_at_the_latest_with_its_line():
    scores, labels = clew.zeros(80, 4000), clew.full((80,), 9999)

    @clew.compile
    def f():
        return nn.functional.nll_loss(scores * 2, labels)

    with pytest.raises(IndexError, match=r"nll_loss\(scores \* 2, labels\)"):
        f()
    assert clew.compile(chain)(clew.ones(N)).shape == (N,)


def test_regions_nest_and_only_the_outermost_ends_the_waiting():
    x = clew.ones(N)
    with clew.deferred():
        y = x + 1
        with clew.deferred(least=0):
            z = clew.ones(3) + 1
        assert waiting() == 2
        z = z + y[:3]
    assert waiting() == 0 and z.tolist() == [4, 4, 4]


def test_a_region_may_be_used_again_and_as_a_decorator():
    region = clew.deferred()
    for _ in range(2):
        with region, region:
            y = clew.ones(N) * 3
        assert y[1].item() == 3

    @clew.deferred()
    def f(x):
        """Doc."""
        return x * 4

    assert f(clew.ones(N))[0].item() == 4 and f.__doc__ == "Doc."


@pytest.mark.parametrize("least", [-1, 1.5, True, "3"])
def test_a_region_refuses_what_is_no_number_of_elements(least):
    with pytest.raises(ValueError, match="deferred: least"):
        clew.deferred(least)


def test_small_operations_run_at_once():
    with clew.deferred():
        x = clew.ones(100) + 1
        (x @ x).exp()
        assert waiting() == 0


def test_a_region_as_a_decorator_of_a_generator():
    seen: list[bool] = []

    @clew.deferred(least=0)
    def steps():
        y = clew.ones(3) * 2
        noted(seen)
        yield y

    assert steps.__name__ == "steps"
    (y,) = steps()
    assert seen == [True] and waiting() == 0 and y.tolist() == [2, 2, 2]


def test_generators_wait_within_a_step_only():
    seen: list[bool] = []

    @clew.compile
    def steps(x):
        got = yield x + 1
        noted(seen)
        try:
            got = yield x * got
        except ValueError:
            got = 7
        yield x + got
        return "end"

    g = steps(clew.ones(N))
    assert next(g)[0].item() == 2 and waiting() == 0
    noted(seen)
    assert g.send(5)[0].item() == 5
    assert g.throw(ValueError())[0].item() == 8
    with pytest.raises(StopIteration, match="end"):
        next(g)
    assert seen == [False, True]


def test_closing_a_generator_closes_the_inner_one():
    closed = []

    @clew.compile
    def steps():
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    g = steps()
    assert next(g) == 1
    g.close()
    assert closed == [True]
    for first in steps():
        assert first == 1
        break
    del first
    gc.collect()
    assert closed == [True, True]


def test_coroutines_wait_within_a_step_only():
    seen: list[bool] = []

    @clew.compile
    async def one(x):
        y = x + 1
        await asyncio.sleep(0)
        noted(seen)
        return y * 2

    @clew.compile
    async def many(x):
        for k in range(3):
            await asyncio.sleep(0)
            yield x * k

    async def main():
        a, b = await asyncio.gather(one(clew.ones(N)), one(clew.zeros(N)))
        noted(seen)
        return a[0].item(), b[0].item(), [y[0].item() async for y in many(clew.ones(N))]

    assert asyncio.run(main()) == (4, 2, [0, 1, 2])
    assert seen == [True, True, False]


# ---- modules ------------------------------------------------------------------------------------


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8192), nn.GELU(), nn.Linear(8192, 2))


def test_a_compiled_module_shares_everything_with_its_module():
    plain = net()
    compiled = clew.compile(plain)
    x = clew.randn(16, 8)
    assert isinstance(compiled, nn.Module) and compiled._orig_mod is plain
    assert compiled(x).equal(plain(x))
    assert list(compiled.state_dict()) == [f"_orig_mod.{k}" for k in plain.state_dict()]
    compiled.load_state_dict(compiled.state_dict())
    assert [p is q for p, q in zip(compiled.parameters(), plain.parameters(), strict=True)]
    compiled.eval()
    assert not plain.training and not compiled.training and not plain[1].training
    plain.train()
    assert compiled.training
    compiled.note = 3
    assert plain.note == 3 and compiled.note == 3
    del compiled.note
    assert not hasattr(plain, "note")
    assert len(compiled) == 3 and compiled[0] is plain[0] and list(compiled) == list(plain)
    with pytest.raises(AttributeError, match="nothing_like_that"):
        _ = compiled.nothing_like_that


def test_a_compiled_module_trains_as_the_plain_one():
    clew.manual_seed(3)
    plain = net()
    other = copy.deepcopy(plain)
    compiled = clew.compile(other)
    x, y = clew.randn(16, 8), clew.randn(16, 2)
    for model in (plain, compiled):
        optimizer = clew.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(5):
            optimizer.zero_grad()
            ((model(x) - y) ** 2).mean().backward()
            optimizer.step()
    for p, q in zip(plain.parameters(), other.parameters(), strict=True):
        assert p.equal(q)


def test_hooks_of_a_compiled_module_run():
    calls = []
    compiled = clew.compile(net())
    compiled.register_forward_hook(lambda m, a, out: calls.append(type(m).__name__))
    compiled[1].register_full_backward_hook(lambda m, gi, go: calls.append(type(m).__name__))
    compiled(clew.randn(16, 8)).sum().backward()
    assert calls == ["OptimizedModule", "GELU"]


def test_module_compile_in_place():
    plain = net()
    seen: list[bool] = []
    plain[1].register_forward_hook(lambda *_: noted(seen))
    plain.compile()
    x = clew.randn(16, 8)
    plain(x)
    handle = plain.register_forward_hook(lambda *_: None)
    handle.remove()
    plain(x)
    assert seen == [True, True]
    with pytest.raises(RuntimeError, match="mode"):
        net().compile(mode="fast")


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_of_compiled_modules_are_compiled_and_apart(again):
    compiled = clew.compile(net())
    other = again(compiled)
    x = clew.randn(16, 8)
    assert other(x).equal(compiled(x)) and other._orig_mod is not compiled._orig_mod
    with clew.no_grad():
        compiled[0].weight.zero_()
    assert not other(x).equal(compiled(x))


def test_copies_of_compiled_modules_have_what_was_added_to_them():
    compiled = clew.compile(net())
    compiled.register_forward_hook(_doubled)
    compiled.register_buffer("offset", clew.ones(2))
    x = clew.randn(16, 8)
    for again in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert again(x).equal(compiled(x)) and again(x).equal(2 * compiled._orig_mod(x))
        assert list(again.state_dict()) == list(compiled.state_dict())


def _doubled(module, args, result):
    return 2 * result


def test_a_compiled_function_can_be_copied_pickled_and_collected():
    g = pickle.loads(pickle.dumps(clew.compile(chain)))
    x = clew.randn(N)
    assert g(x).equal(chain(x)) and g.__name__ == "chain"
    assert copy.copy(g)(x).equal(chain(x))

    def made():
        around = []
        around.append(clew.compile(lambda: around))
        return weakref.ref(around[0])

    gone = made()
    gc.collect()
    assert gone() is None


def test_saving_a_compiled_modules_state():
    compiled = clew.compile(net())
    file = io.BytesIO()
    clew.save(compiled.state_dict(), file)
    file.seek(0)
    compiled.load_state_dict(clew.load(file))


def test_threads_each_have_their_own_region():
    found = {}

    @clew.compile
    def f(k):
        return (clew.full((N,), float(k)) * 2 + 1).sum()

    def work(k):
        found[k] = [f(k).item() for _ in range(20)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(v == N * (2 * k + 1) for k, values in found.items() for v in values)


def test_compiler_names():
    assert clew.compiler.compile is clew.compile
    assert not clew.compiler.is_compiling() and not clew.compiler.is_dynamo_compiling()
    clew.compiler.reset()


def test_stances():
    double = clew.compile(lambda x: x * 2)
    x = clew.arange(4.0)
    for stance in ("force_eager", "fail_on_recompile", "default"):
        with clew.compiler.set_stance(stance):
            assert double(x).tolist() == [0, 2, 4, 6]
        assert clew.compiler.set_stance(stance)(double)(x[1:]).tolist() == [2, 4, 6]
        clew.compiler.set_stance(stance)
    clew.compiler.set_stance(force_backend="eager")
    with pytest.raises(ValueError, match="stance must be one of default, .*; got 'eager'"):
        clew.compiler.set_stance("eager")
    with pytest.raises(RuntimeError, match="non-default stance"):
        clew.compiler.set_stance("force_eager", force_backend="eager")
    with pytest.raises(NotImplementedError, match="force_backend must be None or a name"):
        clew.compiler.set_stance(force_backend=lambda graph, inputs: graph)


def test_numpy_sees_values_inside():
    @clew.compile
    def f(x):
        return np.asarray(x * 2).sum()

    assert f(clew.ones(N)) == 2 * N
