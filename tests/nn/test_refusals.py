"""Arguments that modules and losses refuse, and what an empty batch leaves alone."""

from __future__ import annotations

import pytest

import clew
from clew import nn


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
@pytest.mark.parametrize(
    ("args", "kwargs", "error"),
    [
        ((3, 5), {"bias": 0}, TypeError),
        ((3, 5), {"batch_first": 1}, TypeError),
        ((3, 5), {"batch_first": "False"}, TypeError),
        ((0, 5), {}, ValueError),
        ((-1, 5), {}, ValueError),
    ],
)
def test_recurrent_layers(kind, args, kwargs, error):
    with pytest.raises(error):
        kind(*args, **kwargs)


@pytest.mark.parametrize("eps", [0.0, -1.0])
def test_batch_norm_needs_a_positive_eps_in_training(eps):
    m = nn.BatchNorm1d(3, eps=eps)
    with pytest.raises(ValueError, match="eps"):
        m(clew.randn(4, 3))
    assert m.eval()(clew.ones(4, 3)).shape == (4, 3)


def test_batch_norm_of_an_empty_batch_keeps_the_running_statistics():
    m = nn.BatchNorm1d(3)
    m.running_mean.fill_(2.0)
    m.running_var.fill_(5.0)
    assert m(clew.zeros(0, 3, 4)).shape == (0, 3, 4)
    assert m.running_mean.tolist() == [2.0] * 3 and m.running_var.tolist() == [5.0] * 3
    assert m.num_batches_tracked.item() == 1


def test_losses():
    with pytest.raises(TypeError, match="delta"):
        nn.HuberLoss(delta=1 + 0j)
    with pytest.raises(TypeError, match="delta"):
        nn.functional.huber_loss(clew.ones(2), clew.ones(2), delta=1 + 0j)
    with pytest.raises(RuntimeError, match="dtype"):
        nn.NLLLoss(weight=clew.ones(2, dtype=clew.float16))(clew.ones(1, 2), clew.tensor([0]))
    with pytest.raises(RuntimeError, match="weight"):
        nn.LinearCrossEntropyLoss(3, 2, weight=clew.ones(3))
    with pytest.raises(RuntimeError, match="label_smoothing"):
        nn.LinearCrossEntropyLoss(3, 2, label_smoothing=2.0)


def test_linear_cross_entropy_wants_rows():
    f = nn.functional.linear_cross_entropy
    with pytest.raises(RuntimeError, match="dims"):
        f(clew.ones(2, 3, 3), clew.ones(2, 3), clew.ones(3, 2))
    with pytest.raises(RuntimeError, match="batch"):
        f(clew.ones(3), clew.ones(2, 4, 3), clew.ones(2, 4))
    assert f(clew.ones(3), clew.ones(2, 3), clew.tensor(1)).shape == ()


def test_norms_print_their_bias():
    assert repr(nn.LayerNorm(5, elementwise_affine=False)).endswith("bias=False)")
    assert repr(nn.GroupNorm(5, 5, affine=False)).endswith("bias=False)")


def test_adam_wants_betas_of_one_kind():
    w = [clew.ones(2, requires_grad=True)]
    with pytest.raises(ValueError, match="betas"):
        clew.optim.Adam(w, betas=(0.9, clew.tensor(0.99)))
    with pytest.raises(ValueError, match="foreach"):
        clew.optim.Adam(w, betas=(clew.tensor(0.9), clew.tensor(0.99)), foreach=True)
