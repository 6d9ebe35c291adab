"""ao.quantization.quantize_dynamic of recurrent modules, and with weights of 16 bits.

The numbers were computed with PyTorch 2.13, whose draws these seeds give: a sum for each result,
and the first elements.
"""

import pytest

import clew
from clew import nn
from clew.ao.nn.quantized import dynamic
from clew.ao.quantization import quantize_dynamic
from clew.nn.utils.rnn import pack_padded_sequence

SEQUENCES = [
    ("LSTM", "qint8", [1.465, 0.8293, 0.074, 3.3016, 3.7564, 4.2891], [-0.0453, 0.0473, 0.1056]),
    ("GRU", "qint8", [22.4362, -1.6574, 18.0042, 1.6547], [0.3946, 0.0368, 0.0286]),
    (
        "LSTM",
        "float16",
        [1.4786, 0.7695, -0.0499, 3.3224, 3.7147, 4.1841],
        [-0.0445, 0.0472, 0.1061],
    ),
    ("GRU", "float16", [22.5526, -1.7161, 18.082, 1.5652], [0.3945, 0.0397, 0.0311]),
]
CELLS = [
    ("LSTMCell", "qint8", [2.7044, 5.9351], [-0.1369, 0.0386, -0.1211]),
    ("GRUCell", "qint8", [4.4077], [-0.1945, -0.2957, 0.1347]),
    ("RNNCell", "qint8", [2.7077], [-0.2982, -0.6632, 0.2266]),
    ("LSTMCell", "float16", [2.6997, 5.9185], [-0.139, 0.0375, -0.1215]),
    ("GRUCell", "float16", [4.3827], [-0.1939, -0.3009, 0.1342]),
    ("RNNCell", "float16", [2.6774], [-0.301, -0.665, 0.223]),
]


def converted(module, dtype):
    return quantize_dynamic(nn.ModuleList([module]), dtype=getattr(clew, dtype))[0]


def states(given):
    return given if isinstance(given, tuple) else (given,)


@pytest.mark.parametrize("name, dtype, sums, first", SEQUENCES)
def test_sequences(name, dtype, sums, first):
    clew.manual_seed(1)
    small = converted(getattr(nn, name)(5, 7, 2, bidirectional=True), dtype)
    assert type(small) is getattr(dynamic, name)
    clew.manual_seed(2)
    x = clew.randn(4, 6, 5) * 2
    packed = pack_padded_sequence(x, [4, 1, 3, 2, 4, 2], enforce_sorted=False)
    out, last = small(x)
    packed_out, packed_last = small(packed, last)
    found = (out, *states(last), packed_out.data, *states(packed_last))
    assert [t.sum().item() for t in found] == pytest.approx(sums, abs=1e-3)
    assert out[0, 0, :3].tolist() == pytest.approx(first, abs=1e-4)


@pytest.mark.parametrize("name, dtype, sums, first", CELLS)
def test_cells(name, dtype, sums, first):
    clew.manual_seed(1)
    small = converted(getattr(nn, name)(5, 7), dtype)
    clew.manual_seed(2)
    x = clew.randn(6, 5)
    found = states(small(x, small(x)))
    assert [t.sum().item() for t in found] == pytest.approx(sums, abs=1e-3)
    assert found[0][0, :3].tolist() == pytest.approx(first, abs=1e-4)


def test_batches_first_are_the_same():
    clew.manual_seed(0)
    lstm = nn.LSTM(3, 4, batch_first=True)
    x = clew.randn(2, 5, 3)
    small = converted(lstm, "qint8")
    lstm.batch_first = False
    expected, _ = converted(lstm, "qint8")(x.transpose(0, 1))
    assert small(x)[0].tolist() == expected.transpose(0, 1).tolist()


def test_which_modules_are_changed():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.out = nn.LSTM(3, 4), nn.Sequential(nn.Linear(4, 2), nn.ReLU())

    model = Model()
    small = quantize_dynamic(model)
    assert repr(small.rnn) == "DynamicQuantizedLSTM(3, 4)"
    assert type(small.out[0]) is dynamic.Linear and type(model.rnn) is nn.LSTM
    assert type(quantize_dynamic(model, {"rnn"}).out[0]) is nn.Linear
    assert type(quantize_dynamic(model, {"out"}).out[0]) is dynamic.Linear
    assert type(quantize_dynamic(nn.LSTM(3, 4))) is nn.LSTM  # the model keeps its class
    half = quantize_dynamic(model, {nn.Linear}, dtype=clew.float16)
    assert repr(half.out[0]) == (
        "DynamicQuantizedLinear(in_features=4, out_features=2, dtype=clew.float16)"
    )
    x = clew.ones(1, 4)
    weight, bias = model.out[0].weight, model.out[0].bias
    expected = (x @ weight.half().float().t() + bias).tolist()[0]
    assert half.out[0](x).tolist()[0] == pytest.approx(expected, abs=1e-6)
    assert weight.half().float().tolist() != weight.tolist()


@pytest.mark.parametrize(
    "error, message, call",
    [
        (NotImplementedError, "qint8 or float16", lambda: converted(nn.Linear(1, 1), "quint8")),
        (NotImplementedError, "with a bias", lambda: converted(nn.GRU(1, 1, bias=False), "qint8")),
        (NotImplementedError, "proj_size", lambda: converted(nn.LSTM(2, 2, proj_size=1), "qint8")),
        (RuntimeError, "3 dims", lambda: converted(nn.GRU(1, 1), "qint8")(clew.ones(2, 1))),
        (
            RuntimeError,
            "expected 2 states",
            lambda: dynamic.LSTM(1, 1)(clew.ones(2, 3, 1), (clew.ones(1, 3, 1),)),
        ),
    ],
)
def test_refused(error, message, call):
    with pytest.raises(error, match=message):
        call()
