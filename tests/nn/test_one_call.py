"""Modules whose call goes to the core directly do what their forward() says."""

from __future__ import annotations

import pytest

import clew
from clew import nn

clew.manual_seed(0)
X = clew.randn(3, 4)
CASES = [
    (nn.Linear(4, 2), X),
    (nn.Linear(4, 2, bias=False), X),
    (nn.ReLU(), X),
    (nn.Sigmoid(), X),
    (nn.Tanh(), X),
    (nn.LayerNorm(4), X),
    (nn.LayerNorm(4, elementwise_affine=False), X),
    (nn.GroupNorm(2, 4), X),
    (nn.Embedding(5, 3), clew.tensor([1, 4, 0])),
    (nn.Embedding(5, 3, padding_idx=0), clew.tensor([1, 4, 0])),
    (nn.Embedding(5, 3, max_norm=0.5), clew.tensor([1, 4, 0])),
    (nn.Embedding(5, 3, scale_grad_by_freq=True), clew.tensor([1, 4, 1])),
]


@pytest.mark.parametrize(("module", "x"), CASES, ids=[repr(m) for m, _ in CASES])
def test_call_is_forward(module, x):
    def outcome(run):
        module.zero_grad()
        y = run(x)
        (y * y).sum().backward() if y.requires_grad else None
        return [y, *(p.grad for p in module.parameters())]

    for a, b in zip(outcome(module), outcome(module.forward), strict=True):
        clew.testing.assert_close(a, b, rtol=0, atol=0)


def test_in_place():
    x = X.clone()
    assert nn.ReLU(inplace=True)(x) is x
    assert (x >= 0).all()
    y = X.clone()
    assert nn.ReLU()(y) is not y


def test_other_ways_to_forward():
    class Doubled(nn.Linear):
        def forward(self, input):
            return 2 * super().forward(input)

    module = Doubled(4, 2)
    clew.testing.assert_close(module(X), 2 * nn.functional.linear(X, module.weight, module.bias))
    plain = nn.Linear(4, 2)
    plain.forward = lambda input: input + 1
    clew.testing.assert_close(plain(X), X + 1)


def test_a_class_may_have_its_own_weight():
    class Fixed(nn.Linear):
        weight = property(lambda self: clew.ones(2, 4))

    module = Fixed.__new__(Fixed)
    nn.Module.__init__(module)
    module.register_parameter("bias", None)
    module._parameters["weight"] = nn.Parameter(clew.zeros(2, 4))
    clew.testing.assert_close(module(X), X.sum(1, keepdim=True).expand(3, 2))


def test_what_stands_in_for_a_parameter():
    module = nn.Linear(4, 2)
    other = {"weight": clew.ones(2, 4), "bias": clew.ones(2)}
    got = clew.func.functional_call(module, other, (X,))
    clew.testing.assert_close(got, nn.functional.linear(X, other["weight"], other["bias"]))
    nn.utils.parametrizations.weight_norm(module)
    clew.testing.assert_close(module(X), nn.functional.linear(X, module.weight, module.bias))
    plain = nn.Linear(4, 2)
    del plain.weight
    plain.weight = clew.ones(2, 4)  # no parameter: an attribute
    clew.testing.assert_close(plain(X), nn.functional.linear(X, plain.weight, plain.bias))


def test_hooks_and_keywords():
    module, seen = nn.Linear(4, 2), []
    want = module(X)
    clew.testing.assert_close(module(input=X), want)
    handle = module.register_forward_hook(lambda m, args, out: seen.append(out))
    module(X)
    assert len(seen) == 1
    handle.remove()
    module(X)
    assert len(seen) == 1


def test_errors_are_those_of_forward():
    module = nn.Linear(4, 2)
    with pytest.raises(RuntimeError, match="linear") as caught:
        module(clew.randn(3, 5))
    assert "Linear" in str(caught.value)  # the module at fault
    with pytest.raises(TypeError):
        module("text")
    with pytest.raises(TypeError):
        module()
    del module.bias
    with pytest.raises(AttributeError, match="bias"):
        module(X)


def test_a_class_with_a_getattr_of_its_own_is_asked():
    class Doubled(nn.Linear):
        def __getattr__(self, name):
            found = super().__getattr__(name)
            return found * 2 if name == "weight" else found

    module = Doubled(4, 2)
    want = nn.functional.linear(X, module._parameters["weight"] * 2, module.bias)
    clew.testing.assert_close(module(X), want)


@pytest.mark.parametrize("name", ["linear", "relu", "sigmoid", "tanh", "layer_norm", "group_norm"])
def test_a_function_put_in_the_place_of_one_of_functional_is_called(name, monkeypatch):
    module = {
        "linear": nn.Linear(4, 2),
        "relu": nn.ReLU(),
        "sigmoid": nn.Sigmoid(),
        "tanh": nn.Tanh(),
        "layer_norm": nn.LayerNorm(4),
        "group_norm": nn.GroupNorm(2, 4),
    }[name]
    want = module(X)
    monkeypatch.setattr(nn.functional, name, lambda *args: name)
    assert module(X) == name
    monkeypatch.undo()
    clew.testing.assert_close(module(X), want)
