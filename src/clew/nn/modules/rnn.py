"""RNN, LSTM, GRU and their cells."""

from __future__ import annotations

import math
import warnings
from typing import Any

import clew
from clew._autocast import autocasting, float32, lower
from clew._provenance import user_level

from .. import init
from ..functional._core import private
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module
from .utils import check_whole

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_rnn = private("_rnn")
_lstm_cell = private("_lstm_cell")
_gru_cell = private("_gru_cell")
_rnn_cell = private("_rnn_cell")
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
# The native operations' numbers of the kinds.
_KINDS = {"LSTM": 0, "GRU": 1, "RNN_TANH": 2, "RNN_RELU": 3}


def _refuse_projection(proj_size: int) -> None:
    if proj_size:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNNBase(Module):
    """What RNN, LSTM and GRU share.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
        input_size: features of the input.
        hidden_size: features of the hidden state.
        num_layers: stacked layers.
        bias: learn biases.
        batch_first: (N, L, features) instead of (L, N, features).
        dropout: dropped part between layers.
        bidirectional: run backwards too.
        proj_size: size of LSTM's projected hidden state, 0 for none.
        device: where the parameters live.
        dtype: what they hold.
    """

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
        if (
            not isinstance(dropout, int | float)
            or isinstance(dropout, bool)
            or not 0 <= dropout <= 1
        ):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout acts between recurrent layers only; with num_layers=1 it has no effect",
                stacklevel=user_level(),
            )
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        check_whole(self, input_size=input_size, num_layers=num_layers, proj_size=proj_size)
        for option, given in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(given, bool):
                raise TypeError(f"{option} should be of type bool, got: {type(given).__name__}")
        if input_size <= 0:
            raise ValueError("input_size must be greater than zero")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in _GATES:
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
        gates = _GATES[mode] * hidden_size
        out_size = proj_size or hidden_size
        self._names: list[list[str]] = []
        for layer in range(num_layers):
            for direction in range(2 if bidirectional else 1):
                width = input_size if layer == 0 else out_size * (2 if bidirectional else 1)
                end = f"_l{layer}" + ("_reverse" if direction else "")
                shapes: dict[str, Any] = {
                    "weight_ih": (gates, width),
                    "weight_hh": (gates, out_size),
                }
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    fresh = clew.empty(shape, device=device, dtype=dtype)
                    setattr(self, name + end, Parameter(fresh))
                self._names.append([name + end for name in shapes])
        self._flat_names = self._flat_weights_names
        self.reset_parameters()

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "_all_weights" in state:  # of a file that PyTorch wrote
            state["_names"] = state.pop("_all_weights")
            state["_flat_names"] = state.pop("_flat_weights_names", None)
            state.pop("_flat_weights", None)
            state.pop("_flat_weight_refs", None)
        super().__setstate__(state)

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._names for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        given: list[Any] | None = self.__dict__.get("_given_weights")
        if given is not None:
            return given
        return [getattr(self, name) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Any]) -> None:
        named = [getattr(self, name, None) for name in self._flat_weights_names]
        if len(weights) != len(named):
            raise ValueError(
                f"{type(self).__name__}._flat_weights: expected {len(named)} weights; got "
                f"{len(weights)}"
            )
        if all(a is b for a, b in zip(weights, named)):
            self.__dict__.pop("_given_weights", None)  # they are looked up by name
        else:
            self.__dict__["_given_weights"] = list(weights)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        given = self.__dict__.get("_given_weights")
        if given is not None and name in self._flat_names:
            given[self._flat_names.index(name)] = value

    @property
    def _all_weights(self) -> list[list[str]]:
        return self._names

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._names]

    def flatten_parameters(self) -> None:
        """Nothing to do: weights need no common memory here."""

    def reset_parameters(self) -> None:
        """Draws all parameters anew, evenly within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for param in self.parameters():
            init.uniform_(param, -bound, bound)

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

    def _weights(self) -> list[Any]:
        # The table is asked directly: __getattr__ would cost more than a short sequence. A
        # parametrized weight is not in it.
        own = self._parameters
        if "_given_weights" in self.__dict__:
            return self._flat_weights
        try:
            return [own[name] for name in self._flat_names]
        except KeyError:
            return self._flat_weights

    def _autocast(self, input: Any, hx: Any, tensors: list[Any]) -> tuple[Any, ...]:
        # PyTorch's kernels on the CPU: GRUs give float32, the others the region's dtype.
        cast = float32 if self.mode == "GRU" else lower
        if tensors[0].dtype is clew.float32:
            input = input.to(clew.float32)
        if isinstance(hx, (tuple, list)):
            hx = cast(*hx)
        elif hx is not None:
            (hx,) = cast(hx)
        return (*cast(input), hx, *cast(*tensors))

    def forward(self, input: Any, hx: Any = None) -> Any:
        sizes = order = back = batch_sizes = None
        if isinstance(input, PackedSequence):
            input, batch_sizes, order, back = input
            sizes = batch_sizes.tolist()
        elif input.is_nested:
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
                states = tuple(s.index_select(1, order) for s in states)
            tensors = [*states, *tensors]
        out, *last = _rnn(
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
            sizes,
        )
        if batch_sizes is not None:
            out = PackedSequence(out, batch_sizes, order, back)
            if back is not None:
                last = [s.index_select(1, back) for s in last]
        return out, (tuple(last) if lstm else last[0])


class RNN(RNNBase):
    """h = tanh(W_ih x + b_ih + W_hh h + b_hh) over a sequence.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        num_layers: stacked layers.
        nonlinearity: "tanh" or "relu".
        bias: learn biases.
        batch_first: (N, L, features) instead of (L, N, features).
        dropout: dropped part between layers.
        bidirectional: run backwards too.
        device: where the parameters live.
        dtype: what they hold.
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
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
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

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        num_layers: stacked layers.
        bias: learn biases.
        batch_first: (N, L, features) instead of (L, N, features).
        dropout: dropped part between layers.
        bidirectional: run backwards too.
        proj_size: size of the projected hidden state, 0 for none.
        device: where the parameters live.
        dtype: what they hold.

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


class GRU(RNNBase):
    """Gated recurrent unit over a sequence.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        num_layers: stacked layers.
        bias: learn biases.
        batch_first: (N, L, features) instead of (L, N, features).
        dropout: dropped part between layers.
        bidirectional: run backwards too.
        device: where the parameters live.
        dtype: what they hold.
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
    """What the cells share.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        bias: learn biases.
        num_chunks: gates.
        device: where the parameters live.
        dtype: what they hold.
    """

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
    """One step of an RNN.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        bias: learn biases.
        nonlinearity: "tanh" or "relu".
        device: where the parameters live.
        dtype: what they hold.
    """

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

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        bias: learn biases.
        device: where the parameters live.
        dtype: what they hold.
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
        return _lstm_cell(input, h, c, *self._weights())


class GRUCell(RNNCellBase):
    """One step of a GRU.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        bias: learn biases.
        device: where the parameters live.
        dtype: what they hold.
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
        return _gru_cell(input, hx, *self._weights())
