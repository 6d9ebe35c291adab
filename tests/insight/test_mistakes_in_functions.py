"""Mistakes in custom Functions and in hooks: the message names the line of forward, or the hook."""

from __future__ import annotations

import pytest
from told_mistakes import Net, marks_of, notes, tells, text_of

import clew

at = marks_of(__file__)


class Scale(clew.autograd.Function):
    answer = staticmethod(lambda g: (g, g))

    @staticmethod
    def forward(ctx, x, scale):
        return x * scale

    @staticmethod
    def backward(ctx, grad):  # backward begins
        return Scale.answer(grad)


def test_gradient_of_wrong_shape(monkeypatch):
    x, scale = clew.ones(3, 4, requires_grad=True), clew.ones(4, requires_grad=True)
    monkeypatch.setattr(Scale, "answer", lambda g: (g, g.sum(1)))
    loss = Scale.apply(x, scale).sum()  # applied
    with pytest.raises(RuntimeError, match="invalid gradient at index 1") as e:
        loss.backward()
    tells(e.value, "ScaleBackward", "got [3]", "[4]", at("applied"), "`scale`")
    tells(e.value, "`scale`", at("backward begins"))


def test_wrong_number_of_gradients(monkeypatch):
    x, scale = clew.ones(3, 4, requires_grad=True), clew.ones(4, requires_grad=True)
    monkeypatch.setattr(Scale, "answer", lambda g: g)
    loss = Scale.apply(x, scale).sum()  # applied once more
    with pytest.raises(RuntimeError, match="incorrect number of gradients") as e:
        loss.backward()
    tells(e.value, "ScaleBackward", "expected 2", "got 1", at("applied once more"))
    tells(e.value, "x, scale", at("backward begins"))


def test_gradient_that_is_no_tensor(monkeypatch):
    x, scale = clew.ones(3, 4, requires_grad=True), clew.ones(4, requires_grad=True)
    monkeypatch.setattr(Scale, "answer", lambda g: (g, 1.5))
    loss = Scale.apply(x, scale).sum()  # applied again
    with pytest.raises(TypeError) as e:
        loss.backward()
    tells(e.value, "ScaleBackward", "float", at("applied again"), "`scale`")
    tells(e.value, "`scale`", at("backward begins"))


@notes
def test_an_exception_in_a_custom_backward_names_the_forward_line(monkeypatch):
    def broken(grad):
        raise LookupError("mine")

    x = clew.ones(2, requires_grad=True)
    monkeypatch.setattr(Scale, "answer", broken)
    loss = Scale.apply(x, 2.0).sum()  # applied to a number
    with pytest.raises(LookupError) as e:
        loss.backward()
    assert e.value.args == ("mine",)
    tells(e.value, "mine", "in the backward of ScaleBackward", at("applied to a number"))


@notes
def test_what_a_message_tells_itself_is_not_noted_again():
    x = clew.zeros(2, requires_grad=True)
    with clew.debug.nan_watch():
        y = x.sqrt()  # infinite slope
        with pytest.raises(clew.debug.NonFiniteError) as e:
            y.sum().backward()
    tells(e.value, "SqrtBackward0", at("infinite slope"))
    assert text_of(e.value).count("infinite slope") == 1


@notes
def test_an_exception_in_a_hook_says_which():
    def broken(*_):
        raise LookupError("mine")

    net = Net()
    h = net(clew.ones(3, 4))
    h.register_hook(broken)
    with pytest.raises(LookupError) as e:
        h.sum().backward()
    tells(e.value, "in a hook on the gradient of the result of LinearBackward0", at("head"))

    net.blocks[0].fc.weight.register_hook(broken)
    with pytest.raises(LookupError) as e:
        net(clew.ones(3, 4)).sum().backward()
    tells(e.value, "in a hook on the gradient of the parameter blocks.0.fc.weight of Net")

    other = Net()
    other.head.bias.register_post_accumulate_grad_hook(broken)
    with pytest.raises(LookupError) as e:
        other(clew.ones(3, 4)).sum().backward()
    tells(e.value, "at the gradient of the parameter head.bias of Net, float32[2]")

    y = clew.ones(2, requires_grad=True).exp()  # hooked node
    y.grad_fn.register_hook(broken)
    with pytest.raises(LookupError) as e:
        y.sum().backward()
    tells(e.value, "in a hook of ExpBackward0", at("hooked node"))


def test_a_hook_that_changes_the_shape():
    h = clew.ones(3, requires_grad=True) * 2  # hooked
    h.register_hook(lambda g: g[:2])
    with pytest.raises(RuntimeError) as e:
        h.sum().backward()
    tells(e.value, "register_hook", "[3]", "[2]", "hook", "MulBackward0", at("hooked"))
