"""The older name of ao.nn.quantized.dynamic."""

from __future__ import annotations

from clew.ao.nn.quantized.dynamic import GRU as GRU
from clew.ao.nn.quantized.dynamic import LSTM as LSTM
from clew.ao.nn.quantized.dynamic import GRUCell as GRUCell
from clew.ao.nn.quantized.dynamic import Linear as Linear
from clew.ao.nn.quantized.dynamic import LSTMCell as LSTMCell
from clew.ao.nn.quantized.dynamic import RNNCell as RNNCell

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "Linear", "RNNCell"]
