"""Why a parameter reaches the loss, or does not; check_gradients."""

from __future__ import annotations

from functools import partial

import pytest

import clew
from clew import nn
from marked_lines import line_of_mark

line_of = partial(line_of_mark, __file__)


class Two(nn.Module):
    """fc1 -> `between` -> fc2."""

    def __init__(self, between):
        super().__init__()
        self.fc1, self.fc2, self.idle = nn.Linear(3, 3), nn.Linear(3, 1), nn.Linear(3, 3)
        self.between = between

    def forward(self, x):
        return self.fc2(self.between(self.fc1, x)).sum()


def test_reached():
    model = Two(lambda fc, x: fc(x) + fc(x))  # both
    loss = model(clew.ones(2, 3))
    answer = clew.graph(loss).why("fc1.weight")
    assert answer.reached and answer and answer.kind == "reached"
    assert answer.path_count == 2
    assert [n.op for n in answer.uses] == ["linear", "linear"]
    assert [[n.op for n in path] for path in answer.paths] == [
        ["leaf", "linear", "add", "linear", "sum"]
    ] * 2
    text = str(answer)
    assert "on 2 paths, through 2 uses" in text
    assert "2 x linear (fc1 Linear)" in text
    assert f"test_why.py:{line_of('both')}" in text
    assert "backward has not run through this graph" in text
    loss.backward()
    assert "grad" not in clew.graph(loss).why(model.fc1.weight).reason


def test_a_long_path_is_cut_and_paths_are_counted_exactly():
    x = clew.ones(1, requires_grad=True)
    y = x
    for _ in range(40):
        y = y + y
    answer = clew.graph(y).why(x)
    assert answer.path_count == 2**40
    assert "... 29 more" in str(answer) and len(str(answer).split("\n")) < 25
    for _ in range(40):
        y = y + y
    assert "more than 1,000,000,000,000,000,000 paths" in str(clew.graph(y).why(x))


