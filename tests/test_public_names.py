"""What dir() lists: every public name, those that are loaded later too, and nothing else."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
import traceback

import numpy as np
import pytest

import clew
from clew import _namespace
from clew._base.numpy_names import NAMES

MODULES = """
clew clew.nn clew.nn.functional clew.nn.init clew.nn.utils clew.nn.attention clew.optim
clew.optim.lr_scheduler clew.autograd clew.utils clew.linalg clew.fft clew.special clew.func
clew.signal clew.sparse clew.nested clew.masked clew.distributions clew.distributed clew.ao
clew.cuda clew.functional clew.debug
""".split()


def test_the_package_lists_what_it_loads_later():
    listed = set(dir(clew))
    assert {*_namespace._LAZY_NAMES, *_namespace._LAZY_MODULES} <= listed
    assert {"add", "zeros", "Tensor", "float32", "quantile", "nn", "compile"} <= listed
    assert "annotations" not in listed


@pytest.mark.parametrize("name", MODULES)
def test_what_is_listed_is_there(name):
    module = importlib.import_module(name)
    listed = dir(module)
    assert sorted(set(listed)) == listed
    assert set(getattr(module, "__all__", ())) <= set(listed)
    missing = [n for n in listed if n != "tensorboard" and not hasattr(module, n)]
    assert not missing


@pytest.mark.parametrize(
    "name",
    ["clew.nn", "clew.nn.utils.prune", "clew.overrides", "clew.storage", "clew.utils._pytree"],
)
def test_classes_name_the_place_where_pickles_find_them(name):
    """In whichever file they are written."""
    module = importlib.import_module(name)
    found = [getattr(module, n) for n in dir(module) if not n.startswith("_")]
    classes = [v for v in found if isinstance(v, type) and v.__module__.startswith("clew")]
    assert classes
    for kind in classes:
        private = {part for part in kind.__module__.split(".") if part.startswith("_")}
        assert private <= {"_pytree"}, kind
        home = importlib.import_module(kind.__module__)
        assert getattr(home, kind.__qualname__) is kind


@pytest.mark.parametrize(
    ("module", "wrong", "right"),
    [
        ("clew", "quantle", "quantile"),
        ("clew", "nuclear_nrm", "nuclear_norm"),
        ("clew", "sotfmax", "softmax"),
        ("clew", "serialisation", "serialization"),
        ("clew", "array", "tensor"),
        ("clew", "mod", "remainder"),
        ("clew", "percentile", "quantile"),
        ("clew.nn", "Liner", "Linear"),
        ("clew.nn", "DataParalel", "DataParallel"),
        ("clew.nn.functional", "rellu", "relu"),
        ("clew.nn.init", "xavier_unifrm_", "xavier_uniform_"),
        ("clew.optim", "Adamm", "Adam"),
        ("clew.optim.lr_scheduler", "StepLr", "StepLR"),
        ("clew.utils", "chekpoint", "checkpoint"),
        ("clew.autograd", "foward_ad", "forward_ad"),
        ("clew.nn.utils", "clip_grad_nrm_", "clip_grad_norm_"),
    ],
)
def test_errors_name_the_nearest(module, wrong, right):
    # Where another test made `torch` mean clew, the module is called by that name.
    with pytest.raises(AttributeError, match=f"{wrong}'.*the nearest name is '{right}'"):
        getattr(importlib.import_module(module), wrong)


def test_numpys_names_lead_to_names_that_exist():
    assert not [n for n in NAMES if hasattr(clew, n)], "clew has the name itself"
    assert not [n for n in NAMES.values() if not hasattr(clew, n)]
    assert not [n for n in NAMES if not hasattr(np, n)], "not a name of NumPy"


def test_listing_loads_nothing():
    code = (
        "import sys, clew; before = set(sys.modules); dir(clew); "
        "assert set(sys.modules) == before, set(sys.modules) - before; "
        "assert 'clew.nn' not in before and 'difflib' not in before"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("code", "near"),
    [("clew.ones(2).reshap", "reshape"), ("clew.nn.Linear(2, 2).wieght", "weight")],
)
def test_a_mistyped_attribute_is_answered_with_the_nearest(code: str, near: str) -> None:
    """Python does so where an AttributeError knows the object and dir() of it tells the names."""
    done = subprocess.run(
        [sys.executable, "-c", f"import clew; {code}"], capture_output=True, text=True
    )
    assert f"Did you mean: '{near}'?" in done.stderr


def test_asking_for_a_name_does_not_look_for_the_nearest(monkeypatch):
    asked = []
    monkeypatch.setattr(_namespace, "nearest_name", lambda *a: asked.append(a) or "relu")
    assert not hasattr(clew, "no_such_name") and not asked
    with pytest.raises(AttributeError, match="the nearest name is 'relu'") as found:
        clew.rellu  # noqa: B018
    assert asked and "".join(traceback.format_exception(found.value)).splitlines()[-1].startswith(
        "AttributeError: module 'clew' has no attribute 'rellu'"
    )
    assert "nearest" in str(pickle.loads(pickle.dumps(found.value)))
