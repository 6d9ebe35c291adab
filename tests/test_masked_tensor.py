"""clew.masked.MaskedTensor: operations leave masked elements out, and so do gradients."""

import copy
import math
import pickle

import numpy as np
import pytest

import clew
from clew.masked import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

DATA = np.array([[-2.0, -1.0, 0.5], [1.0, 2.0, 3.0]])
MASK = np.array([[True, False, True], [False, True, True]])
# What NumPy's masked arrays, which mark what is not there, make of the same elements.
NUMPYS = np.ma.array(DATA, mask=~MASK)


def made(requires_grad=False):
    return masked_tensor(clew.tensor(DATA), clew.tensor(MASK), requires_grad)


def same(got, expected):
    """Compares with one of NumPy's, where elements are and what they are."""
    assert is_masked_tensor(got)
    assert got.get_mask().tolist() == (~np.ma.getmaskarray(expected)).tolist()
    np.testing.assert_allclose(got.to_tensor(-7).detach().numpy(), np.ma.filled(expected, -7))


def test_parts_are_copies():
    data, mask = clew.tensor(DATA), clew.tensor(MASK)
    x = masked_tensor(data, mask)
    data.zero_(), mask.zero_()
    same(x, NUMPYS)
    assert (x.shape, x.dtype, x.dim(), len(x)) == ((2, 3), clew.float64, 2, 2)
    assert type(x) is MaskedTensor and not is_masked_tensor(data)


@pytest.mark.parametrize("name", "sum prod mean amin amax argmin argmax".split())
def test_reductions(name):
    theirs = getattr(np.ma.MaskedArray, {"amin": "min", "amax": "max"}.get(name, name))
    for dim in (0, 1, -1):
        same(getattr(made(), name)(dim), np.ma.array(theirs(NUMPYS, axis=dim)))
        kept = getattr(clew, name)(made(), dim=dim, keepdim=True)
        same(kept, np.ma.array(np.expand_dims(theirs(NUMPYS, axis=dim), dim)))
    if not name.startswith("arg"):
        same(getattr(made(), name)(), np.ma.array(theirs(NUMPYS)))


def test_an_empty_row():
    x = masked_tensor(clew.tensor(DATA), clew.tensor([[False] * 3, [True] * 3]))
    assert x.sum(1).get_mask().tolist() == [False, True]
    assert x.amax((0, 1)).item() == 3.0 and x.var(1)[1].item() == 1.0
    assert x.all(1).get_mask().tolist() == [False, True]
    assert x.norm().item() == pytest.approx(math.sqrt(14))


def test_elements():
    same(made().abs(), abs(NUMPYS))
    same(clew.exp(made()), np.ma.exp(NUMPYS))
    same(-(made() ** 2), -(NUMPYS**2))
    same(made().clamp(-1, 1), np.ma.clip(NUMPYS, -1, 1))
    same(made() + made() * 2 - 1, NUMPYS * 3 - 1)
    same(1 / made(), 1 / NUMPYS)
    same(made() * clew.full((3,), 2.0), NUMPYS * 2)
    same(clew.full((2, 3), 2.0) * made(), NUMPYS * 2)
    same(clew.maximum(made(), -made()), np.ma.maximum(NUMPYS, -NUMPYS))
    assert (made() > 0).to_tensor(False).tolist() == [[False, False, True], [False, True, True]]
    x = made()
    assert x.add_(1) is x
    same(x, NUMPYS + 1)
    with pytest.raises(ValueError, match="Input masks must match"):
        made() + masked_tensor(clew.tensor(DATA), clew.tensor(~MASK))


def test_shapes():
    same(made()[0], NUMPYS[0])
    same(made()[:, 1:], NUMPYS[:, 1:])
    same(made()[clew.tensor([1, 0])], NUMPYS[[1, 0]])
    same(made().t(), NUMPYS.T)
    same(made().view(3, 2), NUMPYS.reshape(3, 2))
    same(clew.cat([made(), made()], dim=1), np.ma.concatenate([NUMPYS, NUMPYS], axis=1))
    same(clew.stack([made(), made()]), np.ma.stack([NUMPYS, NUMPYS]))
    same(made().split(1)[1], NUMPYS[1:])
    with pytest.raises(TypeError, match="all tensors must be masked"):
        clew.cat([made(), clew.tensor(DATA)])


def test_where_and_softmax():
    x = masked_tensor(clew.tensor([-1.0, 800.0]), clew.tensor([True, False]), requires_grad=True)
    y = masked_tensor(clew.ones(2), clew.tensor([False, True]), requires_grad=True)
    clew.where(clew.tensor([True, False]), x.exp(), y).sum().backward()
    assert x.grad.to_tensor(-7).tolist() == pytest.approx([math.exp(-1), -7])
    assert y.grad.to_tensor(-7).tolist() == [-7, 1]
    e = math.e
    found = made().softmax(1).to_tensor(0)
    assert found[0].tolist() == pytest.approx(
        [e**-2 / (e**-2 + e**0.5), 0, e**0.5 / (e**-2 + e**0.5)]
    )
    with pytest.raises(TypeError, match="both values must be masked"):
        clew.where(clew.tensor([True, False]), x, clew.ones(2))


def test_gradients():
    x = made(True)
    (x * x).sum().backward()
    same(x.grad, NUMPYS * 2)
    plain = clew.tensor(DATA, requires_grad=True)
    (as_masked_tensor(plain, clew.tensor(MASK)) ** 2).sum().backward()
    assert plain.grad.tolist() == (2 * DATA * MASK).tolist()
    root = masked_tensor(clew.tensor([0.0, 4.0]), clew.tensor([False, True]), requires_grad=True)
    root.sqrt().sum().backward()
    assert root.grad.to_tensor(-7).tolist() == [-7, 0.25]


def test_texts():
    x = masked_tensor(clew.tensor([[1.0, 2.0], [3.0, 4.0]]), clew.tensor([[True, False]] * 2))
    rows = "    [  1.0000,       --],\n    [  3.0000,       --]"
    assert repr(x) == f"MaskedTensor(\n  [\n{rows}\n  ]\n)"
    assert repr(masked_tensor(clew.tensor([1, 2]), clew.tensor([False, True]))) == (
        "MaskedTensor(\n  [      --, 2]\n)"
    )
    assert (
        repr(masked_tensor(clew.tensor(1.5), clew.tensor(True))) == "MaskedTensor(  1.5000, True)"
    )
    assert repr(masked_tensor(clew.tensor(1), clew.tensor(False))) == "MaskedTensor(--, False)"


def test_copies_and_pickles():
    x = made(True)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.detach().clone()):
        same(other, NUMPYS)
    assert pickle.loads(pickle.dumps(x)).requires_grad and not x.detach().requires_grad
    assert x.to(clew.float32).dtype is clew.float32


@pytest.mark.parametrize(
    "error, message, call",
    [
        (TypeError, "mask must have dtype bool", lambda: masked_tensor(clew.ones(2), clew.ones(2))),
        (TypeError, "data must be a Tensor", lambda: masked_tensor([1.0], clew.ones(1).bool())),
        (TypeError, "data must be a Tensor", lambda: masked_tensor(made(), clew.ones(1).bool())),
        (ValueError, "same shape", lambda: masked_tensor(clew.ones(2), clew.ones(1).bool())),
        (NotImplementedError, r"\.to_tensor\(value\)", lambda: made() @ made().t()),
        (NotImplementedError, "dim, keepdim and dtype", lambda: made().var(1, correction=0)),
    ],
)
def test_refused(error, message, call):
    with pytest.raises(error, match=message):
        call()
