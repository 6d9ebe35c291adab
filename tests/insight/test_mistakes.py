"""The classic mistakes: each error tells the tensor, the module and the lines involved, in order.

Facts are checked, not sentences: lines are those of marks. test_missing_gradients.py has
mistakes 4 to 8, test_mistakes_in_functions.py mistake 10.
"""

from __future__ import annotations

import re
import threading

import pytest
from told_mistakes import Net, columns, marks_of, tells, text_of

import clew
from clew import nn
from clew.nn import functional as F

at = marks_of(__file__)


# 1. A saved value is written in place.


class Writes(nn.Module):
    def forward(self, x):
        h = x.exp()  # makes h
        h.add_(1)  # writes h
        return h


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Writes()

    def forward(self, x):
        return self.inner(x)


def test_saved_value_written():
    loss = Outer()(clew.ones(3, 4, requires_grad=True)).sum()
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as e:
        loss.backward()
    tells(e.value, "float32[3, 4]", "ExpBackward0", "version 1; expected version 0")
    tells(e.value, "saved at", at("makes h"), "inner: Writes", "written at", at("writes h"))
    tells(e.value, at("writes h"), "inner: Writes", "write `h = h.add(1)`")
    assert text_of(e.value).count("makes h") == 1  # no line is told twice


@columns
def test_the_written_variable_is_named_with_what_to_write_instead():
    x = clew.ones(3, requires_grad=True)
    state = x.exp()
    state *= 2
    with pytest.raises(RuntimeError) as e:
        state.sum().backward()
    tells(e.value, "`state`", "write `state = state * 2`")
    y = x.sqrt()
    y.clamp_(min=2, max=3)
    with pytest.raises(RuntimeError) as e:
        y.sum().backward()
    tells(e.value, "`y`", "write `y = y.clamp(min=2, max=3)`")


def test_written_through_a_view_and_more_than_once():
    x = clew.ones(2, 3, requires_grad=True)
    y = x.exp()  # viewed
    row = y[0]
    row.mul_(2)
    y[1, 2] = 5.0  # last write
    with pytest.raises(RuntimeError) as e:
        y.sum().backward()
    tells(e.value, "float32[2, 3]", at("viewed"), "2 times", at("last write"), "clone()")


def test_written_input_says_who_saved_it():
    x = clew.ones(3, requires_grad=True)
    a = x * 2  # made a
    b = a.sin()  # saves a
    a.zero_()  # zeroes a
    with pytest.raises(RuntimeError) as e:
        b.sum().backward()
    tells(e.value, "float32[3]", "MulBackward0", "SinBackward0", at("saves a"), at("zeroes a"))


def test_written_by_an_optimizer_between_forward_and_backward():
    net = Net()
    opt = clew.optim.SGD(net.parameters(), lr=0.1)
    x = clew.ones(3, 4)
    net(x).sum().backward()
    loss = net(x).sum()
    opt.step()  # step
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as e:
        loss.backward()
    tells(e.value, "the parameter head.weight of Net, float32[2, 4]", at("head"), "head: Linear")
    tells(e.value, "written at", at("step"), "forward again")


def test_written_buffer():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", clew.ones(4))

        def forward(self, x):
            y = x * self.scale  # scales
            self.scale.mul_(0.9)  # decays the scale
            return y

    net = nn.Sequential(Scaled())
    loss = net(clew.ones(4, requires_grad=True)).sum()
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as e:
        loss.backward()
    tells(e.value, "the buffer 0.scale of Sequential, float32[4]", "MulBackward0", at("scales"))
    tells(e.value, "written at", at("decays the scale"), "0: Scaled")


def test_written_part_of_a_buffer():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scales", clew.ones(2, 4))

        def forward(self, x):
            y = x * self.scales[1]
            self.scales.mul_(0.9)
            return y

    net = Scaled()
    loss = net(clew.ones(4, requires_grad=True)).sum()
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as e:
        loss.backward()
    tells(e.value, "a view of the buffer scales of Scaled, float32[4]")


