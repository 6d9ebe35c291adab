"""Samples of recurrent layers and cells, and of the operations that they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import E, Op, Rng, S, sigmoid

LSTM, GRU, TANH, RELU = range(4)
GATES = (4, 3, 1, 1)


def step(cell: int, x: Any, h: Any, c: Any, weights: list[Any]) -> Any:
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    a, b = x @ w_ih.T, h @ w_hh.T
    a = a if b_ih is None else a + b_ih
    b = b if b_hh is None else b + b_hh
    if cell == LSTM:
        i, f, g, o = np.split(a + b, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return (h if w_hr is None else h @ w_hr.T), c
    if cell == GRU:
        (ar, az, an), (br, bz, bn) = np.split(a, 3, -1), np.split(b, 3, -1)
        z, n = sigmoid(az + bz), np.tanh(an + sigmoid(ar + br) * bn)
        return (1 - z) * n + z * h, c
    return (np.tanh(a + b) if cell == TANH else np.maximum(a + b, 0)), c


def rnn(
    x: Any,
    tensors: list[Any],
    cell: int,
    layers: int,
    biases: bool,
    both: bool,
    batch_first: bool,
    dropout: float,
    features: int,
    hidden: int,
    proj: int,
    sizes: Any,
) -> Any:
    """Every sequence alone, whatever its length."""
    per, sides = 2 + 2 * biases + (proj > 0), 2 if both else 1
    states = len(tensors) - layers * sides * per
    single = sizes is None and x.ndim == 2
    if single:
        x = x[:, None]
    if batch_first and not single and sizes is None:
        x = x.swapaxes(0, 1)
    if sizes is None:
        rows = [[(t, b) for t in range(x.shape[0])] for b in range(x.shape[1])]
    else:
        first = np.cumsum([0, *sizes])
        rows = [[(first[t] + b,) for t, n in enumerate(sizes) if b < n] for b in range(sizes[0])]
    widths = (proj or hidden, hidden)
    start = [(t[:, None] if single else t) for t in tensors[:states]] or [
        np.zeros((layers * sides, len(rows), w)) for w in widths
    ]
    h_n = np.zeros((layers * sides, len(rows), widths[0]))
    c_n = np.zeros((layers * sides, len(rows), hidden))
    for layer in range(layers):
        out = np.zeros((*x.shape[:-1], sides * widths[0]))
        for side in range(sides):
            k = layer * sides + side
            own = list(tensors[states + k * per : states + (k + 1) * per])
            own = [
                *own[:2],
                *(own[2:4] if biases else (None, None)),
                own[-1] if proj else None,
            ]
            for b, where in enumerate(rows):
                h, c = start[0][k, b], start[-1][k, b]
                for at in where[::-1] if side else where:
                    h, c = step(cell, x[at], h, c, own)
                    out[at][side * widths[0] : (side + 1) * widths[0]] = h
                h_n[k, b], c_n[k, b] = h, c
        x = out
    if single:
        x, h_n, c_n = x[:, 0], h_n[:, 0], c_n[:, 0]
    elif batch_first and sizes is None:
        x = x.swapaxes(0, 1)
    return (x, h_n, c_n) if cell == LSTM else (x, h_n)


def weights(r: Rng, cell: int, features: int, hidden: int, **o: Any) -> list[Any]:
    width, made = o.get("proj") or hidden, []
    for layer in range(o.get("layers", 1)):
        sides = 2 if o.get("both") else 1
        for _ in range(sides):
            columns = features if layer == 0 else width * sides
            made += [
                r.normal((GATES[cell] * hidden, columns), 0.7),
                r.normal((GATES[cell] * hidden, width), 0.7),
            ]
            if o.get("biases", True):
                made += [r.normal((GATES[cell] * hidden,)) for _ in range(2)]
            if o.get("proj"):
                made.append(r.normal((width, hidden)))
    return made


def call(r: Rng, cell: int, shape: Any, hidden: int, states: bool = True, **o: Any) -> S:
    """One call of _rnn; `o` holds what differs from one plain layer."""
    sizes, proj, layers = o.get("sizes"), o.get("proj", 0), o.get("layers", 1)
    both, first = o.get("both", False), o.get("batch_first", False)
    tensors = []
    if states:
        n = layers * (2 if both else 1)
        batch = (sizes[0],) if sizes else () if len(shape) == 2 else (shape[0 if first else 1],)
        tensors = [r.normal((n, *batch, w)) for w in (proj or hidden, hidden)]
        tensors = tensors if cell == LSTM else tensors[:1]
    tensors += weights(r, cell, shape[-1], hidden, **o)
    biases = o.get("biases", True)
    return S(
        r.normal(shape),
        tensors,
        *(cell, layers, biases, both, first, 0.0, shape[-1], hidden, proj, sizes),
    )


def rnn_samples(r: Rng) -> list[S]:
    calls = []
    for cell in (LSTM, GRU, TANH, RELU):
        calls += [
            call(r, cell, (3, 2, 2), 3),
            call(r, cell, (2, 3), 2, False, layers=2, both=True),
            call(r, cell, (2, 3, 2), 2, batch_first=True, biases=False),
            call(r, cell, (6, 2), 2, both=True, sizes=[3, 2, 1]),
            call(r, cell, (4, 2), 2, False, both=True, sizes=[2, 2]),
            call(r, cell, (2, 0, 2), 2),
            call(r, cell, (1, 2, 2), 3),
            call(r, cell, (1, 2), 3, False, both=True),
        ]
    calls += [
        call(r, LSTM, (3, 2, 2), 3, proj=2, layers=2, both=True),
        call(r, LSTM, (5, 2), 3, False, proj=1, sizes=[2, 2, 1]),
        call(r, LSTM, (1, 3, 2), 3, proj=2),
    ]
    return calls + large_samples(r)


def large_samples(r: Rng) -> list[S]:
    """Sizes at which every loop of the products takes part."""
    return [
        call(r, LSTM, (3, 13, 5), 33),
        call(r, GRU, (2, 27, 3), 40, False),
        call(r, TANH, (2, 2, 300), 290),
        call(r, LSTM, (70, 4), 70, proj=33, sizes=[30, 22, 17, 1]),
    ]


def lstm_cell(x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    zero = np.zeros((*x.shape[:-1], w_hh.shape[1]))
    h, c = zero if h is None else h, zero if c is None else c
    return step(LSTM, x, h, c, [w_ih, w_hh, b_ih, b_hh, None])


def cell_of(kind: int) -> Any:
    def run(x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, *relu: bool) -> Any:
        h = np.zeros((*x.shape[:-1], w_hh.shape[1])) if h is None else h
        which = RELU if relu and relu[0] else kind
        return step(which, x, h, None, [w_ih, w_hh, b_ih, b_hh, None])[0]

    return run


def cell_samples(kind: int, *extra: Any) -> Any:
    def samples(r: Rng) -> list[S]:
        calls = []
        for lead, given, biases in (((2,), True, True), ((), True, False), ((3,), False, True)):
            n = 2 if kind == LSTM else 1
            states = [r.normal((*lead, 3)) if given else None for _ in range(n)]
            w = weights(r, kind, 2, 3)
            w = w if biases else [*w[:2], None, None]
            calls.append(S(r.normal((*lead, 2)), *states, *w, *extra))
        return calls

    return samples


def lstm_gates(x: Any, y: Any, b_ih: Any, b_hh: Any, c: Any) -> Any:
    sums = x + y + (0 if b_ih is None else b_ih) + (0 if b_hh is None else b_hh)
    i, f, g, o = np.split(sums, 4, -1)
    i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
    c = f * c + i * g
    return o * np.tanh(c), c, np.concatenate([i, f, g, o], -1)


def gru_gates(x: Any, y: Any, b_ih: Any, b_hh: Any, h: Any) -> Any:
    x = x if b_ih is None else x + b_ih
    y = y if b_hh is None else y + b_hh
    (ar, az, an), (br, bz, s) = np.split(x, 3, -1), np.split(y, 3, -1)
    r, z = sigmoid(ar + br), sigmoid(az + bz)
    n = np.tanh(an + r * s)
    return (1 - z) * n + z * h, np.concatenate([r, z, n, s], -1)


def gru_gates_samples(r: Rng) -> list[S]:
    return [
        S(r.normal((2, 9)), r.normal((2, 9)), r.normal(9), r.normal(9), r.normal((2, 3))),
        S(r.normal((1, 3)), r.normal((1, 3)), None, r.normal(3), r.normal((1, 1))),
        S(r.normal((2, 3)), r.normal((2, 3)), None, None, r.normal((2, 1))),
    ]


def gates_samples(r: Rng) -> list[S]:
    return [
        S(r.normal((2, 12)), r.normal((2, 12)), r.normal(12), r.normal(12), r.normal((2, 3))),
        S(r.normal((1, 4)), r.normal((1, 4)), None, r.normal(4), r.normal((1, 1))),
        S(r.normal((2, 4)), r.normal((2, 4)), None, None, r.normal((2, 1))),
    ]


def layer_samples(r: Rng) -> list[S]:
    w_ih, w_hh, b_ih, b_hh = weights(r, LSTM, 2, 3)
    h, c = r.normal((1, 2, 3)), r.normal((1, 2, 3))
    return [
        S(r.normal((4, 2, 2)), h, c, w_ih, w_hh, b_ih, b_hh, None, LSTM, False, None),
        S(r.normal((3, 2)), h, None, w_ih, w_hh, None, None, None, LSTM, True, [2, 1]),
    ]


def layer_back_samples(r: Rng) -> list[S]:
    w_hh = r.normal((12, 3))
    h, c, out, work = (r.uniform(s) for s in ((1, 2, 3), (1, 2, 3), (4, 2, 3), (120,)))
    return [
        S(r.normal((4, 2, 3)), h, c, h, c, w_hh, None, out, work, LSTM, False, None),
        S(None, h, None, None, None, w_hh, None, out, work, LSTM, True, None),
    ]


def gates_back_samples(r: Rng) -> list[S]:
    c = [r.normal((2, 3)) for _ in range(4)]
    return [S(*c, r.uniform((2, 12))), S(c[0], None, *c[2:], r.uniform((2, 12)))]


_W = [np.ones((12, 2)), np.ones((12, 3)), np.ones(12), np.ones(12)]
_ONE = (0, 1, True, False, False, 0.0, 2, 3, 0)
CELL_ERRORS = [
    E(S(np.ones((1, 1, 2)), None, None, *_W), ValueError, "1D or 2D"),
    E(S(np.ones((2, 3)), None, None, *_W), RuntimeError, "got 3 expected 2"),
    E(S(np.ones((2, 2)), np.ones((2, 4)), None, *_W), RuntimeError, "hidden0.*got 4, expected 3"),
    E(S(np.ones((2, 2)), None, np.ones((1, 3)), *_W), RuntimeError, "hidden1 batch size 1"),
    E(S(np.ones((2, 2)), np.ones((1, 2, 3)), None, *_W), ValueError, "1D or 2D, got 3D"),
]
RNN_ERRORS = [
    E(S(np.ones((2, 2, 3)), _W, *_ONE, None), RuntimeError, "Expected 2, got 3"),
    E(S(np.ones(2), _W, *_ONE, None), ValueError, "2D or 3D"),
    E(S(np.ones((0, 2, 2)), _W, *_ONE, None), RuntimeError, "larger than 0"),
    E(S(np.ones((3, 2)), _W, *_ONE, [1, 2]), RuntimeError, "must not grow"),
    E(S(np.ones((3, 2)), _W, *_ONE, [2, 2]), RuntimeError, "do not fit"),
    E(
        S(np.ones((2, 2, 2)), [np.ones((1, 2, 3)), np.ones((1, 2, 4)), *_W], *_ONE, None),
        RuntimeError,
        r"Expected hidden\[1\] size \(1, 2, 3\), got \[1, 2, 4\]",
    ),
]

OPS = [
    Op("_rnn", rnn, rnn_samples, rtol=4.0, errors=RNN_ERRORS),
    Op("_lstm_cell", lstm_cell, cell_samples(LSTM), errors=CELL_ERRORS),
    Op("_gru_cell", cell_of(GRU), cell_samples(GRU)),
    Op("_rnn_cell", cell_of(TANH), cell_samples(TANH, False)),
    Op("_lstm_gates", lstm_gates, gates_samples),
    Op(
        "_lstm_gates_backward",
        None,
        gates_back_samples,
        grad=False,
        why="its values are tested through the derivatives of _lstm_gates",
    ),
    Op("_gru_gates", gru_gates, gru_gates_samples),
    Op(
        "_gru_gates_backward",
        None,
        lambda r: [S(r.normal((2, 3)), r.normal((2, 3)), r.uniform((2, 12)))],
        grad=False,
        why="its values are tested through the derivatives of _gru_gates",
    ),
    Op("_recurrent", None, layer_samples, grad=False, why="it is tested through _rnn"),
    Op(
        "_recurrent_backward",
        None,
        layer_back_samples,
        grad=False,
        why="its values are tested through the derivatives of _rnn",
    ),
]
