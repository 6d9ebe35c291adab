"""Passes over rows and sums inside of them give the bits that the operations give alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import clew
from clew import _C

F = clew.nn.functional


def layer_norm(x: clew.Tensor, w: clew.Tensor) -> clew.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    variance = (centred * centred).mean(-1, keepdim=True)
    return centred / (variance + 1e-5).sqrt() * w


def softmax(x: clew.Tensor, w: clew.Tensor) -> clew.Tensor:
    shifted = x - x.detach().amax(-1, keepdim=True)
    return shifted - shifted.exp().sum(-1, keepdim=True).log() + w


def without_keepdim(x: clew.Tensor, w: clew.Tensor) -> clew.Tensor:
    scale = (x * w).sum(-1).sigmoid() + 1
    return x * scale.unsqueeze(-1) - x.amin(-1).unsqueeze(-1)


def columns(x: clew.Tensor, w: clew.Tensor) -> clew.Tensor:
    y = (x * w).tanh()
    return y - y.sum(0) * 1e-3 + x.mean(0, keepdim=True)


def totals(x: clew.Tensor, w: clew.Tensor) -> clew.Tensor:
    y = (x * 0.5).exp() * w
    return y * 2 + y.sum() * 1e-6 + y.mean()


def totals_and_columns(x: clew.Tensor, w: clew.Tensor) -> clew.Tensor:
    y = (x * w).tanh()
    whole, columns, mean = y.sum(), y.sum(0), (y * y).mean()
    return y * 2 + columns * 1e-3 + whole * 1e-6 - mean


def blocks(x: clew.Tensor, w: clew.Tensor) -> clew.Tensor:
    a, b = x[..., ::2].contiguous(), x[..., 1::2].contiguous()
    return clew.cat([a * w[::2] - b, a + b * w[1::2]], -1) if x.shape[-1] % 2 == 0 else x * w


PROGRAMS = [layer_norm, softmax, without_keepdim, columns, totals, totals_and_columns, blocks]
SHAPES = [
    (300, 64),
    (1000, 100),
    (37, 1024),
    (4, 5, 63, 70),
    (2, 40_000),
    (513, 2048),
    (3, 7, 4097),
]


def outcome(f: Callable[..., clew.Tensor], x: clew.Tensor, w: clew.Tensor) -> list[clew.Tensor]:
    """Result, loss, gradients and second derivatives."""
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    y = f(x, w)
    loss = (y * y.detach().cos()).mean() + y.sum() * 1e-3
    gx, gw = clew.autograd.grad(loss, [x, w], create_graph=True)
    again = clew.autograd.grad((gx * gx).sum() + (gw * gw).sum(), [x, w], allow_unused=True)
    return [y, loss, gx, gw, *[g for g in again if g is not None]]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("f", PROGRAMS)
def test_equal_bits(f, shape, dtype, threads):
    before = clew.get_num_threads()
    try:
        clew.set_num_threads(threads)
        x, w = clew.randn(shape).to(dtype), clew.randn(shape[-1]).to(dtype)
        eager = outcome(f, x, w)
        with clew.deferred(least=100):
            waited = outcome(f, x, w)
        for k, (a, b) in enumerate(zip(eager, waited, strict=True)):
            assert a.dtype is b.dtype and a.stride() == b.stride()
            assert bool(((a == b) | ((a != a) & (b != b))).all()), k
    finally:
        clew.set_num_threads(before)


def fused(f: Callable[[], object]) -> list[list[str]]:
    """The operations of each pass."""
    report = clew.compile(f).explain()
    return [[c.operation for c in p.calls] for p in report.passes]


def test_what_runs_in_one_pass():
    x, w = clew.randn(1000, 256), clew.randn(256)
    assert len(fused(lambda: layer_norm(x, w))) == 1
    assert len(fused(lambda: softmax(x, w))) == 1
    assert len(fused(lambda: ((x * 2 + 1).sin() * w).sum(0))) == 1
    assert len(fused(lambda: ((x * 2 + 1).sin() * w).mean())) == 1
    x.requires_grad_()
    chain = fused(lambda: (x * 2 + 1).sin().sum().backward())
    assert len(chain) == 1 and chain[0][:4] == ["mul", "add", "sin", "sum"]


def test_intermediates_take_no_memory():
    x = clew.randn(1000, 1000)
    before = clew.memory_stats()["live_bytes"]
    clew.reset_peak_memory_stats()
    with clew.deferred():
        y = (((x * 2 + 1).sin() * 3).exp() - 1).tanh()
    assert clew.memory_stats()["peak_bytes"] - before <= y.numel() * 4 + 4096


def test_repeated_steps_take_no_fresh_memory():
    x = clew.randn(500, 1000, requires_grad=True)

    @clew.compile
    def step():
        x.grad = None
        layer_norm(x, x[0].detach()).square().mean().backward()

    for _ in range(3):
        step()
    fresh = clew.memory_stats()["fresh_bytes"]
    for _ in range(5):
        step()
    assert clew.memory_stats()["fresh_bytes"] == fresh


def test_the_report_tells_lines_passes_and_what_ended_the_waiting():
    x = clew.randn(100_000)

    @clew.compile
    def f():
        y = x * 2 + 1
        if y.sum() > 1e9:
            return y
        z = y.cumsum(0)
        return (z + 1).exp()

    report = f.explain()
    text = str(report)
    assert report.result.equal(f()) and report.complete
    assert [e.why for e in report.ends] == ["observed", "end of the region"]
    assert "if y.sum() > 1e9" in report.ends[0].place
    assert "y = x * 2 + 1" in report.passes[0].calls[0].place
    assert report.passes[0].fused and report.calls == sum(len(p.calls) for p in report.passes)
    assert "fused" in text and "observed at" in text
    assert "<table>" in report._repr_html_() and "&gt; 1e9" in report._repr_html_()


def test_the_report_says_why_a_pass_ended():
    x = clew.randn(300, 300)
    report = clew.compile(lambda: ((x + 1) * 2).transpose(0, 1).contiguous() * 3).explain()
    assert report.passes[0].why_ended
    assert clew.compile(lambda: clew.ones(3) + 1).explain().passes == ()


def test_gradients_of_means_and_sums_over_rows_stay_in_the_pass():
    x, w = clew.randn(300, 512, requires_grad=True), clew.randn(512, requires_grad=True)

    def step():
        x.grad = w.grad = None
        layer_norm(x, w).mul(x.detach()).sum().backward()
        return x.grad

    at_once = [step(), w.grad]
    report = clew.compile(step).explain()
    assert len(report.passes) <= 2 and all(p.fused for p in report.passes)
    for before, after in zip(at_once, [x.grad, w.grad], strict=True):
        assert before.equal(after)


def test_the_last_region_is_reported():
    with clew.deferred():
        y = clew.randn(100_000) * 2
        y = y + 1
        y = y * y
    report = clew.compiler.last_report()
    assert [c.operation for c in report.passes[0].calls] == ["mul", "add", "mul"]
    assert report.bytes_saved == 800_000
    assert _C._program_report()[2] is False


def test_a_single_number_takes_the_same_way_whether_it_waits_or_not():
    x = clew.tensor(0.5)
    at_once = [clew.pow(x * 1, x * 1), clew.pow(x, x)]
    before = _C._defer(0)
    try:
        later = [clew.pow(x * 1, x * 1), clew.pow(x, x)]
    finally:
        _C._defer(before)
    assert [t.item() for t in at_once] == [t.item() for t in later]
