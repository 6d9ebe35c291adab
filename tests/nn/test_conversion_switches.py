"""clew.__future__: new parameters, or swapped ones, when modules are converted or loaded."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import clew
from clew import nn
from clew.__future__ import (
    get_overwrite_module_params_on_conversion,
    get_swap_module_params_on_conversion,
    set_overwrite_module_params_on_conversion,
    set_swap_module_params_on_conversion,
)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    set_overwrite_module_params_on_conversion(False)
    set_swap_module_params_on_conversion(False)


def trained() -> Any:
    layer = nn.Linear(2, 3)
    layer(clew.ones(1, 2)).sum().backward()
    return layer


def test_the_switches_are_off_at_first():
    assert get_overwrite_module_params_on_conversion() is False
    assert get_swap_module_params_on_conversion() is False
    layer = trained()
    weight = layer.weight
    assert layer.double().weight is weight
    assert weight.dtype is clew.float64


def test_new_parameters():
    set_overwrite_module_params_on_conversion(True)
    assert get_overwrite_module_params_on_conversion() is True
    layer = trained()
    weight, grad = layer.weight, layer.weight.grad
    weight.requires_grad_(False)
    layer.double()
    assert layer.weight is not weight
    assert isinstance(layer.weight, nn.Parameter)
    assert not layer.weight.requires_grad
    assert layer.bias.requires_grad
    assert (weight.dtype, layer.weight.dtype) == (clew.float32, clew.float64)
    assert weight.grad is grad
    assert grad.dtype is clew.float32
    assert clew.equal(layer.weight.grad, grad.double())
    assert layer(clew.ones(1, 2).double()).dtype is clew.float64


@pytest.mark.parametrize("both", [False, True])
def test_swapped_parameters(both: bool):
    set_overwrite_module_params_on_conversion(both)  # the other switch goes before it
    set_swap_module_params_on_conversion(True)
    assert get_swap_module_params_on_conversion() is True
    layer = trained()
    weight, grad, values = layer.weight, layer.weight.grad, layer.weight.tolist()
    layer.double()
    assert layer.weight is weight
    assert weight.grad is grad
    assert weight.dtype is grad.dtype is clew.float64
    assert weight.tolist() == values
    assert grad.tolist() == [[1, 1]] * 3
    layer(clew.ones(1, 2).double()).sum().backward()
    assert grad.tolist() == [[2, 2]] * 3


def test_swapped_on_another_device_and_without_a_shape():
    set_swap_module_params_on_conversion(True)
    layer = nn.Linear(2, 3)
    weight = layer.weight
    assert layer.to("meta").weight is weight
    assert weight.is_meta
    assert not layer.to_empty(device="cpu").weight.is_meta
    assert layer.weight is weight
    lazy = nn.LazyLinear(3).double()
    assert lazy(clew.ones(1, 2).double()).shape == (1, 3)


def test_what_cannot_be_swapped_is_named_and_stays():
    set_swap_module_params_on_conversion(True)
    layer = trained()
    grad = layer.weight.grad
    kept = weakref.ref(layer.weight)
    with pytest.raises(RuntimeError, match=r"_apply\(\): Couldn't swap Linear.weight"):
        layer.double()
    assert kept() is layer.weight
    assert layer.weight.grad is grad


def test_a_state_dict_is_swapped_in():
    set_swap_module_params_on_conversion(True)
    layer, other = nn.BatchNorm1d(2), nn.BatchNorm1d(2).double()
    nn.init.normal_(other.weight)
    weight, mean = layer.weight, layer.running_mean
    weight.requires_grad_(False)
    layer.load_state_dict(other.state_dict())
    assert layer.weight is weight
    assert layer.running_mean is mean
    assert weight.dtype is clew.float32
    assert clew.equal(weight, other.weight.float())
    assert not weight.requires_grad
    # With assign the tensors of the state dict take the places, and their dtype.
    layer.load_state_dict(other.state_dict(), assign=True)
    assert layer.weight is weight
    assert isinstance(weight, nn.Parameter)
    assert (weight.dtype, weight.requires_grad) == (clew.float64, False)


def test_module_load_of_a_class_is_asked():
    class Scaled(clew.Tensor):
        def module_load(self, other: Any, assign: bool = False) -> Any:
            return other if other.numel() == 1 else (other * 10).detach()

    class Keeper(nn.Module):
        def __init__(self, n: int) -> None:
            super().__init__()
            self.register_buffer("kept", clew.zeros(n).as_subclass(Scaled))

    set_swap_module_params_on_conversion(True)
    keeper = Keeper(2)
    keeper.load_state_dict({"kept": clew.ones(2)})
    assert keeper.kept.tolist() == [10, 10]
    with pytest.raises(RuntimeError, match="module_load returned one of self or other"):
        Keeper(1).load_state_dict({"kept": clew.ones(1)})
