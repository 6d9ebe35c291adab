"""What samples of autobatch.map switch on while others are parked."""

from __future__ import annotations

import contextlib
import threading

import pytest
from plain_and_batched import assert_close

import clew
from clew import nn
from clew._base import tasks
from clew.autograd import forward_ad, graph

greenlet = pytest.importorskip("greenlet")


def asked(x):
    return x * (1 + 0 * x.sum().item())


def compare(run, samples):
    plain = [run(x) for x in samples]
    for got, want in zip(clew.autobatch.map(run, samples), plain, strict=True):
        assert_close(got.detach(), want.detach())


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(3, 3), nn.Tanh())

    def forward(self, x):
        return self.layer(asked(self.layer(x)))


def test_functional_call_across_observations():
    clew.manual_seed(0)
    net = Twice()
    own = dict(net.named_parameters())

    def run(x):
        given = {"layer.0.weight": net.layer[0].weight * x.sum().item()}
        return clew.func.functional_call(net, given, (x,)) + net(x)

    compare(run, list(clew.randn(4, 3)))
    assert all(p is own[name] for name, p in net.named_parameters())


def test_samples_park_in_a_map_within_functional_call():
    class Maps(Twice):
        def forward(self, xs):
            return clew.stack(clew.autobatch.map(super().forward, xs))

    clew.manual_seed(0)
    net = Maps()
    given = {"layer.0.bias": clew.ones(3)}
    xs = clew.randn(4, 3)
    got = clew.func.functional_call(net, given, (xs,))
    assert any(g.members == 4 for g in clew.autobatch.report().groups)
    net.layer[0].bias = nn.Parameter(clew.ones(3))
    assert_close(got.detach(), clew.stack([Twice.forward(net, x) for x in xs]).detach())


def test_levels_of_forward_differentiation():
    layer = nn.Linear(3, 3)

    def run(x):
        with forward_ad.dual_level():
            y = asked(layer(forward_ad.make_dual(x, x * 2)).tanh())
            return forward_ad.unpack_dual(layer(y)).tangent

    compare(run, list(clew.randn(4, 3)))


def test_duals_of_other_tasks_want_no_gradient():
    layer = nn.Linear(3, 3)

    def run(x, f):
        with forward_ad.dual_level():
            y = asked(f(forward_ad.make_dual(x, x * 2))).tanh()
            return forward_ad.unpack_dual(y)

    xs = list(clew.randn(3, 3))
    for f, wanted in ((clew.sin, False), (layer, True)):
        for made in clew.autobatch.map(lambda x, f=f: run(x, f), xs):
            assert made.primal.requires_grad is made.tangent.requires_grad is wanted


class Square(clew.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 2 * x * tangent


def test_custom_functions_see_the_level_of_their_task():
    def run(x):
        return clew.func.jvp(lambda v: Square.apply(asked(v.sin())), (x,), (x * 3,))[1]

    compare(run, list(clew.randn(3, 4)))


def test_default_devices():
    def run(i):
        found = []
        with clew.device("meta" if i == 1 else "cpu"):
            clew.ones(2, device="cpu").sum().item()
            found.append(clew.ones(1).is_meta)
        clew.ones(2, device="cpu").sum().item()
        return [*found, clew.ones(1).is_meta]

    assert clew.autobatch.map(run, range(3)) == [[i == 1, False] for i in range(3)]
    assert not clew.ones(1).is_meta


def test_default_dtypes():
    def run(i):
        before = clew.get_default_dtype()
        clew.set_default_dtype(clew.float64 if i == 1 else before)
        try:
            clew.ones(2).sum().item()
            found = clew.ones(1).dtype
        finally:
            clew.set_default_dtype(before)
        clew.ones(2).sum().item()
        return [found is clew.float64, clew.ones(1).dtype is clew.float64]

    try:
        assert clew.autobatch.map(run, range(3)) == [[i == 1, False] for i in range(3)]
        assert clew.get_default_dtype() is clew.float32
    finally:
        clew.set_default_dtype(clew.float32)


def test_anomaly_detection():
    def run(i):
        found = [clew.is_anomaly_enabled()]
        with clew.autograd.set_detect_anomaly(i % 2 == 0):
            clew.ones(2).sum().item()
            found.append(clew.is_anomaly_enabled())
        return found

    assert clew.autobatch.map(run, range(4)) == [[False, i % 2 == 0] for i in range(4)]
    assert not clew.is_anomaly_enabled()


def test_what_is_registered_while_tasks_run(monkeypatch):
    """Files are loaded when something of them is used, maybe first in a task."""
    monkeypatch.setattr(tasks, "_locals", list(tasks._locals))
    made = []

    class Switch(threading.local):
        def __init__(self):
            self.on = []

    def run(i):
        if not made:
            made.append(tasks.of_tasks(Switch()))
        switch = made[0]
        found = list(switch.on)
        switch.on.append(i)
        clew.ones(2).sum().item()
        return [*found, *switch.on]

    assert clew.autobatch.map(run, range(3)) == [[0], [1], [2]]
    assert made[0].on == []


def test_a_sample_that_raises_greenlets_own_exception():
    def run(i):
        clew.ones(2).sum().item()
        if i == 1:
            raise greenlet.GreenletExit("enough")
        return i

    with pytest.raises(greenlet.GreenletExit, match="enough") as caught:
        clew.autobatch.map(run, range(3))
    assert any("sample 1" in note for note in caught.value.__notes__)
    for _ in range(2):
        assert clew.autobatch.map(lambda i: (clew.ones(2) * i).sum().item(), range(5)) == [
            *range(0, 10, 2)
        ]


def test_a_map_within_module_calls_after_one_outside():
    """Greenlets are used again, and keep the place on the stack where they began."""

    class Each(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = Twice()

        def forward(self, xs):
            return clew.stack(clew.autobatch.map(self.body, xs))

    xs = clew.randn(8, 3)
    clew.autobatch.map(Twice(), xs)
    for _ in range(3):
        net = nn.Sequential(nn.Sequential(Each()))
        want = clew.stack([net[0][0].body(x) for x in xs])
        assert_close(net(xs).detach(), want.detach())


def test_hooks_of_one_sample_see_its_gradient_alone():
    """Every sample makes the same value by the same call."""
    w = clew.ones(2, requires_grad=True)
    seen = []

    def run(i):
        y = w * 1.5
        y.register_hook(lambda grad: seen.append(grad.tolist()) or grad * 2)
        y.sum().item()
        return (y * (i + 1)).sum()

    clew.stack(clew.autobatch.map(run, range(3))).sum().backward()
    assert sorted(seen) == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
    assert w.grad.tolist() == [18.0, 18.0]


@pytest.mark.parametrize(
    "mode",
    [
        contextlib.nullcontext,
        lambda: graph.saved_tensors_hooks(lambda x: x, lambda x: x),
        graph.save_on_cpu,
        lambda: clew.autograd.detect_anomaly(check_nan=False),
    ],
    ids=["none", "hooks", "save_on_cpu", "anomaly"],
)
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_detach_gives_no_view(mode):
    """In modes in which calls run at once, too."""
    w = clew.ones(3, requires_grad=True)

    def run(x):
        h = x * w
        with mode():
            d = h.detach()
        assert not d.requires_grad
        assert d._base is None
        d.add_(1)
        return h.sum()

    out = clew.autobatch.map(run, [clew.full((3,), float(i)) for i in range(4)])
    clew.stack(out).sum().backward()
    assert w.grad.tolist() == [6.0, 6.0, 6.0]
