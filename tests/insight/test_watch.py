"""nan_watch and anomaly detection report a NaN or infinity where it was born, and nowhere else."""

from __future__ import annotations

import math
import threading

import pytest

import clew
from clew import nn
from clew.debug import NonFiniteError, nan_watch

inf, nan = math.inf, math.nan


def here() -> int:
    """The line that calls it."""
    import sys

    return sys._getframe(1).f_lineno


def born(f, **options):
    with nan_watch(action="record", **options) as watch:
        f()
    return [(found.operation, found.kind) for found in watch.found]


def test_the_first_operation_is_named_with_its_line():
    x = clew.tensor([1.0, -1.0, 4.0])
    with pytest.raises(NonFiniteError) as caught, nan_watch():
        clean = x.exp()
        line = here() + 1
        clean.mul(-1).log()
    found = caught.value.found
    assert (found.operation, found.kind, found.backward) == ("log", "NaN", False)
    assert f"{__file__.rsplit('/', 1)[1]}:{line} " in found.place
    assert "clean.mul(-1).log()" in found.place
    assert found.outputs[0] == "float32[3] = [nan, nan, nan]"
    assert found.inputs[0].startswith("float32[3] = [-2.718, -0.3679, -54.6]")


def test_what_is_handed_on_is_not_reported():
    x = clew.tensor([nan, 1.0])
    assert born(lambda: (x * 2 + 1).exp().sum()) == []
    y = clew.tensor([inf, 1.0])
    assert born(lambda: (y * 2).exp()) == []
    assert born(lambda: y - y) == [("sub", "NaN")]  # a NaN that only infinities went into


def test_kinds_are_told_apart():
    zero = clew.zeros(2)
    assert born(lambda: 1 / zero) == [("div", "infinity")]
    assert born(lambda: zero / zero) == [("div", "NaN")]
    assert born(lambda: 1 / zero, inf=False) == []
    assert born(lambda: zero / zero, nan=False) == []


def test_wished_for_constants_are_not_reported():
    scores = clew.randn(2, 3)
    mask = clew.tensor([[True, False, False], [True, True, True]])
    assert born(lambda: scores.masked_fill(mask, -inf)) == []
    assert born(lambda: clew.where(mask, scores, -inf)) == []
    assert born(lambda: clew.where(mask, scores, clew.tensor(nan))) == []
    assert born(lambda: clew.full((2,), inf)) == []
    assert born(lambda: clew.full_like(scores, nan)) == []
    assert born(lambda: nn.functional.pad(scores, (1, 1), value=-inf)) == []
    # A row without any score left.
    assert born(lambda: scores.masked_fill(mask, -inf).softmax(-1)) == [("softmax", "NaN")]


def test_gradients_are_searched_rule_by_rule():
    x = clew.zeros(3, requires_grad=True)
    with pytest.raises(NonFiniteError) as caught, nan_watch():
        y = x.sqrt()
        line = here() - 1
        y.sum().backward()
    found = caught.value.found
    assert (found.operation, found.kind, found.backward) == ("SqrtBackward0", "infinity", True)
    assert f":{line} " in found.place
    assert found.outputs[0] == "float32[3] = [inf, inf, inf]"


def test_the_trap_of_where():
    x = clew.tensor([0.0, 4.0], requires_grad=True)

    def step():
        clew.where(x > 0, x.sqrt(), 0.0).sum().backward()

    assert born(step) == [("SqrtBackward0", "NaN")]  # 0 * inf


def test_infinities_inside_of_a_rule_do_not_count():
    x = clew.tensor([-1.0, 0.0, 1.0], requires_grad=True)
    assert born(lambda: clew.sinc(x).sum().backward()) == []
    assert born(lambda: x.norm().backward()) == []


def test_in_place_and_out():
    x = clew.zeros(2)
    assert born(lambda: x.div_(0.0)) == [("div_", "NaN")]
    assert born(lambda: x.add_(1)) == []  # was NaN before
    y = clew.zeros(2)
    assert born(lambda: clew.log(y, out=clew.empty(2))) == [("log", "infinity")]
    z = clew.ones(2)
    assert born(lambda: z.log_()) == []


@pytest.mark.parametrize(
    "dtype",
    [clew.float16, clew.bfloat16, clew.float32, clew.float64, clew.complex64, clew.complex128],
)
def test_dtypes_layouts_and_places(dtype):
    for n, at in [(1, 0), (7, 6), (300, 299), (300, 0), (70000, 69999), (70000, 35001)]:
        x = clew.ones(n, dtype=dtype)
        assert born(lambda x=x: x + 0) == []
        x[at] = 0
        assert born(lambda x=x: x / x) == [("div", "NaN")], (n, at)
    wide = clew.ones(6, 8, dtype=dtype)
    wide[3, 5] = 0
    assert born(lambda: wide.T / wide.T) == [("div", "NaN")]
    assert born(lambda: wide[::2, ::2] / wide[::2, ::2]) == []
    assert born(lambda: wide[1::2, 1::2] / wide[1::2, 1::2]) == [("div", "NaN")]


