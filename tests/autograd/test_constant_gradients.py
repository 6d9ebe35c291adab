"""With create_graph=True, gradients that no input decides do not require grad, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import clew
from clew.nn import functional as F

CONSTANT: dict[str, Callable[[Any], Any]] = {
    "sort": lambda x: x.sort()[0],
    "stable": lambda x: x.sort(stable=True)[0],
    "msort": lambda x: x.msort(),
    "topk": lambda x: x.topk(2)[0],
    "kthvalue": lambda x: x.kthvalue(2)[0],
    "median": lambda x: x.median(0)[0],
    "max": lambda x: x.max(0)[0],
    "cummax": lambda x: x.cummax(0)[0],
    "cummin": lambda x: x.cummin(0)[0],
    "quantile": lambda x: x.quantile(0.3),
    "clamp": lambda x: x.clamp(1.5, 4),
    "clamp_min": lambda x: x.clamp_min(1.5),
    "clamp_max": lambda x: x.clamp(max=2.5),
    "clamp_": lambda x: (x + 0).clamp_(1.5, 4),
    "dropout": lambda x: F.dropout(x, 0.5),
    "dropout1d": lambda x: F.dropout1d(x.view(2, 2), 0.5),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.5),
    "hinge": lambda x: F.hinge_embedding_loss(x, clew.ones(4)),
    "margin": lambda x: F.margin_ranking_loss(x, clew.zeros(4), clew.ones(4)),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_a_constant_gradient_does_not_require_grad(name: str):
    x = clew.tensor([3.0, 1.0, 2.0, 5.0], requires_grad=True)
    y = CONSTANT[name](x)
    (plain,) = clew.autograd.grad(y, x, clew.ones_like(y), retain_graph=True)
    (gx,) = clew.autograd.grad(y, x, clew.ones_like(y), retain_graph=True, create_graph=True)
    assert not gx.requires_grad
    assert clew.equal(gx, plain)
    # What flows in may require grad: then the gradient does, by that alone.
    seed = clew.ones_like(y).requires_grad_()
    (gx,) = clew.autograd.grad(y, x, seed, create_graph=True)
    assert clew.equal(gx, plain)
    by_seed, by_input = clew.autograd.grad(gx.sum(), (seed, x), allow_unused=True)
    assert by_input is None
    assert by_seed.sum() == plain.sum()
