"""Modules with weights of fewer bits, whose inputs are rounded when they are called."""

from __future__ import annotations

from clew.ao.nn.quantized._linear import Linear as Linear
from clew.ao.nn.quantized._recurrent import GRU as GRU
from clew.ao.nn.quantized._recurrent import LSTM as LSTM
from clew.ao.nn.quantized._recurrent import GRUCell as GRUCell
from clew.ao.nn.quantized._recurrent import LSTMCell as LSTMCell
from clew.ao.nn.quantized._recurrent import RNNCell as RNNCell

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "Linear", "RNNCell"]
