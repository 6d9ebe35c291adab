"""The functions that PyTorch's recurrent layers call, for programs that call them with weights."""

from __future__ import annotations

from typing import Any

from clew import Tensor
from clew.nn.functional._core import private
from clew.nn.modules._recurrent_weights import GATES
from clew.nn.modules.rnn import _KINDS

_PLAIN = "input hx params has_biases num_layers dropout train bidirectional batch_first".split()
_PACKED = "data batch_sizes hx params has_biases num_layers dropout train bidirectional".split()


def _run(name: str, mode: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    at = 1 if mode == "LSTM" else 2  # a state or a list of weights, unless batch_sizes came first
    packed = "batch_sizes" in kwargs or (len(args) > at and isinstance(args[at], Tensor))
    names = _PACKED if packed else _PLAIN
    given = dict(zip(names, args)) | kwargs
    if len(args) + len(kwargs) != len(names) or set(given) != set(names):
        raise TypeError(f"{name}(): expected the arguments ({', '.join(names)})")
    states = list(given["hx"]) if mode == "LSTM" else [given["hx"]]
    if mode == "LSTM" and len(states) != 2:
        raise RuntimeError(f"{name}: hx must be a pair (h_0, c_0); got {len(states)}")
    weights = list(given["params"])
    if not weights:
        raise RuntimeError(f"{name}: params must be the weights of all layers; got none")
    hidden = weights[0].shape[0] // GATES[mode]
    features = states[0].shape[-1]
    made: tuple[Any, ...] = private("_rnn")(
        given[names[0]],
        [*states, *weights],
        _KINDS[mode],
        given["num_layers"],
        given["has_biases"],
        given["bidirectional"],
        given.get("batch_first", False),
        given["dropout"] if given["train"] else 0.0,
        weights[0].shape[1],
        hidden,
        features if mode == "LSTM" and features != hidden else 0,
        given["batch_sizes"].tolist() if packed else None,
    )
    return tuple(made)


def lstm(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """What nn.LSTM computes: (output, h, c).

    Args:
        args: (input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
            batch_first), or of a PackedSequence (data, batch_sizes, hx, params, has_biases,
            num_layers, dropout, train, bidirectional); params are all layers' weights, hx is a
            pair.
        kwargs: the same by name.
    """
    return _run("lstm", "LSTM", args, kwargs)


def gru(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """What nn.GRU computes: (output, h); the arguments are those of `lstm`, with one state."""
    return _run("gru", "GRU", args, kwargs)


def rnn_tanh(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """What nn.RNN computes: (output, h); the arguments are those of `lstm`, with one state."""
    return _run("rnn_tanh", "RNN_TANH", args, kwargs)


def rnn_relu(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """What nn.RNN with nonlinearity="relu" computes; the arguments are those of `rnn_tanh`."""
    return _run("rnn_relu", "RNN_RELU", args, kwargs)


def lstm_cell(
    input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Any = None, b_hh: Any = None
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM: (h, c), from the pair hx of them."""
    h, c = hx
    made: tuple[Tensor, Tensor] = private("_lstm_cell")(input, h, c, w_ih, w_hh, b_ih, b_hh)
    return made[0], made[1]


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any = None, b_hh: Any = None
) -> Tensor:
    """One step of a GRU."""
    made: Tensor = private("_gru_cell")(input, hx, w_ih, w_hh, b_ih, b_hh)
    return made


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any = None, b_hh: Any = None
) -> Tensor:
    """One step of an Elman network."""
    made: Tensor = private("_rnn_cell")(input, hx, w_ih, w_hh, b_ih, b_hh, False)
    return made


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any = None, b_hh: Any = None
) -> Tensor:
    """One step of an Elman network with relu."""
    made: Tensor = private("_rnn_cell")(input, hx, w_ih, w_hh, b_ih, b_hh, True)
    return made
