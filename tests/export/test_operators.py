"""Every operation that docs/export.md lists goes through an ONNX file and gives the same there."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import clew
import samples
from clew import _C

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "export.md"
PARTS = 6


def listed():
    text = PAGE.read_text(encoding="utf-8").split("<!-- operators -->")[1]
    return re.findall(r"[\w.]+", text)


def test_the_list_is_long_enough():
    assert len(listed()) == len(set(listed())) >= 370


def function(name):
    found = _C.functions.get(name) or getattr(_C.ops, name, None)
    if found is None:
        found = clew
        for part in name.split("."):
            found = getattr(found, part)
    return found


def tensors(x):
    if isinstance(x, np.ndarray):
        return clew.tensor(x.astype(np.float32) if x.dtype.kind == "f" else x)
    return type(x)(map(tensors, x)) if isinstance(x, (list, tuple)) else x


def has_complex(x):
    if isinstance(x, (list, tuple)):
        return any(map(has_complex, x))
    return isinstance(x, complex) or (isinstance(x, np.ndarray) and x.dtype.kind == "c")


@pytest.mark.parametrize(
    "part", [pytest.param(k, marks=[pytest.mark.slow] if k else []) for k in range(PARTS)]
)
def test_operations(part):
    table = samples.load()
    for name in listed()[part::PARTS]:
        op = function(name)
        given = [s for s in table[name].samples(samples.Rng(name))
                 if not has_complex([*s.args, *s.kwargs.values()])]  # fmt: skip
        assert given, name
        for s in given[: 1 if part == 0 else 4]:
            args = tuple(map(tensors, s.args))
            kwargs = {k: tensors(v) for k, v in s.kwargs.items()}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # conditions of functions that check values
                # Compares with the operation, on the sample and on others.
                clew.onnx.export(lambda *a, _f=op, **k: _f(*a, **k), args, kwargs=kwargs)
