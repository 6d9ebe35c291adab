"""Operations without a derivative say so in backward(), and do not leave a gradient out."""

from __future__ import annotations

import pytest

import clew

X = clew.tensor([1.0, 2.0, 1.0], requires_grad=True)
EDGES = clew.tensor([0.0, 1.5, 3.0], requires_grad=True)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("unique", lambda x: clew.unique(x)),
        ("unique", lambda x: x.unique(return_inverse=True)[0]),
        ("unique", lambda x: clew.unique(x, dim=0, return_counts=True)[0]),
        ("unique_consecutive", lambda x: clew.unique_consecutive(x)),
        ("unique_consecutive", lambda x: x.unique_consecutive(return_counts=True, dim=0)[0]),
        ("histogram", lambda x: clew.histogram(x, 2).hist),
        ("histogram", lambda x: clew.histogram(x, 2).bin_edges),
        ("histogram", lambda x: clew.histogram(clew.ones(3), 2, weight=x).hist),
        ("histogram", lambda x: clew.histogram(clew.ones(3), clew.cumsum(x, 0)).hist),
        ("histogramdd", lambda x: clew.histogramdd(x.reshape(3, 1), [2]).hist),
    ],
)
def test_backward_says_what_has_no_derivative(name, call):
    made = call(X)
    assert made.requires_grad
    with pytest.raises(NotImplementedError, match=f"{name}: the derivative is not implemented"):
        made.sum().backward()
    with clew.no_grad():
        assert not call(X).requires_grad
    plain = call(X.detach())
    assert not plain.requires_grad and plain.tolist() == made.tolist()


def test_numbers_of_elements_require_no_gradient():
    _, inverse, counts = clew.unique(X, return_inverse=True, return_counts=True)
    assert not inverse.requires_grad and not counts.requires_grad
    assert clew.histogram(clew.ones(3), EDGES).hist.requires_grad


def test_weights_of_bincount_have_a_gradient():
    at = clew.tensor([1, 3, 1])
    counts = clew.bincount(at, X, minlength=5)
    assert counts.tolist() == [0, 2, 0, 2, 0] and counts.dtype is clew.float32
    (grad,) = clew.autograd.grad((counts * clew.arange(5.0)).sum(), X)
    assert grad.tolist() == [1, 3, 1]
    with pytest.raises(RuntimeError, match=r"bincount: input and weights must be on one device"):
        clew.bincount(at, clew.ones(3, device="meta", requires_grad=True))
    none = clew.bincount(at[:0], X[:0], minlength=2)
    assert none.tolist() == [0, 0] and none.dtype is clew.int64  # as in PyTorch
    assert clew.bincount(at[:0], X[:0].detach()).dtype is clew.int64
    half = X.detach().half().requires_grad_()
    assert clew.bincount(at, half).dtype is clew.bincount(at, half.detach()).dtype


@pytest.mark.parametrize("name", ["eq_", "ne_", "lt_", "le_", "gt_", "ge_", "logical_and_"])
def test_a_comparison_in_place_is_flat(name):
    x = clew.tensor([1.0, -2.0, 3.0], requires_grad=True)
    doubled = x * 2
    test = doubled.clone()
    getattr(test, name)(clew.tensor([2.0, 1.0, 1.0], requires_grad=True))
    (test * 5 + doubled).sum().backward()
    assert test.requires_grad and x.grad.tolist() == [2.0, 2.0, 2.0]
