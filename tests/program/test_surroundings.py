"""What surrounds calls that wait or are gathered: modes, hooks, processes, references, tools."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import threading
import weakref
from copy import deepcopy

import numpy as np
import pytest

import clew
from clew import nn

REGIONS = {"deferred": lambda: clew.deferred(0), "autobatch": clew.autobatch}


@pytest.fixture(params=REGIONS)
def region(request):
    return REGIONS[request.param]


def leaf(*shape):
    clew.manual_seed(0)
    return (clew.rand(*shape) + 0.5).requires_grad_()


def check(region, function, *shapes):
    """The function's results and the gradients of their sum are those of the plain program."""
    outcomes = []
    for inside in (False, True):
        leaves = [leaf(*shape) for shape in shapes]
        if inside:
            with region():
                result = function(*leaves)
        else:
            result = function(*leaves)
        result.sum().backward()
        outcomes.append([result.detach(), *(x.grad for x in leaves)])
    for got, want in zip(outcomes[1], outcomes[0]):
        assert got.dtype == want.dtype and clew.allclose(got.float(), want.float(), rtol=1e-6)


# ---- modes and tools -----------------------------------------------------------------------------


def test_autocast(region):
    def run(x, w):
        with clew.autocast("cpu", dtype=clew.bfloat16):
            y = x @ w
            assert y.dtype == clew.bfloat16
            return y.exp().sum(0)

    check(region, run, (4, 8), (8, 3))


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint(region, use_reentrant):
    def inner(x):
        return (x * 2).tanh() * x

    def run(x):
        y = clew.utils.checkpoint.checkpoint(inner, x.sin(), use_reentrant=use_reentrant)
        return y * 3

    check(region, run, (5, 3))


