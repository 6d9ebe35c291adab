"""What is told where gradients are missing: of a loss, of a parameter, of an input."""

from __future__ import annotations

import pytest
from told_mistakes import Net, marks_of, tells, text_of

import clew
from clew import nn

at = marks_of(__file__)


# 4 to 7. The loss does not require grad.


def test_loss_under_no_grad():
    net = Net()
    with clew.no_grad():  # not recorded
        h = net(clew.ones(3, 4))
    loss = (h * 2).mean()
    with pytest.raises(
        RuntimeError, match="does not require grad and does not have a grad_fn"
    ) as e:
        loss.backward()
    tells(
        e.value, "element 0", "float32[]", "linear", "no_grad()", at("block"), "blocks.0.fc: Linear"
    )
    tells(e.value, "entered", at("not recorded"))


def test_loss_in_inference_mode_and_in_a_decorated_function():
    net = nn.Linear(2, 2)

    @clew.inference_mode()
    def infer(x):
        return net(x).sum()  # infers

    loss = infer(clew.ones(1, 2))  # calls infer
    with pytest.raises(RuntimeError, match="does not require grad") as e:
        loss.backward()
    tells(e.value, "inference_mode()", at("infers"), "Linear", "entered", at("calls infer"))


def test_the_region_ends_where_recording_goes_on():
    with clew.no_grad():
        pass
    x = clew.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError) as e, clew.set_grad_enabled(False):  # this region
        x.sum().backward()
    tells(e.value, "no_grad()", "entered", at("this region"))


def test_nothing_requires_grad():
    with pytest.raises(RuntimeError) as e:
        clew.ones(3).sum().backward()
    tells(e.value, "float32[]", "requires_grad=True")
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)).requires_grad_(False)
    with pytest.raises(RuntimeError) as e:
        net(clew.ones(1, 2)).sum().backward()
    tells(e.value, "all 4 parameters of Sequential are frozen", "requires_grad=True")


@pytest.mark.parametrize("way", ["detach()", ".data"])
def test_detached(way):
    net = Net()
    h = net(clew.ones(3, 4))
    if way == ".data":
        cut = h.data  # takes data
    else:
        cut = h.detach()  # detaches
    later = (cut * 2).detach()  # is cut already: the first cut counts
    with pytest.raises(RuntimeError, match="does not require grad") as e:
        later.sum().backward()
    mark = at("takes data") if way == ".data" else at("detaches")
    tells(e.value, "float32[]", way, mark, "made at", at("head"), "head: Linear", way)


@pytest.mark.parametrize(
    ("op", "name"),
    [
        (lambda y: y.argmax(1), "argmax, whose result has a dtype without gradients"),
        (lambda y: y > 0, "gt, whose result has a dtype without gradients"),
        (lambda y: y.long(), "a cast to integers"),
    ],
)
def test_cut_by_a_dtype(op, name):
    y = Net()(clew.ones(3, 4))
    hits = op(y)
    with pytest.raises(RuntimeError, match="does not require grad") as e:
        hits.float().mean().backward()
    tells(e.value, "float32[]", f"by {name}", "test_missing_gradients.py:")
    tells(e.value, "made at", at("head"), "head: Linear")


@pytest.mark.parametrize("way", ["item()", "numpy()", "tolist()", "float()"])
def test_through_a_number(way):
    net = Net()
    y = net(clew.ones(3, 4)).sum()
    if way == "item()":
        number = y.item()  # item()
    elif way == "numpy()":
        number = y.detach().numpy()  # numpy()
    elif way == "tolist()":
        number = y.tolist()  # tolist()
    else:
        number = float(y)  # float()
    loss = clew.tensor(number * 2)  # made again
    with pytest.raises(RuntimeError, match="does not require grad") as e:
        loss.backward()
    tells(e.value, "plain numbers", at("made again"), way, at(way))


@pytest.mark.parametrize("listed", [True, False])
def test_through_a_new_tensor(listed):
    y = Net()(clew.ones(3, 4)).sum()
    if listed:
        loss = clew.tensor([y, 2.0]).sum()  # copied as list
    else:
        with pytest.warns(UserWarning, match="copy construct"):
            loss = clew.tensor(y)  # copied
    with pytest.raises(RuntimeError, match="does not require grad") as e:
        loss.backward()
    mark = at("copied as list" if listed else "copied")
    tells(e.value, "plain numbers", mark, "tensor() on the same line")


def test_through_numbers_that_are_put_into_a_tensor():
    y = Net()(clew.ones(3, 4)).sum()
    total = clew.zeros(3)
    total[0] = float(y)  # put in
    with pytest.raises(RuntimeError, match="does not require grad") as e:
        total.sum().backward()
    tells(e.value, "float()", at("put in"))


def test_one_bad_root_among_good_ones():
    good = clew.ones(1, requires_grad=True) * 2
    bad = good.detach()  # bad root
    with pytest.raises(RuntimeError, match="element 1 of tensors does not require grad") as e:
        clew.autograd.backward([good, bad])
    tells(e.value, "float32[1]", "detach()", at("bad root"))
    with pytest.raises(RuntimeError, match="element 1 of tensors does not require grad") as e:
        clew.autograd.backward([good, bad], [clew.ones(1), clew.ones(1)])
    tells(e.value, "float32[1]", "detach()", at("bad root"))


# 8. A parameter without gradient.


class Forgets(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(2, 2), nn.Linear(2, 3)

    def forward(self, x):
        return self.used(x)


def test_gradient_of_an_unused_parameter():
    net = Forgets()
    loss = net(clew.ones(1, 2)).sum()
    with pytest.raises(RuntimeError, match="not have been used in the graph") as e:
        clew.autograd.grad(loss, list(net.parameters()))
    tells(e.value, "input 2, the parameter unused.weight of Forgets, float32[3, 2]", "not called")
    tells(e.value, "input 3, the parameter unused.bias of Forgets, float32[3]", "allow_unused=True")
    assert "used.weight of" not in text_of(e.value).replace("unused.weight of", "")


def test_gradient_of_a_parameter_that_was_used_in_a_part_that_was_cut_off():
    class Cuts(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x):
            with clew.no_grad():
                x = self.one(x)  # not recorded use
            return self.two(x)

    net = Cuts()
    loss = net(clew.ones(1, 2)).sum()
    with pytest.raises(RuntimeError, match="not have been used in the graph") as e:
        clew.autograd.grad(loss, [net.one.bias])
    tells(e.value, "input 0, the parameter one.bias of Cuts", "no_grad()", at("not recorded use"))


def test_gradient_of_an_input_without_grad():
    x = clew.ones(2, requires_grad=True)
    y = (x * 2).detach()  # no input
    with pytest.raises(RuntimeError, match="does not require grad") as e:
        clew.autograd.grad((y * x).sum(), [x, y])
    tells(e.value, "input 1", "float32[2]", "detach()", at("no input"))


def test_a_recorded_use_counts_more_than_an_earlier_one_without_a_graph():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.pool = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            hidden = self.body(x)
            return hidden, self.pool(hidden)

    net = Net()
    x = clew.ones(2, 4)
    with clew.inference_mode():
        net(x)
    hidden, _ = net(x)
    answer = clew.graph(hidden.sum()).why(net.pool.weight)
    assert "what was made there did not reach the result" in answer.reason
    assert "inference_mode" not in answer.reason
