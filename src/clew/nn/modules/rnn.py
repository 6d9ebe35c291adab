"""RNN, LSTM, GRU and their cells."""

from __future__ import annotations

import math
import warnings
from typing import Any

import clew

from .. import functional as F
from .. import init
from ..functional._core import native
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_addmm = native("addmm")
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


# One step of each kind: from the input's projection x, the state and the weights to the new state.
# `parts` are the widths that the gates are split into.


def _lstm_step(x: Any, state: Any, w_hh: Any, b_hh: Any, w_hr: Any, parts: list[int]) -> Any:
    h, c = state
    both, new, out = _addmm(x, h, w_hh).split(parts, 1)
    keep_in, forget = both.sigmoid().chunk(2, 1)
    c = forget * c + keep_in * new.tanh()
    h = out.sigmoid() * c.tanh()
    if w_hr is not None:
        h = h.mm(w_hr)
    return h, c


def _gru_step(x: Any, state: Any, w_hh: Any, b_hh: Any, w_hr: Any, parts: list[int]) -> Any:
    (h,) = state
    g = h.mm(w_hh) if b_hh is None else _addmm(b_hh, h, w_hh)
    x_rz, x_n = x.split(parts, 1)
    h_rz, h_n = g.split(parts, 1)
    reset, update = (x_rz + h_rz).sigmoid().chunk(2, 1)
    new = (x_n + reset * h_n).tanh()
    return (new + update * (h - new),)


def _tanh_step(x: Any, state: Any, w_hh: Any, b_hh: Any, w_hr: Any, parts: list[int]) -> Any:
    return (_addmm(x, state[0], w_hh).tanh(),)


def _relu_step(x: Any, state: Any, w_hh: Any, b_hh: Any, w_hr: Any, parts: list[int]) -> Any:
    return (_addmm(x, state[0], w_hh).relu(),)


def _parts(mode: str, size: int) -> list[int]:
    return [2 * size, size, size] if mode == "LSTM" else [2 * size, size]


_STEPS = {"LSTM": _lstm_step, "GRU": _gru_step, "RNN_TANH": _tanh_step, "RNN_RELU": _relu_step}


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
                stacklevel=3,
            )
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
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
        self.reset_parameters()

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._names for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name) for name in self._flat_weights_names]

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

    # One layer in one direction; `steps` are the input's projections for each time.
    def _run(
        self, steps: Any, state: tuple[Any, ...], weights: dict[str, Any], sizes: Any
    ) -> tuple[list[Any], tuple[Any, ...]]:
        w_hh = weights["weight_hh"].t()
        w_hr = weights["weight_hr"].t() if self.proj_size else None
        b_hh = weights.get("bias_hh")
        step = _STEPS[self.mode]
        parts = _parts(self.mode, self.hidden_size)
        outs = []
        if sizes is None:
            for x in steps:
                state = step(x, state, w_hh, b_hh, w_hr, parts)
                outs.append(state[0])
            return outs, state
        # Packed: the batch shrinks; the states of sequences that end are kept aside.
        ended: list[tuple[Any, ...]] = []
        now = sizes[0]
        for x, n in zip(steps, sizes, strict=True):
            if n < now:
                ended.append(tuple(s[n:] for s in state))
                state = tuple(s[:n] for s in state)
                now = n
            state = step(x, state, w_hh, b_hh, w_hr, parts)
            outs.append(state[0])
        if ended:
            ended.append(state)
            state = tuple(
                clew.cat([part[k] for part in reversed(ended)]) for k in range(len(state))
            )
        return outs, state

    def _run_back(
        self, steps: Any, state: tuple[Any, ...], weights: dict[str, Any], sizes: Any
    ) -> tuple[list[Any], tuple[Any, ...]]:
        if sizes is None:
            outs, state = self._run(steps[::-1], state, weights, None)
            return outs[::-1], state
        # Packed and backwards: the batch grows by sequences that start from the first state.
        w_hh = weights["weight_hh"].t()
        w_hr = weights["weight_hr"].t() if self.proj_size else None
        b_hh = weights.get("bias_hh")
        step = _STEPS[self.mode]
        parts = _parts(self.mode, self.hidden_size)
        first = state
        now = sizes[-1]
        state = tuple(s[:now] for s in first)
        outs = []
        for x, n in zip(steps[::-1], sizes[::-1], strict=True):
            if n > now:
                state = tuple(clew.cat([s, f[now:n]]) for s, f in zip(state, first, strict=True))
                now = n
            state = step(x, state, w_hh, b_hh, w_hr, parts)
            outs.append(state[0])
        return outs[::-1], state

    def _layers(self, x: Any, state: tuple[Any, ...], sizes: Any) -> tuple[Any, tuple[Any, ...]]:
        directions = 2 if self.bidirectional else 1
        joint_bias = self.mode != "GRU"
        finals = []
        for layer in range(self.num_layers):
            if layer and self.dropout > 0.0 and self.training:
                x = F.dropout(x, self.dropout, True)
            sides = []
            for direction in range(directions):
                k = layer * directions + direction
                weights = {}
                for name in self._names[k]:
                    param = self._parameters.get(name)
                    if param is None:
                        param = getattr(self, name)
                    weights[name.split("_l", 1)[0]] = param
                bias = weights.get("bias_ih")
                if bias is not None and joint_bias:
                    bias = bias + weights["bias_hh"]
                projected = F.linear(x, weights["weight_ih"], bias)
                steps = projected.unbind(0) if sizes is None else projected.split(sizes)
                start = tuple(s[k] for s in state)
                run = self._run_back if direction else self._run
                outs, final = run(steps, start, weights, sizes)
                sides.append(clew.stack(list(outs)) if sizes is None else clew.cat(list(outs)))
                finals.append(final)
            x = sides[0] if directions == 1 else clew.cat(sides, -1)
        return x, tuple(clew.stack([f[k] for f in finals]) for k in range(len(state)))

    def _check(self, input: Any, sizes: Any) -> None:
        if input.dtype != self._parameters_dtype() and not _autocast():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype "
                f"({self._parameters_dtype()}). Convert input: "
                f"input.to({self._parameters_dtype()}), "
                f"or convert model: model.to({input.dtype})"
            )
        want = 2 if sizes is not None else 3
        if input.dim() != want:
            raise RuntimeError(f"input must have {want} dimensions, got {input.dim()}")
        if self.input_size != input.shape[-1]:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, "
                f"got {input.shape[-1]}"
            )

    def _parameters_dtype(self) -> Any:
        return getattr(self, self._names[0][0]).dtype

    def _shape(self, batch: int, size: int) -> tuple[int, int, int]:
        return (self.num_layers * (2 if self.bidirectional else 1), batch, size)

    def _check_state(self, given: Any, want: tuple[int, ...], name: str) -> None:
        if tuple(given.shape) != want:
            raise RuntimeError(f"Expected {name} {want}, got {list(given.shape)}")

    def forward(self, input: Any, hx: Any = None) -> Any:
        lstm = self.mode == "LSTM"
        packed = isinstance(input, PackedSequence)
        sizes = None
        single = False
        order = back = None
        if packed:
            x, batch_sizes, order, back = input
            sizes = batch_sizes.tolist()
            batch = sizes[0]
        else:
            if input.dim() not in (2, 3):
                raise ValueError(
                    f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D "
                    "instead"
                )
            single = input.dim() == 2
            x = input.unsqueeze(1) if single else input
            if self.batch_first and not single:
                x = x.transpose(0, 1)
            batch = x.shape[1]
        self._check(x, sizes)
        if not packed and x.shape[0] == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        out_size = self.proj_size or self.hidden_size
        wanted = [("hidden[0] size" if lstm else "hidden size", out_size)]
        if lstm:
            wanted.append(("hidden[1] size", self.hidden_size))
        if hx is None:
            state = tuple(
                clew.zeros(self._shape(batch, size), dtype=x.dtype, device=x.device)
                for _, size in wanted
            )
        else:
            state = tuple(hx) if lstm else (hx,)
            if lstm and len(state) != 2:
                raise RuntimeError("LSTM: hx must be a tuple of two tensors (h_0, c_0)")
            dims = 2 if single else 3
            for given in state:
                if given.dim() != dims:
                    raise RuntimeError(
                        f"For {'unbatched 2-D' if single else 'batched 3-D'} input, hx should "
                        "also be "
                        f"{dims}-D but got {given.dim()}-D tensor"
                    )
            if single:
                state = tuple(given.unsqueeze(1) for given in state)
            if order is not None:
                state = tuple(given.index_select(1, order) for given in state)
            for given, (name, size) in zip(state, wanted, strict=True):
                self._check_state(given, self._shape(batch, size), name)
        out, state = self._layers(x, state, sizes)
        if packed:
            out = PackedSequence(out, batch_sizes, order, back)
            if back is not None:
                state = tuple(s.index_select(1, back) for s in state)
        else:
            if single:
                out = out.squeeze(1)
                state = tuple(s.squeeze(1) for s in state)
            elif self.batch_first:
                out = out.transpose(0, 1)
        return out, (state if lstm else state[0])