def test_largest_finite_numbers_are_finite():
    for dtype in (clew.float16, clew.bfloat16, clew.float32, clew.float64):
        most = clew.tensor([clew.finfo(dtype).max, clew.finfo(dtype).min], dtype=dtype)
        assert born(lambda most=most: most * 1) == []
        assert [k for _, k in born(lambda most=most: most * 2)] == ["infinity"]


def test_it_ends_with_its_block_and_nests():
    zero = clew.zeros(1)
    with nan_watch(action="record") as outer:
        with nan_watch(action="record") as inner:
            zero / zero
        zero / zero
        with pytest.raises(KeyError), nan_watch():
            raise KeyError
        zero / zero
    zero / zero
    assert (len(inner.found), len(outer.found)) == (1, 2)


def test_it_belongs_to_its_thread():
    zero = clew.zeros(1)
    with nan_watch(action="record") as watch:
        thread = threading.Thread(target=lambda: zero / zero)
        thread.start()
        thread.join()
    assert watch.found == []


def test_as_a_decorator_and_warning():
    @nan_watch(action="warn")
    def ratio(a, b):
        """Doc."""
        return a / b

    assert ratio.__doc__ == "Doc."
    with pytest.warns(RuntimeWarning, match="div: NaN was born"):
        ratio(clew.zeros(1), clew.zeros(1))


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="action"):
        nan_watch(action="explode")
    with pytest.raises(ValueError, match="nothing to look for"):
        nan_watch(nan=False, inf=False)