def test_of_very_long_chains():
    x = clew.ones(1, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y * 1.0
    answer = clew.graph(y).why(x)
    assert len(answer.paths[0]) == 100_001 and answer.path_count == 1


def test_a_middle_tensor():
    x = clew.ones(2, requires_grad=True)
    h = x.exp()
    g = clew.graph((h * 2).sum())
    assert [n.op for n in g.why(h).paths[0]] == ["exp", "mul", "sum"]
    other = x.sin()
    answer = g.why(other)
    assert not answer.reached and answer.kind == "not used"


def test_the_result_itself():
    x = clew.ones(2, requires_grad=True)
    assert "is itself a result" in clew.graph(x).why(x).reason


def test_frozen():
    model = Two(lambda fc, x: fc(x))
    model.fc1.weight.requires_grad_(False)
    answer = clew.graph(model(clew.ones(2, 3))).why("fc1.weight")
    assert (answer.reached, answer.kind) == (False, "frozen")
    assert "requires_grad is False" in str(answer)


def no_grad(fc, x):
    with clew.no_grad():
        return fc(x)  # under no_grad


def detached(fc, x):
    return nn.functional.linear(x, fc.weight.detach(), fc.bias)  # detached


def through_data(fc, x):
    return nn.functional.linear(x, fc.weight.data, fc.bias)  # data


def to_integers(fc, x):
    return x * (fc.weight > 0)  # to integers


@pytest.mark.parametrize(
    ("between", "mark", "how"),
    [
        (no_grad, "under no_grad", "inside no_grad()"),
        (detached, "detached", "by detach()"),
        (through_data, "data", "by .data"),
        (to_integers, "to integers", "by gt, whose result has a dtype without gradients"),
    ],
)
def test_used_where_it_was_cut_off(between, mark, how):
    model = Two(between)
    answer = clew.graph(model(clew.ones(3, 3))).why("fc1.weight")
    assert (answer.reached, answer.kind) == (False, "cut")
    assert how in answer.reason
    assert f"test_why.py:{line_of(mark)}" in answer.reason
    assert any(how in cut for cut in answer.cuts)


def test_the_second_of_two_layers_that_were_cut_off():
    # Only the first cut is carried on by the values; the parameter itself knows of its use.
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = (nn.Linear(2, 2) for _ in range(3))

        def forward(self, x):
            with clew.no_grad():
                x = self.a(x)
                x = self.b(x)  # second
            return self.c(x).sum()

    model = Deep()
    g = clew.graph(model(clew.ones(1, 2)))
    assert g.why("a.weight").kind == "cut"
    answer = g.why("b.weight")
    assert answer.kind == "likely cut" and "likely" in answer.reason
    assert f"test_why.py:{line_of('second')}" in answer.reason
    assert "module b: Linear" in answer.reason
    assert g.why("c.weight").reached


def test_a_parameter_of_the_outermost_module():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.scale = nn.Linear(2, 2), nn.Parameter(clew.ones(2))

        def forward(self, x):
            with clew.no_grad():
                x = x * 2 * self.fc.bias
            return self.fc(x * self.scale.detach()).sum()  # scaled

    model = Scaled()
    answer = clew.graph(model(clew.ones(1, 2))).why("scale")
    assert answer.kind == "likely cut"
    assert "by detach() at" in answer.reason
    assert f"test_why.py:{line_of('scaled')}" in answer.reason
    # What the reason names is not told again; the other cut is.
    assert str(answer).count("by detach()") == 1 and str(answer).count("inside no_grad()") == 1


def test_a_detached_value():
    def between(fc, x):
        h = fc(x)  # made here
        return h.detach()  # cut here

    model = Two(between)
    answer = clew.graph(model(clew.ones(1, 3))).why("fc1.weight")
    assert not answer.reached and answer.kind == "likely cut"
    assert "likely it belongs to a part that was cut off: by detach()" in answer.reason
    assert f"test_why.py:{line_of('cut here')}" in answer.reason
    assert f"test_why.py:{line_of('made here')}" in answer.reason


def test_a_parameter_of_the_outermost_module_read_as_a_number():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.read, self.cut = nn.Parameter(clew.ones(())), nn.Parameter(clew.ones(2))
            self.idle, self.fc = nn.Parameter(clew.ones(2)), nn.Linear(2, 2)

        def forward(self, x):
            x = x / self.read.item()  # read
            return self.fc(x * self.cut.detach()).sum()

    model = Scaled()
    g = clew.graph(model(clew.ones(1, 2)))
    answer = g.why("read")
    assert answer.kind == "likely cut" and "through item() at" in answer.reason
    assert f"test_why.py:{line_of('read')}" in answer.reason
    # The cut of another parameter is no reason for one that nothing uses.
    assert g.why("idle").kind == "not used" and "detach" not in g.why("idle").reason


def test_a_sample_is_cut_off_where_it_is_drawn():
    class Sampler(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean, self.scale, self.out = (nn.Linear(2, 2) for _ in range(3))

        def forward(self, x):
            # Normal compares what it gets, to check it.
            spread = clew.distributions.Normal(self.mean(x), self.scale(x).exp())
            return self.out(spread.sample()).sum()  # drawn

    model = Sampler()
    g = clew.graph(model(clew.ones(1, 2)))
    for name in ("mean.weight", "scale.bias"):
        answer = g.why(name)
        assert answer.kind == "likely cut"
        assert f"test_why.py:{line_of('drawn')}" in answer.reason, answer.reason
        assert "through gt" not in answer.reason and "through eq" not in answer.reason


def test_a_comparison_is_told_although_something_else_was_cut_off():
    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.out, self.base = (nn.Linear(2, 2) for _ in range(3))

        def forward(self, x):
            mask = self.gate(x) > 0  # compared
            base = self.base(x).detach()
            return clew.where(mask, self.out(x), base).sum()

    model = Gated()
    reason = clew.graph(model(clew.ones(1, 2))).why("gate.weight").reason
    assert "gt, whose result has a dtype without gradients" in reason
    assert f"test_why.py:{line_of('compared')}" in reason and "detach" not in reason


def test_positions_have_no_gradient():
    class Chooser(nn.Module):
        def __init__(self):
            super().__init__()
            self.score, self.out = nn.Linear(3, 3), nn.Linear(2, 1)

        def forward(self, x):
            best = self.score(x).topk(2).indices  # positions
            return self.out(x.gather(1, best)).sum()

    model = Chooser()
    answer = clew.graph(model(clew.ones(1, 3))).why("score.weight")
    assert answer.kind == "likely cut" and "its indices have no gradient" in answer.reason
    assert f"test_why.py:{line_of('positions')}" in answer.reason


def test_a_result_that_was_cut_off():
    model = Two(lambda fc, x: fc(x))
    w = nn.Parameter(clew.ones(2))
    extra = (w * 2).detach().sum()  # a lost term
    g = clew.graph([model(clew.ones(1, 3)), extra], params={"w": w})
    assert len(g.roots) == 1
    answer = g.why("w")
    assert not answer.reached and len(answer.cuts) == 1
    assert f"test_why.py:{line_of('a lost term')}" in str(answer)


def test_a_module_that_was_not_called():
    model = Two(lambda fc, x: fc(x))
    g = clew.graph(model(clew.ones(1, 3)))
    answer = g.why("idle.weight")
    assert answer.kind == "not called" and "idle was not called" in answer.reason
    assert answer.cuts == []


def test_a_parameter_that_its_module_does_not_use():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)
            self.inner.scale = nn.Parameter(clew.ones(2))

        def forward(self, x):
            return self.inner(x)

    model = Odd()
    answer = clew.graph(model(clew.ones(1, 2)).sum()).why("inner.scale")
    assert answer.kind == "not used" and "was called, but no operation" in answer.reason


def test_an_evaluation_before_is_not_blamed_on_the_graph():
    model = Two(lambda fc, x: fc(x))
    with clew.no_grad():
        model.idle(clew.ones(1, 3))  # elsewhere
    answer = clew.graph(model(clew.ones(1, 3))).why("idle.weight")
    assert answer.kind == "not called"
    assert "its last use that was not recorded" in answer.reason
    assert f"test_why.py:{line_of('elsewhere')}" in answer.reason


def test_saving_the_model_is_not_a_use():
    model = Two(no_grad)
    loss = model(clew.ones(1, 3))
    model.state_dict()  # detaches every parameter
    assert f"test_why.py:{line_of('under no_grad')}" in clew.graph(loss).why("fc1.weight").reason


def test_unknown_names_and_tensors():
    model = Two(lambda fc, x: fc(x))
    g = clew.graph(model(clew.ones(1, 3)))
    with pytest.raises(KeyError, match=r"no parameter is named 'fc1.wieght'.*nearest.*fc1.weight"):
        g.why("fc1.wieght")
    with pytest.raises(TypeError, match="why: expected a Tensor or a name; got int"):
        g.why(3)
    stranger = clew.ones(2, 5, requires_grad=True)
    assert "the tensor of shape (2, 5)" in str(g.why(stranger))


def test_gradients_that_were_cleared():
    model = Two(lambda fc, x: fc(x))
    loss = model(clew.ones(1, 3))
    g = clew.graph(loss)
    assert "backward has not run" in g.why("fc1.weight").reason
    loss.backward()
    model.fc1.weight.grad = None
    answer = g.why("fc1.weight")
    assert answer.reached and "it was cleared since" in answer.reason
    kept = model(clew.ones(1, 3))
    model.zero_grad()
    kept.backward(retain_graph=True)
    model.fc1.weight.grad = None
    assert "although 3 of the other 3 leaves have one" in clew.graph(kept).why("fc1.weight").reason


def test_where_a_gradient_became_zero():
    model = Two(lambda fc, x: (fc(x) - 100).relu())  # dead
    loss = model(clew.ones(1, 3))
    g = clew.graph(loss)
    loss.backward(retain_graph=True)
    answer = g.why("fc1.weight")
    assert answer.reached and "its .grad is all zeros" in answer.reason
    assert "becomes zero in: relu" in answer.reason
    assert f"test_why.py:{line_of('dead')}" in answer.reason
    assert "sub" not in answer.reason.split("becomes zero in")[1].split("test_why")[0]
    assert "zeros" not in g.why("fc2.bias").reason
    before = model.fc1.weight.grad.clone()
    g.why("fc1.weight")
    assert clew.equal(model.fc1.weight.grad, before)  # the measurement leaves no trace


def test_a_zero_gradient_whose_graph_is_gone():
    model = Two(lambda fc, x: (fc(x) - 100).relu())
    loss = model(clew.ones(1, 3))
    g = clew.graph(loss)
    loss.backward()
    assert "cannot be found any more: ask after" in g.why("fc1.weight").reason
    del loss
    assert "the result is gone" in g.why("fc1.weight").reason


def test_why_does_not_name_an_operation_that_passes_something_on():
    x = clew.tensor([1.0, -1.0], requires_grad=True)
    y = (x.relu() * clew.tensor([0.0, 5.0])).sum()  # each alone leaves something
    g = clew.graph(y)
    y.backward(retain_graph=True)
    assert x.grad.tolist() == [0.0, 0.0]
    reason = g.why(x).reason.split("becomes zero in: ")[1]
    assert reason.startswith("relu") and "mul" not in reason.split("test_why")[0]


# check_gradients --------------------------------------------------------------------------------


def test_check_gradients_names_itself_where_there_is_no_graph():
    model = nn.Linear(2, 1)
    with pytest.raises(RuntimeError, match=r"(?s)^check_gradients: nothing was.*detach\(\)"):
        clew.debug.check_gradients(model, model(clew.ones(1, 2)).sum().detach())
    with pytest.raises(TypeError, match="^check_gradients: expected Tensors"):
        clew.debug.check_gradients(model, 3)


def test_check_gradients_is_quiet_when_all_is_well():
    model = nn.Linear(2, 1)
    loss = model(clew.ones(1, 2)).sum()
    clew.debug.check_gradients(model, loss)
    loss.backward()
    clew.debug.check_gradients(model, loss)
    clew.debug.check_gradients(model)


@pytest.mark.parametrize("after", [False, True])
def test_check_gradients_names_all_with_their_reasons(after):
    model = Two(no_grad)
    model.idle.bias.requires_grad_(False)  # not asked for, not missed
    loss = model(clew.ones(1, 3))
    if after:
        loss.backward()
    with pytest.raises(RuntimeError) as caught:
        clew.debug.check_gradients(model, loss)
    text = str(caught.value)
    verb = "got no gradient" if after else "cannot get a gradient"
    assert f"3 of 5 parameters {verb}" in text
    lines = {line.split(":")[0].strip(): line for line in text.split("\n")[1:]}
    assert set(lines) == {"fc1.weight, fc1.bias", "idle.weight"}  # equal reasons are told once
    assert "no_grad" in lines["fc1.weight, fc1.bias"] and "not called" in lines["idle.weight"]
    assert f"test_why.py:{line_of('under no_grad')}" in lines["fc1.weight, fc1.bias"]


def test_check_gradients_without_the_loss():
    model = Two(no_grad)
    model(clew.ones(1, 3)).backward()
    with pytest.raises(RuntimeError) as caught:
        clew.debug.check_gradients(model)
    text = str(caught.value)
    assert "4 of 6 parameters got no gradient" in text
    assert "fc1.weight, fc1.bias: its .grad is None; its last use that was not recorded" in text
    fresh = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="perhaps backward"):
        clew.debug.check_gradients(fresh)


