"""Module.summary(): layers, shapes, parameters, FLOPs and activation bytes, by hand."""

from __future__ import annotations

import pytest

import clew
from clew import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.out((q @ k.transpose(-1, -2)).softmax(-1) @ v)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.attn = nn.LayerNorm(width), Attention(width)

    def forward(self, x):
        return x + self.attn(self.norm(x))


class Net(nn.Module):
    def __init__(self, width=8, depth=4):
        super().__init__()
        self.embed = nn.Embedding(11, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, 11)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


TOKENS = clew.zeros(2, 5, dtype=clew.int64)


def test_a_small_transformer_by_hand():
    w, n, t = 8, 2, 5
    model = Net(w)
    table = model.summary(TOKENS)
    attention = 4 * w * w + 4 * w
    assert table["embed"].parameters == 11 * w
    assert table["blocks.2.attn"].parameters == attention
    assert table["blocks"].parameters == 4 * (attention + 2 * w)
    assert table["head"].parameters == 11 * w + 11
    assert table.parameters == table.trainable == sum(p.numel() for p in model.parameters())
    assert table[""].parameters == table.parameters

    assert table["blocks.1.attn.qkv"].shapes == ((n, t, 3 * w),)
    assert table["head"].shapes == table[""].shapes == ((n, t, 11),)
    assert table["blocks"].calls == 0 and table["blocks.0"].calls == 1

    assert table["head"].flops == 2 * n * t * w * 11
    assert table["blocks.0.attn.qkv"].flops == 2 * n * t * w * 3 * w
    products = 2 * n * t * w * 4 * w + 2 * (2 * n * t * t * w)
    assert table["blocks.0.attn"].flops == products + 5 * n * t * t  # and the softmax
    assert table.flops == table[""].flops == sum(c.flops for c in table.top.children)
    assert table.unknown == 0

    row = n * t * w * 4
    assert table["head"].held == row  # its input
    assert table["blocks.1.attn.out"].held == row
    # The norm keeps its input, and mean and deviation of each row.
    assert table["blocks.1.norm"].held == row + 2 * n * t * 4
    assert table.activation_bytes == table[""].held == sum(c.held for c in table.top.children)


def test_a_convolution_by_hand():
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(256, 2)
    )
    table = model.summary(clew.ones(2, 3, 8, 8))
    image = 2 * 4 * 8 * 8
    assert table["0"].shapes == ((2, 4, 8, 8),)
    assert (table["0"].parameters, table["0"].flops) == (3 * 4 * 9 + 4, 2 * image * 27)
    assert table["0"].held == 2 * 3 * 8 * 8 * 4  # the image
    assert table["2"].held == image * 4  # the result; the same memory serves as 4's input
    assert table["3"].shapes == ((2, 256),) and table["3"].held == 0
    assert table["4"].held == 0
    assert table.buffer_bytes == 4 * 4 * 2 + 8


def test_the_text():
    model = Net()
    table = model.summary(TOKENS)
    text = str(table)
    lines = text.split("\n")
    assert all(len(line) <= 100 for line in lines)
    assert "blocks.0-3 x4" in text and "blocks.*.attn.qkv x4" in text and "blocks.1" not in text
    row = next(line for line in lines if "blocks.0-3 x4" in line).split()
    assert f"{table['blocks'].parameters:,}" in row and "Block" in row
    assert f"parameters: {table.parameters:,} (" in text
    plain = model.summary(TOKENS, fold=False)
    assert "blocks.2.attn.qkv" in str(plain) and "x4" not in str(plain)
    shallow = str(model.summary(TOKENS, depth=1))
    assert "embed" in shallow and "blocks.0" not in shallow
    assert "embed" not in str(model.summary(TOKENS, depth=0))
    for wrong in (-1, 1.5, True):
        with pytest.raises(ValueError, match="summary: depth"):
            model.summary(TOKENS, depth=wrong)


def test_shared_parameters_count_once():
    model = Net()
    model.head.weight = model.embed.weight
    table = model.summary(TOKENS)
    assert table.parameters == sum(p.numel() for p in model.parameters())
    assert table[""].parameters == table.parameters
    assert table["embed"].parameters == 88 and table["head"].parameters == 99


def test_equal_layers_that_share_their_weights():
    layer = nn.Linear(4, 4)
    table = nn.Sequential(layer, layer, layer).summary(clew.ones(2, 4))
    assert table.parameters == 20
    row = next(line for line in str(table).split("\n") if "Linear" in line)
    assert "20" in row.split() and table["0"].calls == 3


def test_frozen_layers_still_cost_their_flops():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    whole = model.summary(clew.ones(3, 4))
    for parameter in model[0].parameters():
        parameter.requires_grad_(False)
    part = model.summary(clew.ones(3, 4))
    assert part.flops == whole.flops and part["0"].flops == 2 * 3 * 4 * 8
    assert (part.trainable, part.parameters - part.trainable) == (9, 40)
    assert part["0"].held == part["1"].held == 0  # nothing is kept of what is frozen
    assert part["2"].held == 3 * 8 * 4
    assert not model[0].weight.requires_grad and model[2].weight.requires_grad
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    none = model.summary(clew.ones(3, 4))
    assert none.flops == whole.flops and none.activation_bytes == 0 and none.graph is None


