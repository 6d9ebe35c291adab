"""The examples in nn do what they say; every public class and function has a docstring."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import clew
from clew import nn

NAMES = [nn.__name__, *(m.name for m in pkgutil.walk_packages(nn.__path__, "clew.nn."))]


@pytest.mark.parametrize("name", NAMES)
def test_examples(name):
    clew.manual_seed(0)
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(verbose=False)
    report = []
    for test in doctest.DocTestFinder().find(module, name, extraglobs={"clew": clew}):
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


@pytest.mark.parametrize("module", [nn, nn.functional, nn.init, nn.utils, nn.utils.rnn])
def test_everything_public_is_described(module):
    for name, value in vars(module).items():
        if name.startswith("_") or not callable(value) or value is clew.Tensor:
            continue
        assert value.__doc__ and len(value.__doc__.split()) > 1, name