def test_with_autocast_vmap_modules_and_functions():
    with clew.autocast("cpu", dtype=clew.bfloat16):
        w = clew.full((2, 2), 3e38)
        assert born(lambda: w @ w)[0][1] == "infinity"
    rows = clew.tensor([[1.0, -1.0], [2.0, 3.0]])
    assert born(lambda: clew.vmap(lambda r: r.log().sum())(rows))[0] == ("log", "NaN")

    class Bad(nn.Module):
        def forward(self, x):
            return (x - x) / (x - x)

    with nan_watch(action="record") as watch:
        nn.Sequential(nn.Identity(), Bad())(clew.ones(2))
    assert "(module 1: Bad)" in watch.found[0].place

    class Own(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return (g - g) / (g - g)

    x = clew.ones(2, requires_grad=True)
    assert born(lambda: Own.apply(x).sum().backward())[0] == ("div", "NaN")


def test_a_training_step_gives_the_same_result_watched():
    def gradients(watched):
        clew.manual_seed(0)
        net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
        loss = nn.functional.cross_entropy(net(clew.randn(5, 8)), clew.arange(5) % 4)
        if watched:
            with nan_watch():
                loss.backward()
        else:
            loss.backward()
        return [p.grad for p in net.parameters()]

    for a, b in zip(gradients(False), gradients(True)):
        clew.testing.assert_close(a, b, rtol=1e-6, atol=1e-7)


# ---- PyTorch's anomaly detection ------------------------------------------------------------


def deep(x):
    return x.sqrt() * 0  # the forward line


def test_anomaly_names_function_output_and_forward_call():
    x = clew.zeros(2, requires_grad=True)
    with clew.autograd.detect_anomaly():
        y = deep(x).sum()
        with pytest.raises(RuntimeError) as caught:
            y.backward()
    text = str(caught.value)
    assert "Function 'SqrtBackward0' returned nan values in its 0th output." in text
    calls = text[text.index("Traceback of the forward call") :]
    assert "y = deep(x).sum()" in calls
    assert calls.index("y = deep(x).sum()") < calls.index("return x.sqrt() * 0  # the forward line")


def test_anomaly_reports_nan_only():
    x = clew.zeros(2, requires_grad=True)
    with clew.autograd.detect_anomaly():
        x.sqrt().sum().backward()
    assert x.grad.tolist() == [inf, inf]


def test_anomaly_without_the_search_still_tells_the_forward_call():
    class Fails(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g, g

    x = clew.zeros(2, requires_grad=True)
    with clew.autograd.detect_anomaly(check_nan=False):
        deep(x).sum().backward()  # NaN goes unnoticed
        y = Fails.apply(x)
        with pytest.raises(RuntimeError) as caught:
            y.sum().backward()
    assert "Traceback of the forward call" in str(caught.value)
    assert "y = Fails.apply(x)" in str(caught.value)


def test_anomaly_state():
    assert not clew.is_anomaly_enabled()
    with clew.autograd.set_detect_anomaly(True, check_nan=False):
        assert clew.is_anomaly_enabled()
        assert not clew.is_anomaly_check_nan_enabled()
        with clew.autograd.detect_anomaly():
            assert clew.is_anomaly_check_nan_enabled()
        assert not clew.is_anomaly_check_nan_enabled()
    assert not clew.is_anomaly_enabled()
    clew.autograd.set_detect_anomaly(True)
    assert clew.is_anomaly_enabled()
    clew.autograd.set_detect_anomaly(False)
    assert not clew.is_anomaly_enabled()
    assert clew.is_anomaly_check_nan_enabled()


def test_whole_stacks_tell_equal_lines_apart():
    def leaf(x):
        return x * 2

    def left(x):
        return leaf(x)

    def right(x):
        return leaf(x)

    x = clew.ones(1, requires_grad=True)
    with clew.autograd.detect_anomaly():
        nodes = [f(x).grad_fn for f in (left, right, left)]
    callers = [
        next(clew._base.provenance.location(p).function.split(".")[-1] for p in n._callers)
        for n in nodes
    ]
    assert callers == ["left", "right", "left"]


def test_gradient_that_overflows_where_it_may_be_written_over():
    x = clew.full((4,), 1e-30, requires_grad=True)
    big = clew.full((4,), 1e30)
    with pytest.raises(NonFiniteError, match="MulBackward0"), nan_watch():
        ((x * big) * big).sum().backward()


def test_a_sum_of_finite_gradients_that_overflows():
    x = clew.zeros(4, requires_grad=True)

    def two_ways():
        y = x * 1
        (y * 3e38).sum().add((y * 2e38).sum()).backward()

    assert born(two_ways) == [("add", "infinity")]

    def opposite():
        y = x + 1
        x.grad = None
        ((y * inf).sum() + (y * -inf).sum()).backward()

    assert born(opposite)[0] == ("add", "NaN")  # of the forward pass
    assert clew.isnan(x.grad).all()


def test_gradients_that_were_not_finite_before_are_not_reported_again():
    x = clew.ones(4, requires_grad=True)
    y = x * 2
    assert born(lambda: (y * 3).backward(clew.full((4,), nan))) == []
    for shape in [(4,), (1, 4)]:  # of the same shape, and summed to it
        y = x * 2
        assert born(lambda y=y, s=shape: (y + 3).expand(s).backward(clew.full(s, inf))) == []


def test_anomaly_detection_is_switched_by_a_function():
    x = clew.tensor([-1.0], requires_grad=True)
    try:
        clew.set_anomaly_enabled(True)
        assert clew.is_anomaly_enabled() and clew.is_anomaly_check_nan_enabled()
        with pytest.raises(RuntimeError, match="nan"):
            x.sqrt().sum().backward()
        clew.set_anomaly_enabled(True, check_nan=False)
        assert clew.is_anomaly_enabled() and not clew.is_anomaly_check_nan_enabled()
        x.sqrt().sum().backward()
    finally:
        clew.set_anomaly_enabled(False)
    assert not clew.is_anomaly_enabled() and clew.is_anomaly_check_nan_enabled()


def test_gradients_as_large_as_may_be_kept():
    for dtype in (clew.float32, clew.float64, clew.complex64, clew.complex128):
        for n in (32, 33, 48, 64, 65):
            x = clew.ones(n, dtype=dtype, requires_grad=True)
            with clew.debug.nan_watch():
                ((x * 2).exp() * x).backward(clew.ones(n, dtype=dtype) * 3)
            assert x.grad is not None and x.grad.isfinite().all()


@pytest.mark.parametrize("trained", [True, False])
def test_paths_that_ctc_loss_rules_out_are_no_finding(trained):
    """Their logarithms are -inf, in what it keeps for backward."""
    logits = clew.zeros(6, 2, 4, requires_grad=trained)
    targets, lengths = clew.tensor([[1, 2], [3, 3]]), clew.tensor([2, 2])
    with clew.debug.nan_watch():
        loss = nn.functional.ctc_loss(logits.log_softmax(-1), targets, clew.tensor([6, 6]), lengths)
        if trained:
            loss.backward()
    assert loss.isfinite()
    with pytest.raises(clew.debug.NonFiniteError, match="ctc_loss: infinity was born"):
        with clew.debug.nan_watch():  # no path of two steps spells "3 3"
            nn.functional.ctc_loss(
                logits[:2].log_softmax(-1), targets, clew.tensor([2, 2]), lengths, reduction="none"
            )