def test_check_gradients_before_backward_looks_at_old_gradients_as_such():
    # Gradients of an earlier step do not hide that this one reaches less.
    model = Two(lambda fc, x: fc(x))
    model(clew.ones(1, 3)).backward()
    model.between = no_grad
    loss = model(clew.ones(1, 3))
    assert model.fc1.weight.grad is not None
    with pytest.raises(RuntimeError, match=r"(?s)cannot get a gradient.*fc1.weight"):
        clew.debug.check_gradients(model, loss)


def test_paths_of_the_same_look_are_shown_once():
    w = clew.ones(6, 2, requires_grad=True)
    a, b, c = (part * 2 for part in w.split(2))
    why = clew.graph(clew.stack([a, b, c]).sum()).why(w)
    assert len(why.paths) > 1
    shown = str(why).split("a shortest path")[1:]
    assert len(shown) == len(set(shown)) < len(why.paths)


# What left its graph ----------------------------------------------------------------------------


def through_item(fc, x):
    return x * fc(x).sum().item()  # by item


def through_argmax(fc, x):
    return x[:, fc(x)[0].argmax()][:, None].expand(-1, 3)  # by argmax


def through_new_tensor(fc, x):
    h = fc(x)
    return clew.tensor([[h[0, 0], h[0, 1], h[0, 2]]])  # by tensor


