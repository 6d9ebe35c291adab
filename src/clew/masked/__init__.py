"""Reductions and softmaxes that leave out the elements where a mask is false.

Functions take the mask as an argument; a :class:`MaskedTensor` carries it along.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew import _namespace
from clew.masked._reductions import amax as amax
from clew.masked._reductions import amin as amin
from clew.masked._reductions import argmax as argmax
from clew.masked._reductions import argmin as argmin
from clew.masked._reductions import cumprod as cumprod
from clew.masked._reductions import cumsum as cumsum
from clew.masked._reductions import logaddexp as logaddexp
from clew.masked._reductions import logsumexp as logsumexp
from clew.masked._reductions import prod as prod
from clew.masked._reductions import sum as sum
from clew.masked._statistics import log_softmax as log_softmax
from clew.masked._statistics import mean as mean
from clew.masked._statistics import median as median
from clew.masked._statistics import norm as norm
from clew.masked._statistics import normalize as normalize
from clew.masked._statistics import softmax as softmax
from clew.masked._statistics import softmin as softmin
from clew.masked._statistics import std as std
from clew.masked._statistics import var as var
from clew.masked._tensor import MaskedTensor as MaskedTensor
from clew.masked._tensor import as_masked_tensor as as_masked_tensor
from clew.masked._tensor import is_masked_tensor as is_masked_tensor
from clew.masked._tensor import masked_tensor as masked_tensor

__all__ = [
    "MaskedTensor",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "as_masked_tensor",
    "cumprod",
    "cumsum",
    "is_masked_tensor",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "masked_tensor",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]
if not TYPE_CHECKING:  # else checkers take any name to be there
    __getattr__ = _namespace.module_getattr(__name__, globals())