def test_buffers_of_a_batch_norm_may_change_between_forward_and_backward():
    """Backward uses the statistics that forward used: nothing is to be told."""
    bn = nn.BatchNorm1d(2).eval()
    bn.running_var.fill_(4.0)
    x = clew.randn(3, 2, requires_grad=True)
    loss = bn(x).sum()
    bn.train()
    bn(clew.randn(3, 2))
    loss.backward()
    assert clew.allclose(x.grad, clew.full((3, 2), 0.5), atol=1e-4)


# 2. A leaf is written.


def test_leaf_written():
    net = Net()
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad") as e:
        net.blocks[1].fc.weight.mul_(0.5)
    tells(e.value, "mul_: ", "the parameter blocks.1.fc.weight of Net", "float32[4, 4]", "no_grad")
    with pytest.raises(RuntimeError, match="view of a leaf Variable") as e:
        net.head.bias[0] = 1.0
    tells(e.value, "the parameter head.bias of Net", "float32[2]", "no_grad")


def test_leaf_written_inside_a_module():
    class Decays(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(clew.ones(3))

        def forward(self, x):
            self.scale.mul_(0.9)  # decays
            return x * self.scale

    with pytest.raises(RuntimeError) as e:
        nn.Sequential(Decays())(clew.ones(3))
    tells(e.value, "the parameter 0.scale of Sequential", at("decays"), "0: Decays", "no_grad")


def test_leaf_that_is_no_parameter():
    x = clew.ones(2, 5, requires_grad=True)
    with pytest.raises(RuntimeError) as e:
        x += 1
    tells(e.value, "add_: ", "float32[2, 5]", "no_grad")
    assert "parameter" not in text_of(e.value)


def test_view_that_was_made_under_no_grad():
    h = clew.ones(2, 3, requires_grad=True) * 2
    with clew.no_grad():  # hides
        row = h[0]  # the view
    with pytest.raises(RuntimeError, match="view was created in no_grad mode") as e:
        row.mul_(2)
    tells(e.value, "mul_: ", "float32[3]", at("the view"), "entered", at("hides"), "no_grad()")


def test_one_of_several_results_has_no_name_of_its_own():
    rows = (clew.ones(2, 3, requires_grad=True) * 2).unbind()  # rows
    with pytest.raises(RuntimeError, match="multiple views") as e:
        rows[0].add_(1)
    tells(e.value, "UnbindBackward0", "float32[3]", "made by", at("rows"))
    assert "`rows`," not in text_of(e.value)


# 3. Backward a second time.


def test_backward_twice():
    net = Net()
    loss = net(clew.ones(3, 4)).sum()
    loss.backward()  # consumes
    with pytest.raises(RuntimeError, match="second time") as e:
        loss.backward()
    tells(e.value, "LinearBackward0", "float32[3, 2]", at("head"), "head: Linear")
    tells(e.value, "first", at("consumes"), "retain_graph=True")
    assert "share" not in text_of(e.value)


@columns
def test_backward_of_two_losses_that_share_a_part():
    x = clew.ones(3, requires_grad=True)
    code = x.exp()  # shared
    one, two = (code * 2).sum(), code.square().sum()
    one.backward()  # first loss
    with pytest.raises(RuntimeError, match="second time") as e:
        two.backward()
    tells(e.value, "ExpBackward0", "`code`, float32[3]", at("shared"), at("first loss"), "add them")


@columns
def test_backward_in_a_loop_that_carries_state_over():
    cell = nn.Linear(3, 3)
    state = clew.zeros(1, 3)
    with pytest.raises(RuntimeError, match="second time") as e:
        for _ in range(2):
            state = cell(state).tanh()  # next state
            state.sum().backward()  # each round
    tells(e.value, "`state`, float32[1, 3]", at("next state"), at("each round"), "detach()")


def test_saved_tensors_after_backward():
    x = clew.ones(3, requires_grad=True)
    y = x.exp()  # looked at
    y.sum().backward()  # frees
    with pytest.raises(RuntimeError, match="second time") as e:
        y.grad_fn._saved_result  # noqa: B018
    tells(e.value, "ExpBackward0", at("looked at"), at("frees"), "retain_graph=True")


# 9. Shapes that do not fit.


def test_shape_mismatch_in_a_module():
    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = nn.Linear(8, 3)

        def forward(self, x):
            h = x.flatten(1)  # flattens
            return self.mix(h)  # mixes

    net = nn.Sequential(nn.Conv1d(1, 8, 2), nn.ModuleList([Flat()])[0])
    with pytest.raises(RuntimeError) as e:
        net(clew.ones(5, 1, 4))
    tells(e.value, "linear: ", "float32[5, 24]", "float32[3, 8]", at("mixes"), "1.mix: Linear")
    tells(e.value, "float32[5, 24]", "was made by", at("flattens"), "(module 1: Flat)")
    assert text_of(e.value).count("\n  in ") == 1


def test_shape_mismatch_outside_of_modules():
    x = clew.ones(2, 3, requires_grad=True)
    a = x * 2  # operand
    with pytest.raises(RuntimeError) as e:
        a @ x
    tells(
        e.value,
        "matmul: ",
        "float32[2, 3]",
        "float32[2, 3]",
        "was made by MulBackward0",
        at("operand"),
    )
    with pytest.raises(RuntimeError) as e:
        a.add_(clew.ones(4, 3))
    tells(e.value, "add", "[4, 3]", "float32[2, 3]", "was made by MulBackward0", at("operand"))


def test_an_operand_of_the_line_that_is_told_already():
    class Transposes(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            return self.fc(x.T)  # transposes

    x = clew.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError) as e:
        Transposes()(x.T)
    tells(
        e.value, at("transposes"), "fc: Linear", "float32[2, 3]", "was made by", "on the same line"
    )
    assert text_of(e.value).count("transposes") == 1


def test_operands_of_long_lists_are_not_told():
    x = clew.ones(2, 3, requires_grad=True)
    many = [x[:, : i + 1] * 1 for i in range(3)]
    with pytest.raises(RuntimeError) as e:
        clew.stack(many)
    assert "was made by" not in text_of(e.value)  # which of three is to blame is not known


def test_a_check_of_the_library_in_a_module_names_it():
    """Raised by Python code: no operation sees it."""

    class Shuffles(nn.Module):
        def __init__(self):
            super().__init__()
            self.shuffle = nn.PixelShuffle(2)

        def forward(self, x):
            return self.shuffle(x)  # shuffles

    net = nn.Sequential(Shuffles())
    with pytest.raises(RuntimeError) as e:
        net(clew.ones(1, 3, 2, 2))
    tells(e.value, "pixel_shuffle", at("shuffles"), "0.shuffle: PixelShuffle")
    assert text_of(e.value).count("(module") == 1

    class Calls(nn.Module):
        def forward(self, x):
            return F.interpolate(x, size=2, scale_factor=2)  # calls a function

    with pytest.raises(ValueError) as e:
        nn.Sequential(Calls())(clew.ones(1, 1, 2))
    tells(e.value, "scale_factor", at("calls a function"), "0: Calls")


def test_exceptions_of_the_user_stay_as_they_are():
    class Mine(RuntimeError):
        pass

    class Raises(nn.Module):
        def forward(self, error):
            raise error

    net = nn.Sequential(Raises())
    for error in (ValueError("mine"), RuntimeError("mine"), Mine("mine"), KeyError("k")):
        with pytest.raises(type(error)) as e:
            net(error)
        assert e.value is error
        assert e.value.args in (("mine",), ("k",))
        assert not getattr(e.value, "__notes__", [])


# Everywhere else.


def test_in_a_worker_thread():
    net = Net()
    told: list[BaseException] = []

    def work() -> None:
        try:
            loss = net(clew.ones(3, 4)).sum()
            loss.backward()  # first in thread
            loss.backward()
        except RuntimeError as e:
            told.append(e)
        try:
            net(clew.ones(3, 5))
        except RuntimeError as e:
            told.append(e)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    tells(told[0], "second time", at("head"), at("first in thread"))
    tells(told[1], "float32[3, 5]", at("block"), "blocks.0.fc: Linear")


def test_code_without_source_and_without_lines():
    space = {"clew": clew}
    source = "x = clew.ones(2, requires_grad=True)\ny = x.exp()\ny.add_(1)\nz = y.sum()"
    exec(compile(source, "<typed>", "exec"), space)
    with pytest.raises(RuntimeError) as e:
        space["z"].backward()
    tells(e.value, "ExpBackward0", "saved at <typed>:2", "written at <typed>:3", "clone()")


def test_without_provenance_the_plain_message_is_left():
    before = clew._C._enable_provenance(False)
    try:
        y = clew.ones(2, requires_grad=True).exp()
        y.add_(1)
        with pytest.raises(RuntimeError, match=r"modified by an inplace .*version 1") as e:
            y.sum().backward()
        assert ".py" not in text_of(e.value)
        with clew.no_grad():
            z = clew.ones(2, requires_grad=True).sum()
        with pytest.raises(RuntimeError, match="does not require grad"):
            z.backward()
    finally:
        clew._C._enable_provenance(before)


# 14. What diagnoses used to get wrong.


def test_a_value_shared_by_two_heads_is_not_called_carried_over():
    body, heads = nn.Linear(3, 3), [nn.Linear(3, 1) for _ in range(2)]
    z = body(clew.ones(2, 3)).tanh()  # by both heads
    with pytest.raises(RuntimeError, match="second time") as e:
        for head in heads:
            head(z).sum().backward()
    tells(e.value, at("by both heads"), "computed once", "add their results up")
    assert "detach" not in text_of(e.value)


@pytest.mark.parametrize("way", ["grad", "backward"])
def test_missing_create_graph(way):
    w = clew.ones(3, requires_grad=True)
    y = (w**3).sum()
    if way == "grad":
        (g,) = clew.autograd.grad(y, w)  # not recorded: grad
    else:
        y.backward()  # not recorded: backward
        g = w.grad
    with pytest.raises(RuntimeError, match="does not require grad") as e:
        (g**2).sum().backward()
    tells(e.value, "gradients", at(f"not recorded: {way}"), "create_graph=True")
    assert "set requires_grad=True" not in text_of(e.value)
    assert clew.equal(g, 3 * clew.ones(3))


def test_an_unrelated_way_out_is_not_told():
    shown = nn.Linear(3, 1)(clew.ones(2, 3)).detach().numpy()
    other = nn.Linear(3, 1)(clew.ones(2, 3)).sum().item()
    assert shown.size and other is not None
    for loss in ((clew.randn(3) * 2).sum(), (clew.tensor([1.0, 2.0]) * 2).sum()):
        with pytest.raises(RuntimeError, match="does not require grad") as e:
            loss.backward()
        assert "numpy()" not in text_of(e.value).split("compute with")[0]
        assert "item() at" not in text_of(e.value)


def test_a_way_out_is_told_through_names():
    y = Net()(clew.ones(3, 4)).sum()
    numbers = []
    numbers.append(y.item())  # through names
    mean = sum(numbers) / 2
    with pytest.raises(RuntimeError, match="does not require grad") as e:
        clew.tensor(mean).backward()
    tells(e.value, "item()", at("through names"))


def test_statements_on_several_lines_are_shown_whole():
    x = clew.ones(3, requires_grad=True)
    y = (
        x.exp()
        .detach()
    )  # fmt: skip
    with pytest.raises(RuntimeError) as e:
        y.sum().backward()
    tells(e.value, "`y = (x.exp().detach())`")


# The kinds of exceptions are PyTorch's.
@pytest.mark.parametrize(("op", "kind"), [("index_add", RuntimeError), ("index_copy", IndexError)])
def test_index_add_says_which_sizes_it_needs(op, kind):
    with pytest.raises(kind) as e:
        getattr(clew.zeros(3, 4), op)(0, clew.tensor([0, 1]), clew.ones(3, 4))
    tells(e.value, "[2, 4]", "2 indices", "float32[3, 4]")


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: nn.Conv2d(3, 4, kernel=3), "Conv2d.__init__()"),
        (lambda: nn.ConvTranspose1d(3, 4, 3, strides=1), "ConvTranspose1d.__init__()"),
        (lambda: nn.MaxPool2d(3, strid=1), "MaxPool2d.__init__()"),
        (lambda: nn.BatchNorm2d(), "BatchNorm2d.__init__()"),
        (lambda: nn.Dropout(prob=0.1), "Dropout.__init__()"),
    ],
)
def test_arguments_are_told_by_the_public_class(make, name):
    with pytest.raises(TypeError, match=re.escape(name)) as e:
        make()
    assert "_" not in str(e.value).split(".")[0]