def through_numpy(fc, x):
    h = fc(x).detach().numpy() * 2  # by numpy
    return clew.from_numpy(h)


def through_comparison(fc, x):
    return x if fc(x).sum() > 0 else -x  # by comparison


@pytest.mark.parametrize(
    ("between", "mark", "how"),
    [
        (through_item, "by item", "item()"),
        (through_argmax, "by argmax", "argmax"),
        (through_new_tensor, "by tensor", "tensor()"),
        (through_numpy, "by numpy", "detach()"),
        (through_comparison, "by comparison", "gt"),
    ],
)
def test_a_module_was_called_and_its_value_left(between, mark, how):
    model = Two(between)
    # An earlier round, whose uses are not this one's.
    model.fc2(clew.ones(1, 3)).sum().backward()
    loss = model(clew.ones(2, 3))
    answer = clew.graph(loss, model=model).why("fc1.weight")
    assert answer.kind == "likely cut" and "not called" not in answer.reason
    assert how in answer.reason and f"test_why.py:{line_of(mark)}" in answer.reason
    idle = clew.graph(loss, model=model).why("idle.weight")
    assert idle.kind == "not called"
    with pytest.raises(RuntimeError) as caught:
        clew.debug.check_gradients(model, loss)
    assert str(caught.value).count("not called") == 1