def test_what_runs_inside_no_grad_is_said_to_be_unknown():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x):
            with clew.no_grad():
                x = self.a(x)
            return self.b(x)

    table = Half().summary(clew.ones(1, 2))
    assert table["a"].calls == 1 and table["a"].count == 0
    assert table.flops == table["b"].flops == 8
    assert "not recorded (inside no_grad()?): a" in str(table)
    assert next(row for row in str(table).split("\n") if row.startswith("  a")).split()[-3] == "-"


def test_nothing_is_changed():
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))
    frozen = model[0].weight.requires_grad_(False)
    model[3].eval()
    seen = []
    handle = model[1].register_forward_hook(lambda *args: seen.append(1))
    state = {name: value.clone() for name, value in model.state_dict().items()}
    mean = model[1].running_mean
    random = clew.get_rng_state()
    model.summary(clew.randn(6, 4))
    model.summary(clew.ones(6, 4))
    # randn above drew 24 numbers; the dropout inside drew none that count.
    after = clew.get_rng_state()
    clew.set_rng_state(random)
    clew.randn(6, 4)
    assert clew.equal(clew.get_rng_state(), after)
    assert all(clew.equal(value, state[name]) for name, value in model.state_dict().items())
    assert model[1].running_mean is mean
    assert all(p.grad is None for p in model.parameters())
    assert [m.training for m in model] == [True, True, True, False]
    assert not frozen.requires_grad
    assert len(seen) == 4  # two runs each, the user's hook included
    handle.remove()
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    with clew.no_grad():
        assert model.summary(clew.ones(6, 4)).activation_bytes > 0
        assert not clew.is_grad_enabled()


def test_buffers_that_are_replaced_come_back():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", clew.zeros(1))
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            self.seen = self.seen + 1
            return self.fc(x)

    model = Counting()
    before = model.seen
    model.summary(clew.ones(1, 2))
    assert model.seen is before and before.item() == 0


def test_an_error_inside_restores_everything():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(2)

        def forward(self, x):
            self.norm(x)
            raise KeyError("inside")

    model = Broken()
    with pytest.raises(KeyError, match="inside"):
        model.summary(clew.randn(4, 2))
    assert model.norm.running_mean.tolist() == [0, 0]
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_evaluation_mode_keeps_less():
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8))
    train = model.summary(clew.ones(4, 8))
    model.eval()
    assert model.summary(clew.ones(4, 8)).activation_bytes < train.activation_bytes


def test_the_meta_device():
    model = Net().to("meta")
    table = model.summary(TOKENS.to("meta"))
    real = Net().summary(TOKENS)
    assert table.flops == real.flops and table.parameters == real.parameters
    assert table["blocks.0"].shapes == real["blocks.0"].shapes
    assert table.activation_bytes == real.activation_bytes


def test_keywords_several_outputs_and_uncalled_layers():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.spare = nn.Linear(2, 3), nn.Linear(5, 5)

        def forward(self, x, *, scale):
            y = self.a(x) * scale
            self.a(x)
            return {"y": y, "pair": (y.sum(), None)}

    table = Odd().summary(clew.ones(4, 2), scale=2.0)
    assert table[""].shapes == ((4, 3), ())
    assert table["a"].calls == 2 and "(4, 3) x2" in str(table)
    assert table["spare"].calls == 0 and "(not called)" in str(table)
    assert table.parameters == 9 + 30
    with pytest.raises(KeyError, match="there is no module 'b' in Odd"):
        table["b"]


def test_a_module_without_parameters():
    table = nn.Sequential(nn.ReLU(), nn.Flatten()).summary(clew.ones(2, 3, 4))
    assert table.parameters == 0 and table.flops == 24 and table["0"].flops == 24
    assert table.graph is None and table.activation_bytes == 0


def test_inputs_that_are_written_into():
    class Scaling(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)
            self.fc.weight.requires_grad_(False)

        def forward(self, x):
            return self.fc(x.mul_(2))

    x = clew.ones(2, 3)
    table = Scaling().summary(x)
    assert table["fc"].flops == 2 * 2 * 3 * 3


def test_a_recurrent_layer():
    table = nn.LSTM(4, 6).summary(clew.ones(5, 2, 4))
    assert table[""].shapes == ((5, 2, 6), (1, 2, 6), (1, 2, 6))
    assert table.parameters == 4 * 6 * (4 + 6) + 2 * 4 * 6
    assert table.flops >= 2 * 5 * 2 * (4 * 24 + 6 * 24)


def test_parts_of_a_module_may_have_the_name():
    # PyTorch has no such method, and programs written for it use the name.
    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.summary = nn.Linear(2, 3)

        def forward(self, x):
            return self.summary(x)

    head = Head()
    assert isinstance(head.summary, nn.Linear) and head(clew.ones(1, 2)).shape == (1, 3)
    assert nn.Module.summary(head, clew.ones(1, 2)).parameters == 9
    parts = {
        "register_parameter": nn.Parameter(clew.ones(1)),
        "register_buffer": clew.ones(1),
        "add_module": nn.Identity(),
    }
    for register, part in parts.items():
        module = nn.Module()
        getattr(module, register)("summary", part)
        assert module.summary is part
        for again in set(parts) - {register}:
            with pytest.raises(KeyError, match="attribute 'summary' already exists"):
                getattr(module, again)("summary", parts[again])
    assert nn.ModuleDict({"summary": nn.ReLU()})["summary"](-clew.ones(1)).item() == 0
    plain = nn.Module()
    plain.summary = "text"
    assert plain.summary == "text"
    with pytest.raises(KeyError, match="attribute 'forward' already exists"):
        nn.Module().register_parameter("forward", None)
