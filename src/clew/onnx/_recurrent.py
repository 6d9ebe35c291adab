"""Recurrent layers in ONNX."""

from __future__ import annotations

from typing import Any

import clew
from clew.export._ir import Value
from clew.onnx._errors import OnnxExporterError
from clew.onnx._lower import Builder, lowers
from clew.onnx._shape import rank

# ---- recurrence ----


@lowers("ops._rnn")
def _rnn(b: Builder, a: Any) -> list[str]:
    batched = rank(a.input) == 3
    x = b.name(a.input)
    if not batched:
        x = b.op("Unsqueeze", x, b.ints(1))
    elif a.batch_first:
        x = b.op("Transpose", x, perm=[1, 0, 2])
    x, finals = _layers(b, a, x, batched, "")
    if not batched:
        x = b.op("Squeeze", x, b.ints(1))
        finals = [b.op("Squeeze", f, b.ints(1)) for f in finals]
    elif a.batch_first:
        x = b.op("Transpose", x, perm=[1, 0, 2])
    found = [x, *finals]
    return found + found[-1:] * (len(a.node.outputs) - len(found))


@lowers("nn.packed_rnn")
def _packed(b: Builder, a: Any) -> list[str]:
    """A PackedSequence's elements: they are put where a padded batch has them, and taken out."""
    a.update(zip(_PACKED.split(), a.node.args))
    sizes = b.name(a.batch_sizes)
    steps = b.op("Squeeze", b.op("Shape", sizes), b.ints(0))
    batch = b.op("Gather", sizes, b.scalar(0, clew.int64), axis=0)
    number = b.op("Range", b.scalar(0, clew.int64), batch, b.scalar(1, clew.int64))
    there = b.op("Less", b.op("Unsqueeze", number, b.ints(0)),
                 b.op("Unsqueeze", sizes, b.ints(1)))  # fmt: skip
    lengths = b.op("ReduceSum", b.op("Cast", there, to=_INT32), b.ints(0), keepdims=0)
    place = b.op("Transpose", b.op("NonZero", there), perm=[1, 0])
    shape = b.op("Concat", b.op("Unsqueeze", steps, b.ints(0)), b.op("Unsqueeze", batch, b.ints(0)),
                 b.ints(a.input.sizes[1]), axis=0)  # fmt: skip
    nothing = b.op("Expand", b.scalar(0, a.input.dtype), shape)
    x, finals = _layers(b, a, b.op("ScatterND", nothing, place, b.name(a.input)), True, lengths)
    found = [b.op("GatherND", x, place), *finals]
    return found + found[-1:] * (len(a.node.outputs) - len(found))


def _layers(
    b: Builder, a: Any, x: str, batched: bool, lengths: str
) -> tuple[str, list[str]]:  # fmt: skip
    """The layers over (time, batch, features), and the last states.

    Args:
        batched: the initial states have a batch.
        lengths: of each sequence; empty where all are as long as x.
    """
    kind = a.cell
    if a.dropout or a.proj_size:
        raise OnnxExporterError("onnx.export: recurrent layers with dropout or proj_size")
    tensors = list(a.tensors)
    directions = 2 if a.bidirectional else 1
    each = 4 if a.biases else 2
    lstm = _CELLS[kind] == "LSTM"
    given = len(tensors) - a.layers * directions * each
    states, weights = tensors[:given], tensors[given:]
    ends: list[list[str]] = [[], []]
    for layer in range(a.layers):
        initial = []
        for s in states:
            name = b.name(s) if batched else b.op("Unsqueeze", b.name(s), b.ints(1))
            initial.append(b.op("Slice", name, b.ints(layer * directions),
                                b.ints((layer + 1) * directions), b.ints(0)))  # fmt: skip
        start = layer * directions * each
        parts = [weights[start + d * each : start + (d + 1) * each] for d in range(directions)]
        stack = lambda names: (  # noqa: E731
            b.op("Unsqueeze", names[0], b.ints(0)) if len(names) == 1 else b.op(
                "Concat", *[b.op("Unsqueeze", n, b.ints(0)) for n in names], axis=0))  # fmt: skip
        h = a.hidden_size
        w = stack([_gates(b, b.name(p[0]), kind, h) for p in parts])
        r = stack([_gates(b, b.name(p[1]), kind, h) for p in parts])
        bias = ""
        if a.biases:
            bias = stack([
                b.op("Concat", *[_gates(b, b.name(p[k]), kind, h) for k in (2, 3)], axis=0)
                for p in parts
            ])  # fmt: skip
        more: dict[str, Any] = {"hidden_size": h}
        if directions == 2:
            more["direction"] = "bidirectional"
        if kind in _ACTIVATIONS:
            more["activations"] = [_ACTIVATIONS[kind]] * directions
        if _CELLS[kind] == "GRU":
            more["linear_before_reset"] = 1
        inputs = [x, w, r, bias, lengths, *initial]
        while inputs and not inputs[-1]:
            inputs.pop()
        got = b.op(_CELLS[kind], *inputs, n=3 if lstm else 2, **more)
        # time, direction, batch, hidden -> time, batch, direction * hidden
        x = b.op("Reshape", b.op("Transpose", got[0], perm=[0, 2, 1, 3]),
                 b.ints(0, 0, directions * h))  # fmt: skip
        for k, end in enumerate(got[1:]):
            ends[k].append(end)
    finals = [
        (e[0] if len(e) == 1 else b.op("Concat", *e, axis=0)) for e in ends if e
    ]  # fmt: skip
    return x, finals