def test_a_module_was_called_and_its_value_is_not_used():
    def between(fc, x):
        fc(x)  # lost
        return x

    model = Two(between)
    answer = clew.graph(model(clew.ones(2, 3)), model=model).why("fc1.weight")
    assert answer.kind == "not used" and "left unused" in answer.reason
    assert f"test_why.py:{line_of('lost')}" in answer.reason


def test_a_use_in_an_earlier_round_is_none_of_this_one():
    model = Two(lambda fc, x: fc(x))
    model(clew.ones(2, 3)).backward()
    model.between = lambda fc, x: x
    answer = clew.graph(model(clew.ones(2, 3)), model=model).why("fc1.weight")
    assert answer.kind == "not called"


@pytest.mark.parametrize("kind", ["list", "dict"])
def test_check_gradients_names_parameters_in_plain_containers(kind):
    class Holds(nn.Module):
        def __init__(self):
            super().__init__()
            layers = [nn.Linear(3, 3), nn.Linear(3, 3)]
            self.layers = layers if kind == "list" else {"a": layers[0], "b": layers[1]}
            self.out = nn.Linear(3, 1)

        def forward(self, x):
            for layer in self.layers if kind == "list" else self.layers.values():
                x = layer(x)
            return self.out(x).sum()

    model = Holds()
    with pytest.raises(RuntimeError, match=f"(?s)4 in Holds.layers, a plain {kind}.*ModuleList"):
        clew.debug.check_gradients(model, model(clew.ones(2, 3)))
    other = nn.Linear(3, 3)  # of another model: nothing is missing
    clew.debug.check_gradients(model.out, model.out(other(clew.ones(2, 3))).sum())
