"""Docstrings of functions are complete: what goes in, what comes out, and an example that runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import operator
import re
import warnings

import pytest

import clew
from clew import _C

MODULES = """
clew.nn.functional clew.nn.init clew.nn.utils clew.nn.utils.fusion clew.nn.utils.parametrizations
clew.nn.utils.parametrize clew.nn.utils.prune clew.nn.utils.rnn clew.nn.utils.stateless
clew.linalg clew.fft clew.special clew.signal.windows clew.func clew.distributions
clew.distributions.constraints clew.distributions.transforms
""".split()

# Names that need no docstring of this kind, each with its reason.
EXEMPT = {
    "clew.nn.functional.Tensor": "the class of tensors, which PyTorch's module offers too",
    "clew.linalg.LinAlgError": "an error, which nobody makes",
    "clew.distributions.identity_transform": "an object, with the docstring of its class",
    "clew.distributions.transforms.identity_transform": "an object, with that of its class",
    "clew.distributions.biject_to": "an object, with the docstring of its class",
    "clew.distributions.transform_to": "an object, with the docstring of its class",
    "clew.distributions.constraints.dependent": "an object, with the docstring of its class",
}
HEADERS = r"(?:Args|Returns|Raises|Yields|Example|Attributes):"


def members() -> dict[str, object]:
    found = {}
    for name in MODULES:
        module = importlib.import_module(name)
        listed = getattr(module, "__all__", None) or dir(module)
        for own in sorted(n for n in listed if not n.startswith("_")):
            value = getattr(module, own)
            if callable(value) and not inspect.ismodule(value):
                found[f"{name}.{own}"] = value
    return found


MEMBERS = members()
CHECKED = sorted(set(MEMBERS) - set(EXEMPT))


def native(value: object) -> bool:
    """Whether the core made the function, and C++ holds its docstring."""
    return type(value) is type(_C.functions["abs"])


def doc_of(name: str) -> str:
    # Not inspect.getdoc, which hands a base class's docstring to a class that has none.
    return inspect.cleandoc(MEMBERS[name].__doc__ or "")


def described(doc: str) -> set[str]:
    """The names that stand in a docstring's Args."""
    args = re.search(rf"^Args:\n(.*?)(?=^{HEADERS}|^>>>|\Z)", doc, re.M | re.S)
    if args is None:
        return set()
    return set(re.findall(r"^    (\w+): \S", args[1], re.M))


def test_what_is_checked():
    assert set(EXEMPT) <= set(MEMBERS)
    assert len(CHECKED) > 400
    assert not native(clew.nn.functional.max_pool2d) and native(clew.nn.functional.relu)


def test_arguments_are_found():
    args = "Args:\n    a: the first,\n        b: not one.\n    c: another.\n"
    assert described(f"One.\n\n{args}\nReturns:\n    d: no.") == {"a", "c"}
    assert described("None, takes a: nothing.") == set()


@pytest.mark.parametrize("name", CHECKED)
def test_docstring(name):
    doc, value = doc_of(name), MEMBERS[name]
    first = doc.split("\n\n")[0]
    assert first and not re.match(HEADERS, first), "no sentence says what it does"
    assert ">>>" in doc, "no example"
    if native(value) and (other := re.search(r"^Another name of `([\w.]+)`\.$", doc, re.M)):
        doc += operator.attrgetter(other[1].removeprefix("clew."))(clew).__doc__
    if not inspect.isclass(value):
        assert re.search("^Returns:", doc, re.M), "nothing says what is returned"
    parameters = set(inspect.signature(value).parameters)
    if native(value):
        # C++ tells the arguments: its first line is a signature, and "out" is the same for all.
        assert parameters - {"out"} <= set(re.findall(r"\w+", doc)), "not all arguments are told"
    else:
        assert not parameters - described(doc), "not all arguments are described"


@pytest.mark.parametrize("name", [n for n in CHECKED if not native(MEMBERS[n])])
def test_example(name):
    """Of decorated functions and those of a factory too, which doctest does not find."""
    clew.manual_seed(0)
    names = {"clew": clew, "nn": clew.nn}
    test = doctest.DocTestParser().get_doctest(doc_of(name), names, name, None, 0)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
    out: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of deprecated names
        runner.run(test, out=out.append)
    assert runner.tries and not runner.failures, "".join(out)


@pytest.mark.parametrize("name", [n for n in CHECKED if re.search(r"_(un)?pool[123]d", n)])
def test_families_show_their_own_example(name):
    doc, own = doc_of(name), name.rpartition(".")[2]
    assert f"clew.nn.functional.{own}(" in doc or native(MEMBERS[name])
    assert "{" not in doc
    n = int(re.search(r"(\d)d", own)[1])
    if not native(MEMBERS[name]):
        assert ("(N, C, L)", "(N, C, H, W)", "(N, C, D, H, W)")[n - 1] in doc
