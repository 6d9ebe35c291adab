"""RNN, LSTM, GRU and their cells."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

import clew
from clew._base.arguments import need_tensors
from clew._base.autocast import autocasting, float32, lower, region_dtype
from clew._base.provenance import user_level

from .. import init
from ..functional._core import private
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from ._recurrent_weights import GATES, _RecurrentWeights
from .module import Module
from .utils import check_layers, check_whole

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_rnn = private("_rnn")
_lstm_cell = private("_lstm_cell")
_gru_cell = private("_gru_cell")
_rnn_cell = private("_rnn_cell")
# The native operations' numbers of the kinds.
_KINDS = {"LSTM": 0, "GRU": 1, "RNN_TANH": 2, "RNN_RELU": 3}


def _check_layer(
    module: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    bias: bool,
    batch_first: bool,
    dropout: float,
    proj_size: int,
) -> None:
    name = type(module).__name__
    if (
        not isinstance(dropout, int | float | np.floating)
        or isinstance(dropout, bool)
        or not 0 <= dropout <= 1
    ):
        raise ValueError(
            f"{name}: dropout should be a number in range [0, 1] representing the probability "
            f"of an element being zeroed; got {dropout!r}"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout acts between recurrent layers only; with num_layers=1 it has no effect",
            stacklevel=user_level(),
        )
    if not isinstance(hidden_size, int):
        raise TypeError(
            f"{name}: hidden_size should be of type int, got: {type(hidden_size).__name__}"
        )
    check_whole(module, input_size=input_size, num_layers=num_layers, proj_size=proj_size)
    for option, given in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(given, bool):
            raise TypeError(f"{name}: {option} should be of type bool, got: {type(given).__name__}")
    sizes = {"input_size": input_size, "hidden_size": hidden_size, "num_layers": num_layers}
    for size, count in sizes.items():
        if count <= 0:
            raise ValueError(f"{name}: {size} must be greater than zero; got {count}")
    check_layers(name, num_layers)
    if proj_size < 0:
        raise ValueError(
            f"{name}: proj_size should be a positive integer or zero to disable projections; "
            f"got {proj_size}"
        )
    if proj_size >= hidden_size:
        raise ValueError(
            f"{name}: proj_size has to be smaller than hidden_size; "
            f"got {proj_size} and {hidden_size}"
        )


def _refuse_projection(proj_size: int) -> None:
    if proj_size:
        raise ValueError(
            "proj_size argument is only supported for LSTM, not RNN or GRU; "
            f"got proj_size={proj_size}"
        )


def _draw_all(module: Any) -> None:
    bound = 1.0 / math.sqrt(module.hidden_size) if module.hidden_size > 0 else 0
    for param in module.parameters():
        init.uniform_(param, -bound, bound)


class RNNBase(_RecurrentWeights):
    """What RNN, LSTM and GRU share: parameters by layer and direction, and the run over a sequence.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
        input_size: features of each step's input.
        hidden_size: features of the hidden state.
        num_layers: how many are stacked, each reading the former's output.
        bias: learn biases.
        batch_first: (N, T, features) instead of (T, N, features), for input and output, not for
            states.
        dropout: probability of a zero in the outputs between layers, in training.
        bidirectional: run backwards too and give both outputs side by side.
        proj_size: features of LSTM's projected hidden state, less than hidden_size; 0 for none.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (T, N, input_size), (N, T, input_size) with batch_first, (T, input_size), or a
            PackedSequence.
        hx: as in RNN, LSTM or GRU.
        returns: the output, input's shape with dirs * hidden_size (or dirs * proj_size) features,
            dirs = 2 if bidirectional, else 1, and the last states.

    Raises:
        ValueError: for sizes that are not positive, a dropout out of [0, 1] or an input of another
            dtype.

    Example:
        >>> base = clew.nn.RNNBase("GRU", 4, 3, num_layers=2)
        >>> [tuple(w.shape) for w in base.all_weights[0]]
        [(9, 4), (9, 3), (9,), (9,)]
    """

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_layer(
            self, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size
        )
        if mode not in GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._make_weights(device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all parameters anew, evenly within 1 / sqrt(hidden_size)."""
        _draw_all(self)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text

    def _autocast(self, input: Any, hx: Any, tensors: list[Any]) -> tuple[Any, ...]:
        # PyTorch's kernels on the CPU: simple layers and LSTMs give the region's dtype; GRUs, and
        # LSTMs of float16 or with projections, what their state's and the region's promote to.
        state = input if hx is None else hx[0] if isinstance(hx, (tuple, list)) else hx
        by_state = self.mode == "GRU"
        if self.mode == "LSTM":
            by_state = self.proj_size > 0 or input.dtype is clew.float16
        cast = float32 if by_state and state.dtype is not region_dtype() else lower
        if tensors[0].dtype is clew.float32:
            input = input.to(clew.float32)
        if isinstance(hx, (tuple, list)):
            hx = cast(*hx)
        elif hx is not None:
            (hx,) = cast(hx)
        return (*cast(input), hx, *cast(*tensors))

    def _is_ragged(self, input: Any) -> bool:
        try:
            return bool(input.is_nested)
        except AttributeError:
            need_tensors(type(self).__name__, input=input)
            raise

    def forward(self, input: Any, hx: Any = None) -> Any:
        order = back = batch_sizes = None
        if isinstance(input, PackedSequence):
            input, batch_sizes, order, back = input
        elif self._is_ragged(input):
            from clew.nested._modules import recurrent

            return recurrent(self, input, hx)
        tensors = self._weights()
        dtype = tensors[0].dtype
        lstm = self.mode == "LSTM"
        if autocasting():
            input, hx, *tensors = self._autocast(input, hx, tensors)
        elif input.dtype != dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). "
                f"Convert input: input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        if hx is not None:
            states = tuple(hx) if lstm else (hx,)
            if lstm and len(states) != 2:
                raise RuntimeError("LSTM: hx must be a tuple of two tensors (h_0, c_0)")
            if order is not None:
                _check_sequences(self.mode, states, int(order.shape[0]))
                states = tuple(s.index_select(1, order) for s in states)
            tensors = [*states, *tensors]
        out, *last = (_rnn if batch_sizes is None else _packed_rnn)(
            input,
            tensors,
            _KINDS[self.mode],
            self.num_layers,
            self.bias,
            self.bidirectional,
            self.batch_first,
            self.dropout if self.training else 0.0,
            self.input_size,
            self.hidden_size,
            self.proj_size,
            batch_sizes,
        )
        if self.proj_size and autocasting():
            out, last[0] = lower(out, last[0])  # a projection is a product; the cell is none
        if batch_sizes is not None:
            out = PackedSequence(out, batch_sizes, order, back)
            if back is not None:
                last = [s.index_select(1, back) for s in last]
        return out, (tuple(last) if lstm else last[0])


