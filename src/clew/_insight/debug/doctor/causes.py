"""Which mistakes follow from others: those are not told where their cause is."""

from __future__ import annotations

import sys

from clew._base.origins import in_package
from clew._insight.debug.doctor.data import SORTED
from clew._insight.debug.doctor.finding import Finding

__all__ = ["causes"]

_LOSS = "the loss is NaN or infinite"
_EDGE = "an expression is differentiated where its slope is infinite"
_HIDDEN = "where() hides values whose gradient is still computed"
_RAW = "the inputs are not normalised"
_RATE = "the learning rate does not fit"
_NEVER_CLEARED = "gradients are never cleared: they add up over the steps"
_NO_STEP = "the optimizer never steps"
_EXPLODING = "gradients vanish or explode from layer to layer"
_SCALED = "the optimizer steps with gradients that are still scaled"
_CUT = "parameters are cut off from the loss"
_LATE = "gradients are cleared between backward and step"
_ANEW = "the model is made anew, and the optimizer has an old one"
_SPREAD = "the standard deviation of a single value"
_INVERTED = "the attention mask is inverted"
_ZERO_RATE = "the learning rate is 0"
_EMPTY = "a parameter is never initialised"
_NAMED = "a method is named, not called"
_OLD = "the schedule sets the rate of an optimizer that does not step"
_WEIGHTS = "a sampler has weights of classes, not of samples"
# For each mistake, the mistakes that may have caused it.
CAUSES = {
    _EXPLODING: {_RAW, _SCALED, _EMPTY},
    _RATE: {_RAW, _EXPLODING, _SCALED, _EMPTY, _ZERO_RATE, _NEVER_CLEARED},
    "all units of a layer are alike": {_EMPTY},
    "dead ReLU": {_EMPTY},
    "saturated activation": {_EMPTY, _RAW},
    _NEVER_CLEARED: {_NO_STEP, _NAMED},
    "gradients of several batches are added up without dividing the loss": {_NEVER_CLEARED},
    "gradients that another's loss left are used": {_NEVER_CLEARED},
    "the optimizer steps without gradients": {
        _CUT,
        _ANEW,
        "the optimizer has parameters that were replaced",
        _LATE,
        _NAMED,
    },
    _NO_STEP: {_NAMED},
    "the learning-rate schedule never steps": {_NAMED},
    "the model is evaluated in training mode": {_NAMED},
    "training goes on in evaluation mode": {_NAMED},
    "all gradients are zero": {
        "a softmax over a single value",
        _CUT,
        _LATE,
        "dead ReLU",
        "saturated activation",
        _EMPTY,
    },
    "the schedule steps before the optimizer": {_NO_STEP, _OLD},
    "the labels are constant": {SORTED, _WEIGHTS},
    "labels rise through the batches: sorted data that is not shuffled": {SORTED},
    _LOSS: {
        "the labels are constant",
        _EDGE,
        _HIDDEN,
        "integer division where a fraction was meant",
        _RATE,
        _EXPLODING,
        _SCALED,
        _SPREAD,
        _INVERTED,
        _EMPTY,
    },
}


def causes(found: list[Finding]) -> list[Finding]:
    """The findings without those that follow from others, and without those about the lines of
    other people's libraries, where the user has nothing to change."""
    kinds = {finding.mistake for finding in found}
    found = [f for f in found if not kinds & CAUSES.get(f.mistake, set())]
    # Only now: what is told of a library's line may be the cause of what is told elsewhere.
    if not in_package(sys.argv[0]):  # else the program is in a package itself
        found = [f for f in found if not in_package(f.file)]
    hidden = {(f.file, f.line) for f in found if f.mistake == _HIDDEN}
    return [f for f in found if f.mistake != _EDGE or (f.file, f.line) not in hidden]
