"""Single steps of recurrent layers, as clew.nn.modules.rnn offers them."""

from __future__ import annotations

import math
from typing import Any

import clew

from .. import init
from ..functional._core import private
from ..parameter import Parameter
from .module import Module

_lstm_cell = private("_lstm_cell")

_gru_cell = private("_gru_cell")

_rnn_cell = private("_rnn_cell")


class RNNCellBase(Module):
    """What RNNCell, LSTMCell and GRUCell share: their parameters.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        bias: learn biases.
        num_chunks: gates, each of hidden_size rows.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        weight_ih: (num_chunks * hidden_size, input_size).
        weight_hh: (num_chunks * hidden_size, hidden_size).
        bias_ih, bias_hh: (num_chunks * hidden_size), or None without bias.

    Example:
        >>> cell = clew.nn.RNNCellBase(4, 3, bias=True, num_chunks=2)
        >>> cell.weight_ih.shape, cell.bias_ih.shape
        (clew.Size([6, 4]), clew.Size([6]))
    """

    __module__ = "clew.nn.modules.rnn"

    weight_ih: Any
    weight_hh: Any
    bias_ih: Any
    bias_hh: Any

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(clew.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(clew.empty((rows, hidden_size), device=device, dtype=dtype))
        if bias:
            self.bias_ih = Parameter(clew.empty(rows, device=device, dtype=dtype))
            self.bias_hh = Parameter(clew.empty(rows, device=device, dtype=dtype))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all parameters anew, evenly within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for param in self.parameters():
            init.uniform_(param, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _weights(self) -> tuple[Any, Any, Any, Any]:
        own = self._parameters
        try:
            return own["weight_ih"], own["weight_hh"], own["bias_ih"], own["bias_hh"]
        except KeyError:  # parametrized
            return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh


class RNNCell(RNNCellBase):
    """One step of an RNN: h' = tanh(W_ih x + b_ih + W_hh h + b_hh).

    With nonlinearity="relu", relu instead of tanh.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        bias: learn biases.
        nonlinearity: "tanh" or "relu".
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (N, input_size) or (input_size).
        hx: (N, hidden_size) or (hidden_size); zeros by default.
        returns: the next state, hx's shape.

    Raises:
        RuntimeError: in forward, for another nonlinearity.

    Example:
        >>> cell, h = clew.nn.RNNCell(4, 3), clew.zeros(2, 3)
        >>> for x in clew.ones(5, 2, 4):
        ...     h = cell(x, h)
        >>> h.shape
        clew.Size([2, 3])
    """

    __module__ = "clew.nn.modules.rnn"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return _rnn_cell(input, hx, *self._weights(), self.nonlinearity == "relu")


class LSTMCell(RNNCellBase):
    """One step of an LSTM.

    With a_k = W_ik x + b_ik + W_hk h + b_hk, k = i, f, g, o the rows of weight_ih and so on:
    c' = sigmoid(a_f) c + sigmoid(a_i) tanh(a_g), h' = sigmoid(a_o) tanh(c').
    Hochreiter and Schmidhuber 1997.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        bias: learn biases.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (N, input_size) or (input_size).
        hx: a pair (h, c), each (N, hidden_size) or (hidden_size); zeros by default.
        returns: the next pair (h, c).

    Example:
        >>> h, c = clew.nn.LSTMCell(4, 3)(clew.ones(2, 4))
        >>> h.shape, c.shape
        (clew.Size([2, 3]), clew.Size([2, 3]))
    """

    __module__ = "clew.nn.modules.rnn"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        h, c = (None, None) if hx is None else hx
        return _lstm_cell(input, h, c, *self._weights())


class GRUCell(RNNCellBase):
    """One step of a GRU.

    With a_k = W_ik x + b_ik and u_k = W_hk h + b_hk, k = r, z, n the rows of weight_ih and so on:
    r = sigmoid(a_r + u_r), z = sigmoid(a_z + u_z), n = tanh(a_n + r u_n), h' = (1 - z) n + z h.
    Cho et al. 2014, arXiv:1406.1078.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        bias: learn biases.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (N, input_size) or (input_size).
        hx: (N, hidden_size) or (hidden_size); zeros by default.
        returns: the next state, hx's shape.

    Example:
        >>> clew.nn.GRUCell(4, 3)(clew.ones(2, 4), clew.zeros(2, 3)).shape
        clew.Size([2, 3])
    """

    __module__ = "clew.nn.modules.rnn"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return _gru_cell(input, hx, *self._weights())
