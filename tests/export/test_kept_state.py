"""Models that keep something from run to run: in clew's own file, and in ONNX files."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest

import clew
from clew import nn
from clew.export import ExportError, export, load, save

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", clew.zeros(()))

    def forward(self, x):
        self.count += 1
        return x * self.count


class Assigned(nn.Module):
    """Buffers for which others are assigned, as in `self.mean = 0.9 * self.mean + ...`."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", clew.zeros(3))
        self.register_buffer("steps", clew.tensor(0))

    def forward(self, x):
        before = self.mean
        self.mean = 0.5 * self.mean + 0.5 * x.mean(0)
        self.steps = self.steps + 1
        return x - self.mean, before, self.steps


class Cache(nn.Module):
    """A key-value cache of a fixed length."""

    def __init__(self):
        super().__init__()
        clew.manual_seed(0)
        self.qkv = nn.Linear(4, 12)
        self.register_buffer("k", clew.zeros(1, 6, 4))
        self.register_buffer("v", clew.zeros(1, 6, 4))

    def forward(self, x, at):
        q, k, v = self.qkv(x).chunk(3, -1)
        self.k[:, at] = k
        self.v[:, at] = v
        seen = clew.arange(6) <= at
        scores = (q @ self.k.transpose(1, 2)).masked_fill(~seen, float("-inf"))
        return scores.softmax(-1) @ self.v


class Both(nn.Module):
    """A tensor that a branch writes, and one that reaches a result by way of another."""

    def __init__(self):
        super().__init__()
        self.register_buffer("hidden", clew.zeros(2))
        self.register_buffer("shown", clew.zeros(2))

    def forward(self, x):
        y = x + self.shown
        if x.sum() > 0:
            self.shown += self.hidden
        self.hidden += x
        return y


class Unread(nn.Module):
    """What is written is never read, or is written anew before it is."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", clew.tensor(0))
        self.register_buffer("room", clew.zeros(3))

    def forward(self, x):
        self.count += 1
        self.room.copy_(x)
        self.room *= 2
        return self.room + 1


class Plain(nn.Module):
    """Tensors that are no buffers."""

    def __init__(self):
        super().__init__()
        self.total = clew.zeros(3)
        self.rows = [clew.zeros(3), clew.zeros(3)]

    def forward(self, x):
        self.total += x
        self.rows[1].add_(self.total)
        return self.total * 2, self.rows[1] + 1


X = clew.tensor
CASES = {
    Counter: ([(clew.ones(3) * k,) for k in (1.0, 2.0, 3.0)], {"count"}),
    Assigned: ([(clew.randn(2, 3),) for _ in range(3)], {"mean", "steps"}),
    Cache: ([(clew.randn(1, 1, 4), X([k])) for k in range(4)], {"k", "v"}),
    Both: ([(X([1.0, 2.0]) * s,) for s in (1, -2, 3, 1)], {"hidden", "shown"}),
    Plain: ([(clew.ones(3) * k,) for k in (1.0, 2.0)], {"constant_0", "constant_1"}),
    Unread: ([(clew.ones(3) * k,) for k in (1.0, 2.0)], set()),
}


def results(made):
    return [np.asarray(t.detach()) for t in (made if isinstance(made, tuple) else (made,))]


def agree(expected, got):
    assert len(expected) == len(got)
    for a, b in zip(expected, got):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", CASES)
def test_runs_one_after_the_other(kind):
    inputs, state = CASES[kind]
    model = kind().eval()
    program = export(model, inputs[0])
    assert kind is not Plain or not model.total.any()
    assert not any(b.requires_grad for b in model.buffers())  # though some was written into it
    file = io.BytesIO()
    save(program, file)
    own = load(io.BytesIO(file.getvalue())).module()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        written = clew.onnx.export(model, inputs[0])
    assert set(written.state) == state
    assert sum("keeps nothing between runs" in str(w.message) for w in told) == bool(state)
    data = written.model_proto.SerializeToString()
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    session = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    outputs = [o.name for o in session.get_outputs()]
    read = clew.onnx.load(io.BytesIO(data))
    fed: dict[str, np.ndarray] = {}
    for args in inputs:
        with clew.no_grad():
            expected = results(model(*args))
        agree(expected, results(own(*args)))
        agree(expected, results(read(*args)))
        names = [i.name for i in session.get_inputs()]
        got = dict(zip(outputs, session.run(None, dict(zip(names, map(np.asarray, args))) | fed)))
        agree(expected, list(got.values())[: len(expected)])
        fed = {i: got[o] for i, o in written.state.items()}


def test_names_of_the_outputs_that_keep_the_state():
    with pytest.warns(UserWarning, match=r"forward\(\) changes count.*\(next to count\)"):
        made = clew.onnx.export(Counter(), clew.ones(3), output_names=["y", "next"])
    assert [o.name for o in made.model_proto.graph.output] == ["y", "next"]
    assert made.state == {"count": "next"}


def test_a_buffer_of_another_size_is_refused():
    class Grows(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", clew.zeros(1, 3))

        def forward(self, x):
            self.seen = clew.cat([self.seen, x])
            return self.seen.sum(0)

    with pytest.raises(ExportError, match=r"keeps values from run to run in Grows.seen"):
        export(Grows(), (clew.ones(1, 3),))


def test_damaged_lists_of_buffers():
    with pytest.warns(UserWarning, match="keeps nothing"):
        model = clew.onnx.export(Counter(), clew.ones(3)).model_proto
    (entry,) = [e for e in model.metadata_props if e.key == "clew.state"]
    for text in ('{"count": "nothing"}', '{"nothing": "count_after"}', "[]", '{"count": 1}'):
        entry.value = text
        with pytest.raises(ExportError, match="list of buffers is damaged"):
            clew.onnx.load(io.BytesIO(model.SerializeToString()))
