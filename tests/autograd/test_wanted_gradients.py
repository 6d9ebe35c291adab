"""autograd.grad computes what was asked for, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import clew
from clew.utils.flop_counter import FlopCounterMode


def flops(run: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


@pytest.mark.parametrize("recorded", [False, True])
def test_a_product_for_one_factor_alone(recorded: bool) -> None:
    x = clew.randn(8, 16, requires_grad=True)
    w = clew.randn(16, 32, requires_grad=True)
    g = clew.ones(8, 32)
    one = 2 * 8 * 16 * 32

    def ask(*inputs: clew.Tensor) -> int:
        return flops(lambda: clew.autograd.grad(x @ w, inputs, g, create_graph=recorded))

    assert ask(x) == ask(w) == 2 * one
    assert ask(x, w) == 3 * one


def test_a_network_for_its_input() -> None:
    """The weights' gradients, which are half of the products, are not computed."""
    layers = [clew.nn.Linear(32, 32) for _ in range(4)]
    model = clew.nn.Sequential(*layers)
    x = clew.randn(64, 32, requires_grad=True)
    got = []
    forward = flops(lambda: model(x))
    alone = flops(lambda: got.append(clew.autograd.grad(model(x).sum(), x)[0]))
    both = flops(lambda: model(x).sum().backward())
    assert forward == 4 * 2 * 64 * 32 * 32
    assert alone == 2 * forward and both == 3 * forward
    np.testing.assert_allclose(got[0].numpy(), x.grad.numpy(), rtol=1e-5)
    only_last = clew.autograd.grad(model(x).sum(), layers[3].weight)[0]
    np.testing.assert_allclose(only_last.numpy(), layers[3].weight.grad.numpy(), rtol=1e-5)


def test_many_inputs_of_one_operation() -> None:
    parts = [clew.randn(2, requires_grad=True) for _ in range(70)]
    y = clew.cat(parts) ** 2
    for k in (0, 1, 63, 64, 69):
        got = clew.autograd.grad(y, parts[k], clew.ones_like(y), retain_graph=True)[0]
        np.testing.assert_allclose(got.numpy(), 2 * parts[k].detach().numpy())


def test_what_is_gathered_in_place_and_what_beside_it() -> None:
    """The factor whose rows are gathered for one product, used twice, and the other one."""
    w = clew.randn(4, 4, requires_grad=True)
    x = clew.randn(1, 4, requires_grad=True)
    y = clew.nn.functional.linear(clew.nn.functional.linear(x, w), w).sum()
    (gx,) = clew.autograd.grad(y, x, retain_graph=True)
    (gw,) = clew.autograd.grad(y, w, retain_graph=True)
    y.backward()
    np.testing.assert_allclose(gx.numpy(), x.grad.numpy(), rtol=1e-5)
    np.testing.assert_allclose(gw.numpy(), w.grad.numpy(), rtol=1e-5)
    table = clew.randn(5, 3, requires_grad=True)
    scale = clew.randn(3, requires_grad=True)
    z = (clew.nn.functional.embedding(clew.tensor([1, 1, 4]), table) * scale).sum()
    (gs,) = clew.autograd.grad(z, scale, retain_graph=True)
    (gt,) = clew.autograd.grad(z, table)
    np.testing.assert_allclose(gs.numpy(), table.detach()[[1, 1, 4]].sum(0).numpy(), rtol=1e-5)
    np.testing.assert_allclose(gt[1].numpy(), 2 * scale.detach().numpy(), rtol=1e-5)
