"""Functions of samples, run plainly and under autobatch, and the results compared."""

from __future__ import annotations

import clew
from clew._program import autobatch


def assert_close(got, want, rtol=1e-5):
    assert got.dtype == want.dtype and got.shape == want.shape and got.stride() == want.stride()
    scale = max(want.abs().max().item(), 1e-3) if want.numel() else 1.0
    assert ((got - want).abs() <= rtol * scale).all(), (got, want)


def both(function, samples, parameters=()):
    """The results of all samples and the gradients of their sum, plain and batched."""

    def gradients(results):
        loss = sum(r.sum() for r in results)
        for p in parameters:
            p.grad = None
        loss.backward()
        return [p.grad.clone() for p in parameters]

    clew.manual_seed(1)
    plain = [function(s) for s in samples]
    plain_gradients = gradients(plain) if parameters else []
    clew.manual_seed(1)
    autobatch._history.clear()  # of the other programs
    with clew.autobatch():
        batched = [function(s) for s in samples]
    report = clew.autobatch.report()
    for got, want in zip(batched, plain):
        assert got.requires_grad == want.requires_grad
        assert_close(got.detach(), want.detach())
    if parameters:
        for got, want in zip(gradients(batched), plain_gradients):
            assert_close(got, want, 2e-5)
    return report


def sizes_of(report, operation):
    return sorted(g.members for g in report.groups if g.operation.endswith(operation))
