"""A sparse or ragged tensor that asks for a gradient leaves what it was made of alone."""

from __future__ import annotations

import pytest

import clew

PLACES = clew.tensor([[0, 0, 1], [0, 1, 2]])
ROWS, COLUMNS = clew.tensor([0, 2, 3]), clew.tensor([0, 1, 2])


def made(kind, values):
    if kind == "coo":
        return clew.sparse_coo_tensor(PLACES, values, (2, 3), is_coalesced=True)
    if kind == "csr":
        return clew.sparse_csr_tensor(ROWS, COLUMNS, values, (2, 3))
    return clew.nested.nested_tensor_from_jagged(values, clew.tensor([0, 1, 3]))


def total(x):
    return x.values().sum() if x.is_nested else x.to_dense().sum()


@pytest.mark.parametrize("kind", ["coo", "csr", "jagged"])
@pytest.mark.parametrize("by_setter", [False, True])
def test_two_of_one_tensor_of_values_have_gradients_of_their_own(kind, by_setter):
    """Both gathered into the values' gradient, which the user had not asked for."""
    values = clew.tensor([1.0, 2.0, 3.0])
    both = [made(kind, values), made(kind, values)]
    for x in both:
        if by_setter:
            x.requires_grad = True
        else:
            assert x.requires_grad_() is x
    for factor, x in enumerate(both, 2):
        (total(x) * factor).backward()
        assert x.is_leaf and x.grad.values().tolist() == [factor] * 3
    assert not values.requires_grad and values.grad is None
    with clew.no_grad():
        values.mul_(2)  # the memory is shared
    assert total(both[0]).item() == 12


@pytest.mark.parametrize("kind", ["coo", "csr", "jagged"])
def test_a_detached_one_asks_for_itself(kind):
    x = made(kind, clew.ones(3))
    x.detach().requires_grad_()
    assert not x.requires_grad
    x.requires_grad_()
    assert not x.detach().requires_grad and x.requires_grad


def test_values_that_ask_for_a_gradient_get_it():
    values = clew.ones(3, requires_grad=True)
    total(made("coo", values)).backward()
    assert values.grad.tolist() == [1.0] * 3
