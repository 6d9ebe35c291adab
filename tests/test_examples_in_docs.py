"""The examples in docstrings of Python modules that are not ops do what they say."""

import doctest
import importlib
import pkgutil

import pytest

import clew
import clew._io
import clew.backends
import clew.optim
import clew.utils

SINGLE = ["serialization", "_run", "__config__", "cuda", "version", "multiprocessing"]


def names():
    for name in SINGLE:
        yield f"clew.{name}"
    for package in (clew.optim, clew.utils, clew.backends, clew._io):
        yield package.__name__
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            yield module.name


@pytest.mark.parametrize("name", sorted(names()))
def test_examples(name):
    clew.manual_seed(0)
    failures = []

    class Runner(doctest.DocTestRunner):
        def report_failure(self, out, test, example, got):
            failures.append(f"{test.name}: {example.source}  wanted {example.want}  got {got}")

        def report_unexpected_exception(self, out, test, example, exc_info):
            failures.append(f"{test.name}: {example.source}  raised {exc_info[1]!r}")

    module = importlib.import_module(name)
    runner = Runner(verbose=False)
    for test in doctest.DocTestFinder().find(module, extraglobs={"clew": clew}):
        runner.run(test, out=lambda text: None)
    if name == "clew._run":
        module.uninstall()
    assert not failures, "\n".join(failures)
