"""Averaged models and the statistics of their batch normalisation."""

import copy

import pytest

import clew
from clew import nn
from clew.optim.swa_utils import (
    SWALR,
    AveragedModel,
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    get_swa_avg_fn,
    get_swa_multi_avg_fn,
    update_bn,
)


def changed(model, value):
    with clew.no_grad():
        for p in model.parameters():
            p.fill_(value)
    return model


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 3.0),
        ({"avg_fn": get_swa_avg_fn()}, 3.0),
        ({"multi_avg_fn": get_swa_multi_avg_fn()}, 3.0),
        ({"avg_fn": get_ema_avg_fn(0.5)}, 3.5),
        ({"multi_avg_fn": get_ema_multi_avg_fn(0.5)}, 3.5),
    ],
)
def test_average_of_three(options, expected):
    model = nn.Linear(2, 2)
    average = AveragedModel(model, **options)
    for value in (1.0, 3.0, 5.0):
        average.update_parameters(changed(model, value))
    for p in average.module.parameters():
        assert clew.allclose(p, clew.full_like(p, expected))
    assert average.n_averaged.item() == 3
    x = clew.ones(1, 2)
    assert clew.allclose(average(x), clew.full((1, 2), 3 * expected))
    assert "module.weight" in average.state_dict() and "n_averaged" in average.state_dict()


def test_averaging_rate_at_once():
    opt = clew.optim.SGD([clew.zeros(1)], lr=1.0)
    schedule = SWALR(opt, 0.25, anneal_epochs=0)
    assert schedule.get_last_lr() == [0.25]
    opt.step()
    schedule.step()
    assert schedule.get_last_lr() == [0.25]


def test_exponential_average_of_integers():
    average, value = clew.tensor([4, 8]), clew.tensor([8, 0])
    get_ema_multi_avg_fn(0.75)([average], [value], 1)
    assert average.tolist() == [5, 6]


def test_buffers():
    model = nn.BatchNorm1d(2)
    plain, with_buffers = AveragedModel(model), AveragedModel(model, use_buffers=True)
    for value in (1.0, 3.0):
        model.running_mean.fill_(value)
        plain.update_parameters(model)
        with_buffers.update_parameters(model)
    assert plain.module.running_mean.tolist() == [3, 3]
    assert with_buffers.module.running_mean.tolist() == [2, 2]


def test_errors():
    model = nn.Linear(1, 1)
    with pytest.raises(AssertionError, match="not both"):
        AveragedModel(model, avg_fn=get_swa_avg_fn(), multi_avg_fn=get_swa_multi_avg_fn())
    for make in (get_ema_avg_fn, get_ema_multi_avg_fn):
        with pytest.raises(ValueError, match="decay"):
            make(1.5)


def test_model_is_copied():
    model = nn.Linear(1, 1)
    average = AveragedModel(model)
    changed(model, 9.0)
    assert average.module.weight.item() != 9
    copy.deepcopy(average)


def test_update_bn():
    model = nn.Sequential(nn.BatchNorm1d(1))
    model.eval()
    batches = [(clew.tensor([[1.0], [3.0]]), 0), [clew.tensor([[5.0], [7.0]]), 1]]
    update_bn(batches, model)
    assert model[0].running_mean.item() == pytest.approx(4.0)
    assert model[0].running_var.item() == pytest.approx(2.0)
    assert model[0].momentum == 0.1 and not model.training
    update_bn(batches, nn.Linear(1, 1))  # nothing to do


def test_update_bn_restores_each_momentum():
    model = nn.Sequential(nn.BatchNorm1d(1, momentum=0.3), nn.BatchNorm1d(1, momentum=None))
    update_bn([clew.tensor([[1.0], [3.0]])], model)
    assert [layer.momentum for layer in model] == [0.3, None]
    model[0](clew.tensor([[7.0], [9.0]]))
    assert model[0].running_mean.item() == pytest.approx(0.7 * 2 + 0.3 * 8)
