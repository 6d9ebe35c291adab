"""Reductions and softmaxes that leave out the elements where a mask is false.

Masked tensors as a type are not offered; these functions take the mask as an argument.
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

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
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
