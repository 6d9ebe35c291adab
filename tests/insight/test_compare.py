"""clew.debug.compare: the first value that differs between two runs, with its line."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import clew
from clew import nn
from marked_lines import line_of_mark

line_of = partial(line_of_mark, __file__)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)
        self.slope = 0.0

    def forward(self, x):
        h = self.first(x)
        h = nn.functional.leaky_relu(h, self.slope)  # the odd one
        return self.second(h)


def made():
    clew.manual_seed(3)
    return Net()


def test_equal_runs_have_no_difference():
    net, x = made(), clew.randn(5, 4)
    assert clew.debug.compare(lambda: net(x).sum(), lambda: net(x).sum()) is None


def test_the_first_line_that_differs():
    a, b, x = made(), made(), clew.randn(5, 4)
    b.slope = 0.2
    found = clew.debug.compare(lambda: a(x), lambda: b(x))
    assert found is not None and "leaky_relu" in found.operation
    assert f"test_compare.py:{line_of('the odd one')}" in found.place
    assert found.a == 0.0 and found.b < 0
    with clew.no_grad():
        b.slope = 0.0
        b.second.weight[1, 3] += 0.5
    found = clew.debug.compare(lambda: a(x), lambda: b(x))
    assert found.module == "second" and "linear" in found.operation
    expected = (b(x) - a(x)).abs()
    assert f"{(expected > 0).sum()} of 10 elements differ" in found.evidence


def test_rounding_is_no_difference():
    net, x = made(), clew.randn(5, 4)
    near = x * (1 + 1e-7)
    assert clew.debug.compare(lambda: net(x), lambda: net(near)) is None
    assert clew.debug.compare(lambda: net(x), lambda: net(near), rtol=0.0) is not None


def test_another_way_through_the_program():
    def step(longer):
        y = clew.ones(3) * 2
        if longer:
            y = y.exp()  # only there
        return y

    found = clew.debug.compare(lambda: step(False), lambda: step(True))
    assert found.operation == "exp" and f":{line_of('only there')}" in found.place
    assert "another way" in found.evidence


def test_values_that_another_program_dumped(tmp_path):
    net, x = made(), clew.randn(5, 4)
    h = net.first(x).detach().numpy()
    dumped = {"first": h, "second": net(x).detach().numpy()}
    assert clew.debug.compare(lambda: net(x), dumped) is None
    dumped["second"] = dumped["second"] + np.float32([0, 1])
    path = tmp_path / "theirs.npz"
    np.savez(path, **dumped)
    found = clew.debug.compare(lambda: net(x), path)
    assert found.module == "second" and "5 of 10 elements" in found.evidence
    with pytest.raises(ValueError, match="no module in common"):
        clew.debug.compare(lambda: net(x), {"other": h})
    with pytest.raises(TypeError, match="compare: expected"):
        clew.debug.compare(3, dumped)
    with pytest.raises(ValueError):  # pickles are code
        np.savez(path, first=np.array([object()], dtype=object))
        clew.debug.compare(lambda: net(x), path)


def test_shapes_and_nan():
    found = clew.debug.compare({"a": np.ones(3)}, {"a": np.ones(4)})
    assert "(3,)" in found.evidence and "(4,)" in found.evidence
    nan = np.array([1.0, np.nan])
    assert clew.debug.compare({"a": nan}, {"a": nan.copy()}) is None
    assert clew.debug.compare({"a": nan}, {"a": np.ones(2)}) is not None


def test_what_differs_before_the_first_operation_is_told():
    """Other initial weights, other data: the operation is not what makes the difference."""

    def step(seed, data=0):
        clew.manual_seed(data)
        x = clew.randn(5, 4)
        clew.manual_seed(seed)
        return Net()(x)

    found = clew.debug.compare(lambda: step(1), lambda: step(2))
    assert found.module == "first"
    assert "input 1 (first.weight) and input 2 (first.bias) differ already" in found.evidence
    found = clew.debug.compare(lambda: step(1), lambda: step(1, data=7))
    assert found.module == "first" and found.evidence.endswith("; input 0 differs already")

    def noise(seed):
        clew.manual_seed(seed)
        return nn.functional.dropout(clew.ones(50), 0.5)

    found = clew.debug.compare(lambda: noise(1), lambda: noise(2))
    assert "dropout" in found.operation and "already" not in found.evidence


def trained(optimizer, clip=0.0, dtype=clew.float32, steps=2):
    net, x = made().to(dtype), (clew.arange(20.0).reshape(5, 4) / 20).to(dtype)
    opt = optimizer(net.parameters())
    for _ in range(steps):
        opt.zero_grad()
        net(x).square().mean().backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), clip)  # clipped
        opt.step()  # stepped


def sgd(params, **settings):
    return clew.optim.SGD(params, **{"lr": 0.1, **settings})


@pytest.mark.parametrize(
    ("settings", "step", "told"),
    [
        ({"lr": 0.2}, 1, "lr is 0.1 in the first run, 0.2 in the second"),
        ({"weight_decay": 0.5}, 1, "weight_decay is 0 in the first run, 0.5 in the second"),
        ({"momentum": 0.9}, 2, "momentum is 0 in the first run, 0.9 in the second"),
    ],
)
def test_another_setting_of_the_optimizer(settings, step, told):
    found = clew.debug.compare(lambda: trained(sgd), lambda: trained(lambda p: sgd(p, **settings)))
    assert found.operation == "first.weight after SGD.step()" and found.module == "first"
    assert f"test_compare.py:{line_of('stepped')}" in found.place
    assert f"the optimizer's step {step};" in found.evidence and told in found.evidence


def test_another_optimizer():
    def adam(params):
        return clew.optim.Adam(params, lr=0.1)

    found = clew.debug.compare(lambda: trained(sgd), lambda: trained(adam))
    assert f"test_compare.py:{line_of('stepped')}" in found.place
    assert "the optimizer is SGD in the first run, Adam in the second" in found.evidence


def test_gradients_that_one_run_clips():
    found = clew.debug.compare(lambda: trained(sgd), lambda: trained(sgd, clip=1e-3))
    assert found.operation == "the gradient of first.weight"
    assert f"test_compare.py:{line_of('clipped')}" in found.place
    assert "the second run alone writes it between backward() and step()" in found.evidence
    other = clew.debug.compare(lambda: trained(sgd, clip=1e-3), lambda: trained(sgd))
    assert f"test_compare.py:{line_of('clipped')}" in other.place and "first run alone" in str(
        other
    )


def test_a_gradient_that_backward_makes_another_way():
    class Scaled(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

    def train(factor):
        net = made()
        opt = sgd(net.parameters())
        net.second(Scaled.apply(net.first(clew.ones(5, 4)), factor)).square().mean().backward()
        opt.step()  # after it

    found = clew.debug.compare(lambda: train(1.0), lambda: train(2.0))
    assert found.operation == "the gradient of weight" and found.evidence.count("step 1") == 1
    assert f"test_compare.py:{line_of('after it')}" in found.place


def test_several_calls_in_one_line_are_told_apart():
    def step(scale):
        net = made()
        return net.second(net.first(clew.ones(5, 4)) * scale)

    assert clew.debug.compare(lambda: step(1.0), lambda: step(1.0)) is None
    found = clew.debug.compare(lambda: step(1.0), lambda: step(3.0))
    assert found.operation == "mul" and "shape" not in found.evidence


def test_rounding_of_a_coarser_dtype_stays_in_what_follows():
    """Statistics of bfloat16 values are float32 in both runs, and as coarse as what went in."""

    def step(dtype):
        clew.manual_seed(0)
        x = clew.randn(32, 16).to(dtype)
        nn.functional.layer_norm(x * 1.7, (16,))

    assert clew.debug.compare(lambda: step(clew.float32), lambda: step(clew.bfloat16)) is not None
    both = (
        clew.debug.record_run(lambda: step(clew.float32)),
        clew.debug.record_run(lambda: step(clew.bfloat16)),
    )
    assert clew.debug.compare(*both).operation == "_to_dtype"  # the call that one run alone has


@pytest.mark.parametrize("kind", ["tokens", "labels", "mask"])
def test_integers_that_went_in_differ_already(kind):
    def step(turned):
        clew.manual_seed(0)
        data = clew.arange(6)
        data = data.flip(0) if turned else data
        if kind == "tokens":
            nn.Embedding(6, 3)(data)
        elif kind == "labels":
            nn.functional.cross_entropy(clew.randn(6, 6), data)
        else:
            clew.ones(6).where(data > 2, clew.zeros(6))

    found = clew.debug.compare(lambda: step(False), lambda: step(True))
    assert "differs already" in found.evidence


def test_eager_against_compiled():
    import copy

    net, x = made(), clew.randn(5, 4)
    compiled = clew.compile(net)
    assert clew.debug.compare(lambda: net(x), lambda: compiled(x)) is None
    other = copy.deepcopy(net)
    with clew.no_grad():
        other.second.weight[0, 0] += 1
    changed = clew.compile(other)
    found = clew.debug.compare(lambda: net(x), lambda: changed(x))
    assert found.module == "second" and "input 1 (second.weight) differs" in found.evidence


@pytest.mark.at_once
def test_what_is_compiled_is_read_when_the_run_is_over(monkeypatch):
    from clew._insight.debug import compare as module

    def soft(x, dim):
        return (x.exp() / x.exp().sum(dim, keepdim=True)).log()

    before = []
    finish = module.RecordedRun._finish

    def watched(run):
        before.append([isinstance(v.array, module._Waiting) for v in run.values])
        finish(run)

    monkeypatch.setattr(module.RecordedRun, "_finish", watched)
    x = clew.randn(512, 512)
    compiled = clew.compile(soft)
    assert clew.debug.compare(lambda: soft(x, 1), lambda: compiled(x, 1)) is None
    eager, late = before
    # The sums are small and run at once.
    assert not any(eager) and sum(late) == len(late) - 1 > 2
    found = clew.debug.compare(lambda: soft(x, 1), lambda: compiled(x, 0))
    assert found.operation == "sum" and "(512, 1)" in found.evidence


def test_what_is_written_over_is_no_difference():
    def step(x):
        y = x * 2
        y.add_(1)
        return y

    x = clew.randn(512, 512)
    compiled = clew.compile(step)
    assert clew.debug.compare(lambda: step(x), lambda: compiled(x)) is None
    assert clew.debug.compare(lambda: compiled(x), lambda: step(x)) is None
    found = clew.debug.compare(lambda: step(x), lambda: compiled(x + 1))
    assert found is not None


def test_two_versions_of_a_function():
    def one(x):
        return (x.exp() + 1).log()

    def two(x):
        return (x.exp() + 1).log()

    def three(x):
        return (x.exp() + 2).log()  # a version

    x = clew.randn(6)
    assert clew.debug.compare(lambda: one(x), lambda: two(x)) is None
    found = clew.debug.compare(lambda: three(x), lambda: one(x))
    assert found.operation == "add" and f":{line_of('a version')}" in found.place


def test_a_module_that_ran_twice_of_which_one_call_was_dumped():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.out = nn.LayerNorm(4), nn.Linear(4, 2)

        def forward(self, x):
            return self.out(self.norm(self.norm(x) * 3 + 1))  # the norm

    clew.manual_seed(0)
    net, x = Twice(), clew.randn(5, 4)
    first = net.norm(x).detach().numpy()
    second = net.norm(clew.from_numpy(first) * 3 + 1).detach().numpy()
    for dumped in (first, second, [first, second]):
        assert clew.debug.compare(lambda: net(x), {"norm": dumped}) is None
    found = clew.debug.compare(lambda: net(x), {"norm": [first, second + 1]})
    assert "in call 2" in found.operation and f":{line_of('the norm')}" in found.place
    found = clew.debug.compare(lambda: net(x), {"norm": second + 1})
    assert "in call 2" in found.operation


def test_what_only_one_run_has_does_not_shift_the_inputs():
    layer, x = nn.Linear(4, 3), clew.randn(5, 4)
    found = clew.debug.compare(lambda: layer(x), lambda: layer(x + 0.5))
    assert found.operation == "nn.functional.linear" and "already" not in found.evidence
    assert "only the second run has add at " in found.evidence


def test_what_an_operation_writes_did_not_differ_before():
    def step(rate):
        weight = clew.ones(3)
        weight.add_(clew.arange(3.0), alpha=rate)

    found = clew.debug.compare(lambda: step(0.1), lambda: step(0.2))
    assert found.operation == "add" and "already" not in found.evidence


def test_an_operation_that_is_missing_is_told():
    keys = clew.randn(4, 4)

    def attention(scaled):
        scores = keys @ keys.T
        if scaled:
            scores = scores / 2.0  # the step in question
        return scores.softmax(-1)

    found = clew.debug.compare(lambda: attention(True), lambda: attention(False))
    assert found.operation == "softmax"
    assert "before it, only the first run has div at " in found.evidence
    assert f"test_compare.py:{line_of('the step in question')}" in found.evidence


def test_modules_of_ragged_tensors_are_compared_by_their_values():
    first, second = made(), made()
    x = clew.nested.nested_tensor([clew.ones(2, 4), clew.ones(3, 4)])
    assert clew.debug.compare(lambda: first(x), lambda: second(x)) is None
    with clew.no_grad():
        second.second.bias += 1
    found = clew.debug.compare(lambda: first(x), lambda: second(x))
    assert found.module == "second"
