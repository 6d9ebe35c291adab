"""inspect.signature knows every public function and method, and calls fit what it says."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import types
from collections.abc import Iterator

import pytest

import clew
from clew import _C
from samples import Rng, load

MODULES = """
clew clew.nn clew.nn.functional clew.nn.init clew.optim clew.optim.lr_scheduler clew.autograd
clew.linalg clew.fft clew.special clew.func clew.signal.windows clew.sparse clew.nested clew.masked
clew.distributions
""".split()
TABLE = load()


def public(owner: object) -> list[str]:
    return [n for n in dir(owner) if not n.startswith("_")]


def without(owner: object) -> list[str]:
    """The callables of a module or class that tell no signature."""
    found = []
    for name in public(owner):
        value = getattr(owner, name)
        # Python's own exceptions and metaclasses tell none either.
        if not callable(value) or (
            isinstance(value, type) and issubclass(value, (BaseException, type))
        ):
            continue
        try:
            inspect.signature(value)
        except ValueError:
            found.append(name)
    return found


@pytest.mark.parametrize("name", MODULES)
def test_every_function(name):
    assert not without(importlib.import_module(name))


def test_every_method():
    assert len(public(clew.Tensor)) > 500
    assert not without(clew.Tensor)
    assert not without(_C.Generator)
    assert not without(clew.Size)


def everything() -> Iterator[tuple[str, object]]:
    """Each public function, class and method once, in whatever public module it is."""
    seen: dict[int, object] = {}  # held, or another could come to have the number
    names = [m.name for m in pkgutil.walk_packages(clew.__path__, "clew.")]
    for module in ["clew", *(n for n in names if "._" not in n)]:
        try:
            home = importlib.import_module(module)
        except ImportError:  # of a package that is not installed
            continue
        for name in public(home):
            value = getattr(home, name, None)
            ours = str(getattr(value, "__module__", None)).startswith("clew")
            own = not getattr(value, "__name__", "").startswith("_")
            if not (ours and own and callable(value)) or isinstance(value, types.ModuleType):
                continue
            found = [(f"{module}.{name}", value)]
            if isinstance(value, type) and (
                value is clew.Tensor or not issubclass(value, clew.Tensor)
            ):
                found += [
                    (f"{module}.{name}.{n}", getattr(value, n)) for n in vars(value) if n[0] != "_"
                ]
            for path, thing in found:
                part = path.rpartition(".")[2]
                if callable(thing) and not part.startswith("_") and id(thing) not in seen:
                    seen[id(thing)] = thing
                    yield path, thing


# Types that nobody makes objects of.
UNSIGNED = {"clew.autograd.graph.Node", "clew.dtype"}


def test_everything_public_is_described():
    silent, unsigned, count = [], [], 0
    for path, thing in everything():
        count += 1
        if not (inspect.getdoc(thing) or "").strip():
            silent.append(path)
        # Python's own exceptions, metaclasses and dicts tell no signature either.
        bare = (BaseException, type, dict, int, str, list, tuple)
        if isinstance(thing, type) and issubclass(thing, bare):
            continue
        try:
            inspect.signature(thing)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            unsigned.append(path)
    assert count > 3500
    assert silent == []
    assert [p for p in unsigned if p not in UNSIGNED] == []


def test_attributes_of_tensors_are_described():
    silent = [
        name
        for name in public(clew.Tensor)
        if isinstance(value := inspect.getattr_static(clew.Tensor, name), property)
        and not value.__doc__
    ]
    assert silent == []


@pytest.mark.parametrize("name", sorted(n for n in TABLE if n in _C.functions))
def test_calls_fit(name):
    signature = inspect.signature(_C.functions[name])
    for sample in TABLE[name].samples(Rng(name)):
        signature.bind(*sample.args, **sample.kwargs)
    assert "out" in signature.parameters
    with pytest.raises(TypeError):
        signature.bind(nothing_is_called_this=1)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (clew.abs, "(input, *, out=None)"),
        (clew.abs_, "(input)"),
        (clew.Tensor.abs_, "(self, /)"),
        (clew.add, "(input, other, *, alpha=1, out=None)"),
        (clew.ones(1).add, "(other, *, alpha=1)"),
        (clew.cumsum, "(input, dim, *, dtype=None, out=None)"),
        (clew.max, "(input, dim=Ellipsis, keepdim=False, *, other=Ellipsis, out=None)"),
        (clew.div, "(input, other, *, rounding_mode=None, out=None)"),
        (clew.split, "(tensor, split_size_or_sections, dim=0, *, out=None)"),
        (clew.clamp, "(input, min=None, max=None, *, out=None)"),
        (clew.permute, "(input, *dims, out=None)"),
        (clew.Tensor.view, "(self, /, *size, dtype=None)"),
        (clew.Tensor.size, "(self, /, dim=None)"),
        (clew.Tensor.uniform_, "(self, from_=0, /, to=1, *, generator=None)"),
        (clew.get_num_threads, "()"),
        (clew.device, "(type, index=None)"),
        (clew.nn.functional.gelu, "(input, *, approximate='none', out=None)"),
    ],
)
def test_what_is_said(function, said):
    signature = inspect.signature(function)
    plain = signature.replace(
        parameters=[p.replace(annotation=p.empty) for p in signature.parameters.values()],
        return_annotation=signature.empty,
    )
    assert str(plain) == said


def test_types_are_said():
    signature = inspect.signature(clew.clamp)
    assert signature.parameters["min"].annotation == "Number | Tensor | None"
    assert signature.return_annotation == "Tensor"
    assert inspect.signature(clew.max).return_annotation == "Tensor | tuple[Tensor, Tensor]"


def test_types_themselves_have_none():
    assert not hasattr(type(clew.add), "__signature__")


def test_the_number_of_threads_is_checked():
    before = clew.get_num_threads()
    for wrong in ("2", 1.5, True):  # RuntimeError, as in PyTorch
        kind = type(wrong).__name__
        with pytest.raises(RuntimeError, match=f"set_num_threads: expected an int; got {kind}"):
            clew.set_num_threads(wrong)
    for wrong in (0, -1):
        with pytest.raises(RuntimeError, match=f"a positive number of threads; got {wrong}"):
            clew.set_num_threads(wrong)
    assert clew.get_num_threads() == before


def test_tensor_is_described():
    assert "dtype" in clew.Tensor.__doc__ and ">>>" in clew.Tensor.__doc__
    assert not clew.Tensor.__doc__.startswith("Tensor(")