def _packed_rnn(
    input: Any, tensors: Any, cell: int, layers: int, biases: bool, bidirectional: bool,
    batch_first: bool, dropout: float, input_size: int, hidden_size: int, proj_size: int,
    batch_sizes: Any,
) -> Any:  # fmt: skip
    """A recurrent layer over a PackedSequence's elements; exporters record it as one call."""
    return _rnn(
        input, tensors, cell, layers, biases, bidirectional, batch_first, dropout, input_size,
        hidden_size, proj_size, batch_sizes.tolist(),
    )  # fmt: skip


def _check_sequences(mode: str, states: tuple[Any, ...], count: int) -> None:
    """Raises unless each state has one for each packed sequence, which are picked from it."""
    name = mode if mode in ("LSTM", "GRU") else "RNN"
    for s in states:
        if s.dim() != 3 or s.shape[1] != count:
            raise RuntimeError(
                f"{name}: hx must be (layers, {count}, features) for {count} sequences; got shape "
                f"{list(s.shape)}"
            )


class RNN(RNNBase):
    """Elman network over a sequence: h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh).

    Elman 1990; with nonlinearity="relu", relu instead of tanh.

    Args:
        input_size: features of each step's input.
        hidden_size: features of the hidden state.
        num_layers: how many are stacked, each reading the former's output.
        nonlinearity: "tanh" or "relu".
        bias: learn biases.
        batch_first: (N, T, features) instead of (T, N, features), for input and output, not for
            states.
        dropout: probability of a zero in the outputs between layers, in training.
        bidirectional: run backwards too and give both outputs side by side.
        proj_size: must be 0; only an LSTM projects.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (T, N, input_size), (N, T, input_size) with batch_first, (T, input_size), or a
            PackedSequence.
        hx: (num_layers * dirs, N, hidden_size), or without N as input; zeros by default; dirs = 2
            if bidirectional, else 1.
        returns: the output, input's shape with dirs * hidden_size features, and the last states,
            hx's shape.

    Raises:
        ValueError: for sizes that are not positive, a dropout out of [0, 1] or an input of another
            dtype.

    Example:
        >>> out, h = clew.nn.RNN(4, 3, bidirectional=True)(clew.ones(5, 2, 4))
        >>> out.shape, h.shape
        (clew.Size([5, 2, 6]), clew.Size([2, 2, 3]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"RNN: Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        _refuse_projection(proj_size)
        super().__init__(
            "RNN_" + nonlinearity.upper(),
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory over a sequence.

    With a_k = W_ik x + b_ik + W_hk h + b_hk, k = i, f, g, o the rows of weight_ih and so on:
    c' = sigmoid(a_f) c + sigmoid(a_i) tanh(a_g), h' = sigmoid(a_o) tanh(c').
    Hochreiter and Schmidhuber 1997; with proj_size h' is projected once more (Sak et al. 2014,
    arXiv:1402.1128).

    Args:
        input_size: features of each step's input.
        hidden_size: features of the hidden state.
        num_layers: how many are stacked, each reading the former's output.
        bias: learn biases.
        batch_first: (N, T, features) instead of (T, N, features), for input and output, not for
            states.
        dropout: probability of a zero in the outputs between layers, in training.
        bidirectional: run backwards too and give both outputs side by side.
        proj_size: features of the projected hidden state, less than hidden_size; 0 for none.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (T, N, input_size), (N, T, input_size) with batch_first, (T, input_size), or a
            PackedSequence.
        hx: a pair h, (num_layers * dirs, N, H) with H = proj_size or hidden_size, and c,
            (num_layers * dirs, N, hidden_size), or both without N as input; zeros by default; dirs
            = 2 if bidirectional, else 1.
        returns: the output, input's shape with dirs * H features, and the last states, a pair like
            hx.

    Raises:
        ValueError: for sizes that are not positive, a dropout out of [0, 1] or an input of another
            dtype.

    Example:
        >>> out, (h, c) = clew.nn.LSTM(4, 3)(clew.ones(5, 2, 4))
        >>> tuple(out.shape), tuple(h.shape)
        ((5, 2, 3), (1, 2, 3))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )

    def get_expected_cell_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """The shape of the cell state for an input.

        Args:
            input: (T, N, input_size), (N, T, input_size) with batch_first, or packed elements.
            batch_sizes: of a PackedSequence, or None.

        Returns:
            (num_layers * dirs, N, hidden_size).

        Example:
            >>> clew.nn.LSTM(4, 3, proj_size=2).get_expected_cell_size(clew.ones(5, 2, 4), None)
            (1, 2, 3)
        """
        return self._state_size(input, batch_sizes, self.hidden_size)


class GRU(RNNBase):
    """Gated recurrent unit over a sequence.

    With a_k = W_ik x + b_ik and u_k = W_hk h + b_hk, k = r, z, n the rows of weight_ih and so on:
    r = sigmoid(a_r + u_r), z = sigmoid(a_z + u_z), n = tanh(a_n + r u_n), h' = (1 - z) n + z h.
    Cho et al. 2014, arXiv:1406.1078.

    Args:
        input_size: features of each step's input.
        hidden_size: features of the hidden state.
        num_layers: how many are stacked, each reading the former's output.
        bias: learn biases.
        batch_first: (N, T, features) instead of (T, N, features), for input and output, not for
            states.
        dropout: probability of a zero in the outputs between layers, in training.
        bidirectional: run backwards too and give both outputs side by side.
        proj_size: must be 0; only an LSTM projects.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input: (T, N, input_size), (N, T, input_size) with batch_first, (T, input_size), or a
            PackedSequence.
        hx: (num_layers * dirs, N, hidden_size), or without N as input; zeros by default; dirs = 2
            if bidirectional, else 1.
        returns: the output, input's shape with dirs * hidden_size features, and the last states,
            hx's shape.

    Raises:
        ValueError: for sizes that are not positive, a dropout out of [0, 1] or an input of another
            dtype.

    Example:
        >>> out, h = clew.nn.GRU(4, 3, num_layers=2, batch_first=True)(clew.ones(2, 5, 4))
        >>> out.shape, h.shape
        (clew.Size([2, 5, 3]), clew.Size([2, 2, 3]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        _refuse_projection(proj_size)
        super().__init__(
            "GRU",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )


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

    __constants__ = ["input_size", "hidden_size", "bias"]

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
        _draw_all(self)

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

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

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
            raise RuntimeError(
                f"RNNCell: Unknown nonlinearity: {self.nonlinearity}; it must be 'tanh' or 'relu'"
            )
        return _rnn_cell(input, hx, *self._weights(), self.nonlinearity == "relu")


def _in_dtype_of(state: Any, *results: Any) -> tuple[Any, ...]:
    """A cell's results, which autocast made in float32, in the region's dtype if the state has it:
    PyTorch's kernels on the CPU blend the state as it comes with products in the region's dtype.
    """
    if autocasting() and state.dtype is region_dtype():
        return lower(*results)
    return results


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
        return _in_dtype_of(input if c is None else c, *_lstm_cell(input, h, c, *self._weights()))


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
        (h,) = _in_dtype_of(input if hx is None else hx, _gru_cell(input, hx, *self._weights()))
        return h