def _autocast() -> bool:
    check = getattr(clew, "is_autocast_enabled", None)
    return bool(check and check("cpu"))


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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            self_nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self_nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self_nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{self_nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__("RNN_" + self_nonlinearity.upper(), *args, **kwargs)
        self.nonlinearity = self_nonlinearity


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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


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

    def _prepare(self, input: Any, states: Any) -> tuple[Any, Any, bool]:
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.shape[-1]} expected "
                f"{self.input_size}"
            )
        single = input.dim() == 1
        x = input.unsqueeze(0) if single else input
        if states[0] is None:
            zero = clew.zeros(x.shape[0], self.hidden_size, dtype=x.dtype, device=x.device)
            return x, (zero,) * len(states), single
        for h in states:
            if h.dim() not in (1, 2):
                raise ValueError(f"{name}: Expected hidden to be 1D or 2D, got {h.dim()}D instead")
        rows = tuple(h.unsqueeze(0) for h in states) if single else tuple(states)
        for h in rows:
            if tuple(h.shape) != (x.shape[0], self.hidden_size):
                raise RuntimeError(
                    f"{name}: hidden must have shape {(x.shape[0], self.hidden_size)}; "
                    f"got {tuple(h.shape)}"
                )
        return x, rows, single

    def _step(self, mode: str, x: Any, state: Any) -> Any:
        bias = self.bias_ih
        if bias is not None and mode != "GRU":
            bias = bias + self.bias_hh
        projected = F.linear(x, self.weight_ih, bias)
        parts = _parts(mode, self.hidden_size)
        return _STEPS[mode](projected, state, self.weight_hh.t(), self.bias_hh, None, parts)


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
        x, state, single = self._prepare(input, (hx,))
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        (h,) = self._step("RNN_" + self.nonlinearity.upper(), x, state)
        return h.squeeze(0) if single else h


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
        x, state, single = self._prepare(input, (None, None) if hx is None else tuple(hx))
        h, c = self._step("LSTM", x, state)
        return (h.squeeze(0), c.squeeze(0)) if single else (h, c)


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
        x, state, single = self._prepare(input, (hx,))
        (h,) = self._step("GRU", x, state)
        return h.squeeze(0) if single else h
