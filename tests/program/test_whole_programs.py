"""Whole programs give in regions what they give without: results, gradients, sharing, errors."""

from __future__ import annotations

from contextlib import nullcontext
from copy import deepcopy

import pytest

import clew
from clew.nn import functional as F


def hooks():
    return clew.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t)


SURROUNDINGS = {
    "plain": nullcontext,
    "hooks": hooks,
    "offload": lambda: clew.offload(least=0),
    "budget": lambda: clew.memory_budget("1 GB"),
    "deferred": lambda: clew.deferred(0),
    "autobatch": clew.autobatch,
}


@pytest.fixture(params=SURROUNDINGS)
def surrounding(request):
    return SURROUNDINGS[request.param]


def test_gradients_of_sampled_images(surrounding):
    clew.manual_seed(0)
    image = clew.rand(1, 1, 4, 4).requires_grad_()
    # The corner of the image's middle four elements, in which each of them weighs a quarter.
    places = clew.zeros(1, 1, 1, 2, requires_grad=True)
    with surrounding():
        y = F.grid_sample(image * 2, places * 1, align_corners=False)
        y.sum().backward()
    want = clew.zeros(1, 1, 4, 4)
    want[:, :, 1:3, 1:3] = 0.5
    assert clew.allclose(image.grad, want)
    middle = 2 * image.detach()[0, 0, 1:3, 1:3]
    right, down = middle[:, 1] - middle[:, 0], middle[1] - middle[0]
    assert clew.allclose(places.grad.flatten(), clew.stack([right.sum(), down.sum()]))


@pytest.mark.parametrize("region", [clew.autobatch, lambda: clew.deferred(0)])
def test_deep_copies_of_views_that_wait_share_memory(region):
    with region():
        y = clew.ones(3, 2) * 2
        column, row = y.t()[0], y[0]
        copied = deepcopy([column, y, row])
        copied[1].mul_(3)
    assert copied[0].tolist() == [6, 6, 6] and copied[2].tolist() == [6, 6]
    assert column.tolist() == [2, 2, 2] and row.tolist() == [2, 2]


def test_reentrant_checkpoints(surrounding):
    x = clew.tensor([0.5, 1.0], requires_grad=True)
    given = clew.tensor([2.0, 3.0])
    with surrounding():
        y = clew.utils.checkpoint.checkpoint(
            lambda a, b: a.exp() * b, x * 2, given, use_reentrant=True
        )
        y.sum().backward()
    assert clew.allclose(x.grad, 2 * (2 * x.detach()).exp() * given)
    assert given.grad is None