_PACKED = """
    input tensors cell layers biases bidirectional batch_first dropout input_size hidden_size
    proj_size batch_sizes
    """
_INT32 = 6  # ONNX's number of the dtype
_CELLS = {0: "LSTM", 1: "GRU", 2: "RNN", 3: "RNN"}
_ACTIVATIONS = {2: "Tanh", 3: "Relu"}


def _gates(b: Builder, name: str, kind: int, hidden: int) -> str:
    """Rows in ONNX's order of gates."""
    order = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2]}.get(_CELLS[kind])
    if order is None:
        return name
    parts = [b.op("Slice", name, b.ints(k * hidden), b.ints((k + 1) * hidden), b.ints(0))
             for k in order]  # fmt: skip
    result: str = b.op("Concat", *parts, axis=0)
    return result


@lowers("ops._lstm_cell", "ops._gru_cell", "ops._rnn_cell")
def _cell(b: Builder, a: Any) -> Any:
    x = b.name(a.input)
    hidden = a.w_hh.sizes[1]
    shape = b.op("Concat", b.op("Slice", b.op("Shape", x), b.ints(0), b.ints(-1)),
                 b.ints(hidden), axis=0)  # fmt: skip
    zeros = lambda: b.op("Expand", b.scalar(0, a.input.dtype), shape)  # noqa: E731
    h = b.name(a.hx) if a.hx is not None else zeros()

    def gate(name: str, w: Value, bias: Any) -> str:
        made = b.op("MatMul", name, b.op("Transpose", b.name(w), perm=[1, 0]))
        return str(made if bias is None else b.op("Add", made, b.name(bias)))

    left, right = gate(x, a.w_ih, a.b_ih), gate(h, a.w_hh, a.b_hh)
    if a.node.op == "ops._rnn_cell":
        return b.op("Relu" if a.relu else "Tanh", b.op("Add", left, right))
    if a.node.op == "ops._gru_cell":
        l3, r3 = (b.op("Split", s, n=3, axis=-1, num_outputs=3) for s in (left, right))
        r = b.op("Sigmoid", b.op("Add", l3[0], r3[0]))
        z = b.op("Sigmoid", b.op("Add", l3[1], r3[1]))
        n = b.op("Tanh", b.op("Add", l3[2], b.op("Mul", r, r3[2])))
        return b.op("Add", n, b.op("Mul", z, b.op("Sub", h, n)))
    c = b.name(a.cx) if a.cx is not None else zeros()
    i, f, g, o = b.op("Split", b.op("Add", left, right), n=4, axis=-1, num_outputs=4)
    c = b.op("Add", b.op("Mul", b.op("Sigmoid", f), c),
             b.op("Mul", b.op("Sigmoid", i), b.op("Tanh", g)))  # fmt: skip
    return [b.op("Mul", b.op("Sigmoid", o), b.op("Tanh", c)), c]
