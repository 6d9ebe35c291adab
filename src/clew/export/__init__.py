"""Models as programs that run without their source.

>>> model = clew.nn.Sequential(clew.nn.Linear(4, 8), clew.nn.ReLU())
>>> program = clew.export.export(model, (clew.ones(2, 4),))
>>> program.module()(clew.ones(2, 4)).shape
clew.Size([2, 8])
"""

from __future__ import annotations

from clew.export._errors import ExportError
from clew.export._export import export
from clew.export._program import (
    ExportedProgram,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
)
from clew.export._saving import load, save
from clew.export._shapes import Dim, dims

__all__ = [
    "Dim",
    "ExportError",
    "ExportGraphSignature",
    "ExportedProgram",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "dims",
    "export",
    "load",
    "save",
]
