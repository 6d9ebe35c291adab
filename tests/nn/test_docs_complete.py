"""Every class of clew.nn tells its arguments, its shapes and an example; test_docs runs these."""

from __future__ import annotations

import inspect
import re

import pytest

from clew import nn

# They compute nothing of a tensor themselves: their children do, or whoever uses them.
WITHOUT_SHAPES = {
    "Container",
    "LinearCrossEntropyOptions",
    "Module",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
}
# Tensors, not layers.
TENSORS = {"Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"}
# Arguments of forward that are no tensors.
SWITCHES = {
    "average_attn_weights",
    "is_causal",
    "memory_is_causal",
    "need_weights",
    "src_is_causal",
    "tgt_is_causal",
}
SECTION = re.compile(r"^(Args|Shapes|Raises|Returns|Example):$", re.M)
ENTRY = re.compile(r"^    (\w+(?:, \w+)*): \S", re.M)


def classes() -> list[str]:
    public = (n for n in dir(nn) if not n.startswith("_") and n not in TENSORS)
    return [n for n in public if inspect.isclass(getattr(nn, n))]


def sections(name: str) -> dict[str, str]:
    """The sections of a class's own docstring; what is before them has the empty name."""
    doc = vars(getattr(nn, name)).get("__doc__")
    assert doc, f"{name} has no docstring of its own"
    head, *rest = SECTION.split(inspect.cleandoc(doc))
    return {"": head, **dict(zip(rest[::2], rest[1::2], strict=True))}


def arguments(cls: type) -> list[str]:
    """What a user may give to the constructor."""
    if cls.__init__.__code__ is nn.Module.__init__.__code__:
        return []  # of Module, which takes nothing
    return [n for n in inspect.signature(cls).parameters if not n.startswith("_")]


def test_classes():
    found = classes()
    assert len(found) > 160
    assert {"DataParallel", "Linear", "ZeroPad3d", *WITHOUT_SHAPES} <= set(found)
    assert all(name in found for name in nn.modules.__all__)


@pytest.mark.parametrize("name", classes())
def test_sentence_and_example(name):
    told = sections(name)
    first = told[""].split("\n\n")[0].strip()
    assert first.endswith(".") and "\n" not in first
    assert f"nn.{name}" in told["Example"]
    assert ">>>" in told["Example"]


@pytest.mark.parametrize("name", classes())
def test_arguments(name):
    cls = getattr(nn, name)
    known = ENTRY.findall(sections(name).get("Args", ""))
    wanted = arguments(cls)
    assert not set(known) - set(wanted), "no argument of the constructor"
    assert not set(wanted) - set(known) - {"device", "dtype"}


@pytest.mark.parametrize("name", sorted(set(classes()) - WITHOUT_SHAPES))
def test_shapes(name):
    entries = [n for names in ENTRY.findall(sections(name)["Shapes"]) for n in names.split(", ")]
    if name == "RNNCellBase":  # has parameters, and no forward
        assert entries == ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
        return
    assert "returns" in entries
    forward = inspect.signature(getattr(nn, name).forward).parameters
    tensors = [n for n in forward if n not in ("self", *SWITCHES)]
    assert not set(tensors) - set(entries)
