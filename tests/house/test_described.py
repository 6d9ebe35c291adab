"""Public names have texts that fit them, by the rules of tools/check_docs.py."""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import clew

ROOT = Path(__file__).resolve().parents[2]

# Base classes and registries, shown by what is made of them.
SHOWN_BY_OTHERS = """
DisableTorchFunction Tensor TypedStorage distributions.Distribution distributions.Transform
distributions.constraint_registry.ConstraintRegistry distributions.constraints.Constraint
nn.utils.parametrize.ParametrizationList nn.utils.prune.PruningContainer
nn.utils.rnn.PackedSequence optim.Optimizer
""".split()

# Names that programs hardly use.
BRIEF = """
nn.modules.module.register_module_backward_hook
""".split()


def load() -> Any:
    spec = importlib.util.spec_from_file_location("check_docs", ROOT / "tools" / "check_docs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


check_docs = load()


@functools.cache
def all_findings() -> list[Any]:
    """In a process of its own: what other tests have loaded puts more names on Tensor."""
    tool = str(ROOT / "tools" / "check_docs.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, tool, "--list", "all"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr  # as long as there are findings
    lines = [line.split(": ", 2) for line in done.stdout.splitlines()]
    return [check_docs.Finding(kind, path, why) for path, kind, why in filter(is_finding, lines)]


def is_finding(parts: list[str]) -> bool:
    return len(parts) == 3 and parts[1] in check_docs.KINDS


def allowed(finding: Any) -> bool:
    name = finding.path.removeprefix("clew.")
    if finding.kind == "foreign":
        return name in SHOWN_BY_OTHERS
    if finding.kind in ("empty", "summary", "repeated"):
        return False
    return name in BRIEF


def test_texts_fit():
    assert [f for f in all_findings() if not allowed(f)] == []


def test_what_is_allowed_is_needed():
    found = {f.path.removeprefix("clew.") for f in all_findings()}
    assert [n for n in [*SHOWN_BY_OTHERS, *BRIEF] if n not in found] == []


def described(name: str, doc: str | None) -> set[str]:
    """The kinds of findings on a function f(input, dim, inplace=False) with this text."""

    def made(input: Any, dim: Any, inplace: bool = False) -> clew.Tensor:
        raise NotImplementedError

    made.__doc__ = doc
    named = check_docs.Named(f"clew.{name}", made, SimpleNamespace())
    return {f.kind for f in check_docs.faults(named)}


GOOD = """Turns every row round.

Args:
    input: the tensor.
    dim: where the rows lie.
    inplace: whether to write into input.

Returns:
    a tensor like input.

>>> clew.turned(clew.ones(2, 2), 1)
"""


@pytest.mark.parametrize(
    ("doc", "kinds"),
    [
        (GOOD, set()),
        (None, {"empty"}),
        (GOOD.replace("Turns every row round.", "turned"), {"summary"}),
        (GOOD.replace("    inplace: whether to write into input.\n", ""), {"args"}),
        (GOOD.replace("    dim:", "    dims:"), {"args"}),
        (GOOD.replace("Returns:\n    a tensor like input.\n", ""), {"returns"}),
        (GOOD.replace(">>> clew.turned(clew.ones(2, 2), 1)", ""), {"example"}),
        (GOOD.replace("clew.turned", "clew.flip"), {"foreign"}),
        ("Turns every row round.\n\n>>> clew.turned(x, 1)", {"args"}),
        ("Another name of `clew.flip`.\n\n>>> clew.turned(x, 1)", set()),
    ],
)
def test_each_rule(doc, kinds):
    assert described("turned", doc) == kinds


def test_who_passes_all_on_may_tell_of_what_is_passed_on():
    def passes(*args: Any, **kwargs: Any) -> None: ...
    def takes(*args: Any, dims: Any = None) -> None: ...

    passes.__doc__ = takes.__doc__ = "Does it.\n\nArgs:\n    dim: where.\n\n>>> passes(takes)"
    kinds = [
        [f.why for f in check_docs.faults(check_docs.Named(f"clew.{f.__name__}", f, clew))]
        for f in (passes, takes)
    ]
    assert kinds == [[], ["not told: dims", "no such parameter: dim"]]


def test_repeated_texts_are_found():
    def one() -> None: ...
    def two() -> None: ...

    one.__doc__ = two.__doc__ = "Does it.\n\n>>> one()"
    both = [check_docs.Named(f"clew.{f.__name__}", f, clew) for f in (one, two)]
    assert [f.path for f in check_docs.repeated(both)] == ["clew.two"]
    same = [check_docs.Named("clew.one", one, clew), check_docs.Named("clew.nn.one", two, clew)]
    assert list(check_docs.repeated(same)) == []