def test_saved_tensor_hooks(region):
    packed, unpacked = [], []

    def pack(t):
        packed.append(t.shape)
        return t.numpy().copy()

    def unpack(a):
        unpacked.append(a.shape)
        return clew.from_numpy(a)

    def run(x):
        with clew.autograd.graph.saved_tensors_hooks(pack, unpack):
            return (x.exp() * x).sin()

    check(region, run, (4, 2))
    assert len(packed) == 2 * len(unpacked) / 2 and packed[: len(packed) // 2]


def test_transforms(region):
    def run(x):
        square = clew.func.vmap(lambda row: row.square().sum())(x)
        slope = clew.func.grad(lambda v: (v * v * v).sum())(x.detach())
        return square[:, None] * slope

    check(region, run, (4, 3))


def test_custom_functions(region):
    class Cube(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.mark_non_differentiable()
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x * x

    check(region, lambda x: Cube.apply(x * 2) + Cube.apply(x), (4, 3))


def test_hooks(region):
    seen = []

    def run(x):
        y = x * 2
        y.register_hook(lambda g: seen.append(g.sum().item()) or g * 2)
        return y.sin()

    x = leaf(4)
    with region():
        z = run(x)
    z.sum().backward()
    assert len(seen) == 1 and clew.allclose(x.grad, 4 * (2 * x.detach()).cos())


def test_module_hooks(region):
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    sums = []
    model[0].register_forward_hook(lambda m, args, out: sums.append(out.sum().item()))
    model.register_full_backward_hook(lambda m, gi, go: sums.append(go[0].sum().item()))
    x = leaf(2, 3)
    with region():
        y = model(x)
    y.sum().backward()
    assert sums[0] == pytest.approx(model[0](x).sum().item(), rel=1e-5) and sums[1] == 8.0


def test_nan_watch_names_the_line(region):
    with pytest.raises(Exception, match="test_surroundings.py.*log"):
        with clew.debug.nan_watch():
            with region():
                x = clew.zeros(3) - 1
                y = x.log()  # here
                (y * 2).sum().item()


def test_anomaly_detection(region):
    x = clew.zeros(3, requires_grad=True)
    with clew.autograd.detect_anomaly():
        with region():
            y = (x.sqrt() * 0).sum()
        with pytest.raises(RuntimeError, match="(?s)Sqrt.*test_surroundings.py"):
            y.backward()


def test_profiler_sees_what_ran(region):
    x = leaf(8, 8)
    with clew.profiler.profile() as p:
        with region():
            y = (x.exp() * 2).sum()
        y.backward()
    names = " ".join(e.key for e in p.key_averages())
    assert "exp" in names and "mul" in names and "sum" in names


def test_debug_compare_and_record_see_the_same(region):
    x = leaf(4)
    with region():
        y = x.exp() * 2
        z = y.log()
    assert clew.allclose(z, x.detach() + np.log(2), rtol=1e-6)
    assert "exp" in str(clew.graph(z)).lower()


# ---- references ----------------------------------------------------------------------------------


def test_weak_references_die_with_their_tensors(region):
    died = []
    with region():
        x = clew.ones(4)
        y = x * 2
        kept = y + 1
        y.tag = "mine"
        watch = weakref.ref(y, lambda _: died.append(1))
        assert watch() is y
        del y
        gc.collect()
        assert died == [1] and watch() is None
        other = kept * 3
        watch = weakref.ref(other)
    assert watch() is other and other.tolist() == [9.0] * 4


def test_attributes_and_identity_stay(region):
    with region():
        y = clew.ones(3) * 2
        y.note = {"a": 1}
        where = id(y)
        z = {y: "key"}
    assert id(y) == where and y.note == {"a": 1} and z[y] == "key"
    assert y.tolist() == [2.0] * 3


def test_copies_and_pickles(region):
    x = leaf(3)
    with region():
        y = (x * 2).detach()
        twin, again = deepcopy(y), pickle.loads(pickle.dumps(y))
        shallow = y.clone()
        y.add_(1)
    assert y.tolist() == pytest.approx((x.detach() * 2 + 1).tolist())
    for t in (twin, again, shallow):
        assert t.tolist() == pytest.approx((x.detach() * 2).tolist())


def test_dlpack_and_numpy_share_memory(region):
    with region():
        y = clew.ones(3) * 2
        array, other = y.numpy(), clew.from_dlpack((y + 1).detach())
        array[0] = 7
        z = y * 1
        array[1] = 8
    assert y.tolist() == [7.0, 8.0, 2.0] and z.tolist() == [7.0, 2.0, 2.0]
    assert other.tolist() == [3.0] * 3


def test_results_in_reference_cycles_are_collected(region):
    class Holder:
        pass

    with region():
        h = Holder()
        h.y = clew.ones(5) * 3
        h.me = h
        watch = weakref.ref(h)
        del h
        gc.collect()
        assert watch() is None
        z = clew.ones(2) + 1
    assert z.tolist() == [2.0, 2.0]


# ---- threads, processes, interrupts --------------------------------------------------------------


def test_another_thread_reads_what_waits(region):
    got = []
    with region():
        y = (clew.ones(4) * 2).exp()
        thread = threading.Thread(target=lambda: got.append(y.tolist()))
        thread.start()
        thread.join()
        z = y + 1
    assert got == [pytest.approx([np.exp(2)] * 4)] and z.tolist() == pytest.approx(
        [np.exp(2) + 1] * 4
    )


def test_many_threads_at_once(region):
    failures = []

    def work(seed):
        try:
            for k in range(20):
                with region():
                    x = clew.full((16,), float(seed + k))
                    y = ((x * 2) + 1).sum()
                    if k % 3 == 0:
                        assert y.item() == 16 * (2 * (seed + k) + 1)
                assert y.item() == 16 * (2 * (seed + k) + 1)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_can_compute_what_waits(region):
    with region():
        y = (clew.ones(4) * 2).sum()
        child = os.fork()
        if child == 0:
            os._exit(0 if y.item() == 8 else 1)
        assert os.waitpid(child, 0)[1] == 0
        z = y + 1
    assert y.item() == 8 and z.item() == 9


class Squares(clew.utils.data.Dataset):
    def __init__(self, region):
        self.region = region

    def __len__(self):
        return 8

    def __getitem__(self, i):
        with REGIONS[self.region]():
            return clew.full((3,), float(i)) ** 2


@pytest.mark.parametrize("name", REGIONS)
def test_data_loader_workers(name):
    loader = clew.utils.data.DataLoader(Squares(name), batch_size=4, num_workers=2)
    with REGIONS[name]():
        sums = [(batch * 2).sum() for batch in loader]
    assert [s.item() for s in sums] == [84.0, 756.0]


def test_an_interrupt_leaves_results_that_say_so_or_are_right(region):
    with region():
        y = clew.ones(4) * 2
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
            for _ in range(1000):
                y = y + 0
    assert y.tolist() == [2.0] * 4


def test_after_an_exception_the_next_region_works(region):
    with pytest.raises(ZeroDivisionError):
        with region():
            y = clew.ones(3) * 2
            1 / 0  # noqa: B018
    with region():
        z = clew.ones(3) * 3
    assert y.tolist() == [2.0] * 3 and z.tolist() == [3.0] * 3


def test_reentrance(region):
    """A function of the program runs in the middle of what the core does."""
    x = leaf(3)

    class Loud(clew.Tensor):
        pass

    with region():
        y = (x * 2).as_subclass(Loud) if hasattr(x, "as_subclass") else x * 2
        z = y + 1
        y.register_hook(lambda g: (g * 1).sum() * 0 + g)
        z.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_in_place_writes_on_views_of_results(region):
    def run(x):
        y = x * 2
        y[0].mul_(3)
        y[:, 1] = 5
        y.T[0].add_(1)
        return y * x

    check(region, run, (3, 3))
