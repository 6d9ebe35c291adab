"""Recurrent modules with weights of fewer bits."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor, nn
from clew.ao.nn.quantized._linear import Linear
from clew.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "RNNCell"]

_GATES = {"LSTM": 4, "GRU": 3, "LSTMCell": 4, "GRUCell": 3, "RNNCell": 1}


def _lstm(inner: Tensor, outer: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    i, f, g, o = (inner + outer).chunk(4, 1)
    cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def _gru(inner: Tensor, outer: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    (ir, iz, inn), (hr, hz, hn) = inner.chunk(3, 1), outer.chunk(3, 1)
    new = (inn + (hr + ir).sigmoid() * hn).tanh()
    return ((state[0] - new) * (hz + iz).sigmoid() + new,)


def _tanh(inner: Tensor, outer: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return ((inner + outer).tanh(),)


def _relu(inner: Tensor, outer: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return ((inner + outer).relu(),)


def _need_float(name: str, mod: Any, kind: Any, dtype: Any) -> None:
    if type(mod) is not kind:
        raise TypeError(f"{name}.from_float: expected {kind.__name__}; got {type(mod).__name__}")
    if not mod.bias:
        raise NotImplementedError(f"{name}.from_float: only modules with a bias are converted")
    if dtype not in (clew.qint8, clew.float16):
        raise NotImplementedError(f"{name}: dtype must be qint8 or float16; got {dtype}")


class _Recurrent(nn.Module):
    """An LSTM or a GRU whose maps are of the kind of `quantized.dynamic.Linear`.

    Inputs of a layer are rounded all at once, states at each step.
    """

    _float: Any
    _step: Any
    _states = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if not bias:
            raise NotImplementedError(f"{type(self).__name__}: bias must be True")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.dtype = bidirectional, dtype or clew.qint8
        self.training = False
        gates = _GATES[self._float.__name__] * hidden_size
        ways = 2 if bidirectional else 1
        self._maps = nn.ModuleList()
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size * ways
            for _ in range(ways):
                self._maps.append(Linear(width, gates, dtype=self.dtype))
                self._maps.append(Linear(hidden_size, gates, dtype=self.dtype))

    def _get_name(self) -> str:
        return f"DynamicQuantized{self._float.__name__}"

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (("num_layers", 1), ("batch_first", False), ("dropout", 0)):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text + (", bidirectional=True" if self.bidirectional else "")

    def _run(
        self, maps: Any, x: Tensor, sizes: list[int], state: tuple[Tensor, ...], back: bool
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """One way through one layer: (outputs, last states).

        Args:
            maps: of the input and of the state.
            x: (all steps' rows, features).
            sizes: how many rows each step has; they do not rise.
            state: one of all rows for each of the states.
            back: from the last step to the first.
        """
        steps = list(maps[0](x).split(sizes))
        outputs: list[Any] = [None] * len(steps)
        # Rows that are not among a step's: their first states on the way back, else their last.
        now = tuple(s[: sizes[-1]] for s in state) if back else state
        ended: list[tuple[Tensor, ...]] = []
        for t in reversed(range(len(steps))) if back else range(len(steps)):
            here, n = int(now[0].shape[0]), sizes[t]
            if back and n > here:
                now = tuple(clew.cat([s, first[here:n]]) for s, first in zip(now, state))
            elif n < here:
                ended.append(tuple(s[n:] for s in now))
                now = tuple(s[:n] for s in now)
            now = type(self)._step(steps[t], maps[1](now[0]), now)
            outputs[t] = now[0]
        last = tuple(clew.cat([s, *rest]) for s, *rest in zip(now, *reversed(ended)))
        return clew.cat(outputs), last

    def _layers(
        self, x: Tensor, sizes: list[int], state: tuple[Tensor, ...]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        ways, lasts = (2 if self.bidirectional else 1), []
        for layer in range(self.num_layers):
            outputs = []
            for way in range(ways):
                k = layer * ways + way
                maps = (self._maps[2 * k], self._maps[2 * k + 1])
                out, last = self._run(maps, x, sizes, tuple(s[k] for s in state), way == 1)
                outputs.append(out)
                lasts.append(last)
            x = outputs[0] if ways == 1 else clew.cat(outputs, 1)
            if layer + 1 < self.num_layers and self.dropout:
                x = nn.functional.dropout(x, self.dropout, self.training)
        return x, tuple(clew.stack(part) for part in zip(*lasts))

    def _first(self, hx: Any, rows: int, x: Tensor) -> tuple[Tensor, ...]:
        count = self.num_layers * (2 if self.bidirectional else 1)
        shape = (count, rows, self.hidden_size)
        if hx is None:
            return tuple(clew.zeros(shape, dtype=x.dtype) for _ in range(self._states))
        state = tuple(hx) if self._states > 1 else (hx,)
        if len(state) != self._states or any(tuple(s.shape) != shape for s in state):
            raise RuntimeError(
                f"{self._get_name()}: expected {self._states} states of shape {list(shape)}; got "
                f"{[list(s.shape) for s in state]}"
            )
        return state

    def _given(self, state: tuple[Tensor, ...]) -> Any:
        return state if self._states > 1 else state[0]

    def forward(self, input: Any, hx: Any = None) -> Any:
        if isinstance(input, PackedSequence):
            data, order = input.data, input.sorted_indices
            sizes = input.batch_sizes.tolist()
            state = self._first(hx, sizes[0], data)
            if order is not None:
                state = tuple(s.index_select(1, order) for s in state)
            out, last = self._layers(data, sizes, state)
            if input.unsorted_indices is not None:
                last = tuple(s.index_select(1, input.unsorted_indices) for s in last)
            made = PackedSequence(out, input.batch_sizes, order, input.unsorted_indices)
            return made, self._given(last)
        if input.dim() != 3 or input.shape[2] != self.input_size:
            raise RuntimeError(
                f"{self._get_name()}: expected an input of 3 dims, the last of size "
                f"{self.input_size}; got {list(input.shape)}"
            )
        x = input.transpose(0, 1) if self.batch_first else input
        steps, rows = int(x.shape[0]), int(x.shape[1])
        flat = x.reshape(steps * rows, self.input_size)
        out, last = self._layers(flat, [rows] * steps, self._first(hx, rows, x))
        out = out.reshape(steps, rows, -1)
        return out.transpose(0, 1) if self.batch_first else out, self._given(last)

    @classmethod
    def from_float(
        cls, mod: Any, use_precomputed_fake_quant: bool = False, dtype: Any = None
    ) -> Any:
        """The module with its weights rounded.

        Args:
            mod: an LSTM or a GRU.
            use_precomputed_fake_quant: accepted.
            dtype: qint8 or float16; qint8 if None.
        """
        _need_float(cls.__name__, mod, cls._float, dtype or clew.qint8)
        if getattr(mod, "proj_size", 0):
            raise NotImplementedError(f"{cls.__name__}.from_float: proj_size is not offered")
        made = cls(
            mod.input_size,
            mod.hidden_size,
            mod.num_layers,
            mod.bias,
            mod.batch_first,
            mod.dropout,
            mod.bidirectional,
            dtype,
        )
        made.training = mod.training
        names = [
            f"{layer}{way}"
            for layer in range(mod.num_layers)
            for way in (("", "_reverse") if mod.bidirectional else ("",))
        ]
        for k, name in enumerate(names):
            for one, part in enumerate(("ih_l", "hh_l")):
                made._maps[2 * k + one] = Linear.of_parts(
                    getattr(mod, f"weight_{part}{name}"),
                    getattr(mod, f"bias_{part}{name}"),
                    made.dtype,
                )
        return made


class LSTM(_Recurrent):
    """An LSTM with weights of 8 bits, or of 16; of 8, inputs and states are rounded to 7 bits.

    Args:
        input_size, hidden_size, num_layers, batch_first, dropout, bidirectional: as for `nn.LSTM`.
        bias: True.
        dtype: qint8 or float16; qint8 if None.

    No gradients flow to the input or the weights. The shapes are those of `nn.LSTM`.

    Example:
        >>> from clew.ao.nn.quantized.dynamic import LSTM
        >>> plain = nn.LSTM(3, 2)
        >>> rounded = LSTM.from_float(plain)
        >>> x = clew.rand(5, 1, 3)
        >>> clew.allclose(rounded(x)[0], plain(x)[0], atol=0.05)
        True
    """

    _float, _step, _states = nn.LSTM, staticmethod(_lstm), 2


class GRU(_Recurrent):
    """A GRU with weights of 8 bits, or of 16; of 8, inputs and states are rounded to 7 bits.

    Args:
        input_size, hidden_size, num_layers, batch_first, dropout, bidirectional: as for `nn.GRU`.
        bias: True.
        dtype: qint8 or float16; qint8 if None.

    No gradients flow to the input or the weights. The shapes are those of `nn.GRU`.

    Example:
        >>> from clew.ao.nn.quantized.dynamic import GRU
        >>> plain = nn.GRU(3, 2)
        >>> rounded = GRU.from_float(plain)
        >>> x = clew.rand(5, 1, 3)
        >>> clew.allclose(rounded(x)[0], plain(x)[0], atol=0.05)
        True
    """

    _float, _step = nn.GRU, staticmethod(_gru)


class _Cell(nn.Module):
    """One step of a recurrent module with weights of fewer bits."""

    _float: Any
    _step: Any
    _states = 1

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = None
    ) -> None:
        super().__init__()
        if not bias:
            raise NotImplementedError(f"{type(self).__name__}: bias must be True")
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self.dtype = dtype or clew.qint8
        gates = _GATES[self._float.__name__] * hidden_size
        self._ih = Linear(input_size, gates, dtype=self.dtype)
        self._hh = Linear(hidden_size, gates, dtype=self.dtype)

    def _get_name(self) -> str:
        return f"DynamicQuantized{self._float.__name__}"

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"

    def _rule(self) -> Any:
        return type(self)._step

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        if input.dim() != 2 or input.shape[1] != self.input_size:
            raise RuntimeError(
                f"{self._get_name()}: expected an input of shape [batch, {self.input_size}]; got "
                f"{list(input.shape)}"
            )
        if hx is None:
            zero = clew.zeros(input.shape[0], self.hidden_size, dtype=input.dtype)
            state: tuple[Tensor, ...] = (zero,) * self._states
        else:
            state = tuple(hx) if self._states > 1 else (hx,)
        made = self._rule()(self._ih(input), self._hh(state[0]), state)
        return made if self._states > 1 else made[0]

    @classmethod
    def from_float(
        cls, mod: Any, use_precomputed_fake_quant: bool = False, dtype: Any = None
    ) -> Any:
        """The module with its weights rounded.

        Args:
            mod: the cell.
            use_precomputed_fake_quant: accepted.
            dtype: qint8 or float16; qint8 if None.
        """
        _need_float(cls.__name__, mod, cls._float, dtype or clew.qint8)
        more = {"nonlinearity": mod.nonlinearity} if cls is RNNCell else {}
        made = cls(mod.input_size, mod.hidden_size, mod.bias, dtype=dtype, **more)
        made._ih = Linear.of_parts(mod.weight_ih, mod.bias_ih, made.dtype)
        made._hh = Linear.of_parts(mod.weight_hh, mod.bias_hh, made.dtype)
        return made


class LSTMCell(_Cell):
    """An LSTMCell with weights of 8 bits, or of 16.

    Args:
        input_size, hidden_size: as for `nn.LSTMCell`.
        bias: True.
        dtype: qint8 or float16; qint8 if None.

    No gradients flow to the input or the weights. The shapes are those of `nn.LSTMCell`.

    Example:
        >>> from clew.ao.nn.quantized.dynamic import LSTMCell
        >>> plain = nn.LSTMCell(3, 2)
        >>> rounded = LSTMCell.from_float(plain)
        >>> x = clew.rand(1, 3)
        >>> clew.allclose(rounded(x)[0], plain(x)[0], atol=0.05)
        True
    """

    _float, _step, _states = nn.LSTMCell, staticmethod(_lstm), 2


class GRUCell(_Cell):
    """A GRUCell with weights of 8 bits, or of 16.

    Args:
        input_size, hidden_size: as for `nn.GRUCell`.
        bias: True.
        dtype: qint8 or float16; qint8 if None.

    No gradients flow to the input or the weights. The shapes are those of `nn.GRUCell`.

    Example:
        >>> from clew.ao.nn.quantized.dynamic import GRUCell
        >>> plain = nn.GRUCell(3, 2)
        >>> rounded = GRUCell.from_float(plain)
        >>> x = clew.rand(1, 3)
        >>> clew.allclose(rounded(x), plain(x), atol=0.05)
        True
    """

    _float, _step = nn.GRUCell, staticmethod(_gru)


class RNNCell(_Cell):
    """An RNNCell with weights of 8 bits, or of 16.

    Args:
        input_size, hidden_size: as for `nn.RNNCell`.
        bias: True.
        nonlinearity: "tanh" or "relu".
        dtype: qint8 or float16; qint8 if None.

    No gradients flow to the input or the weights. The shapes are those of `nn.RNNCell`.

    Example:
        >>> from clew.ao.nn.quantized.dynamic import RNNCell
        >>> plain = nn.RNNCell(3, 2)
        >>> rounded = RNNCell.from_float(plain)
        >>> x = clew.rand(1, 3)
        >>> clew.allclose(rounded(x), plain(x), atol=0.05)
        True
    """

    _float, _step = nn.RNNCell, staticmethod(_tanh)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, dtype)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNNCell: nonlinearity must be tanh or relu; got {nonlinearity!r}")
        self.nonlinearity = nonlinearity

    def _rule(self) -> Any:
        return _tanh if self.nonlinearity == "tanh" else _relu
