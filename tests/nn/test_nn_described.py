"""Every public class and function of nn has a docstring (tests/test_docs.py runs the examples)."""

from __future__ import annotations

import pytest

import clew
from clew import nn


@pytest.mark.parametrize("module", [nn, nn.functional, nn.init, nn.utils, nn.utils.rnn])
def test_everything_public_is_described(module):
    for name, value in vars(module).items():
        if name.startswith("_") or not callable(value) or value is clew.Tensor:
            continue
        assert value.__doc__ and len(value.__doc__.split()) > 1, name
