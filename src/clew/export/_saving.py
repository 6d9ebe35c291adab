"""Programs in files: save() and load()."""

from __future__ import annotations

import os
from typing import Any

from clew.export._errors import ExportError
from clew.export._file import from_bytes, to_bytes
from clew.export._program import ExportedProgram

__all__ = ["load", "save"]


def save(ep: ExportedProgram, f: Any, *, extra_files: dict[str, Any] | None = None) -> None:
    """Writes a program to a file.

    Args:
        ep: what export() returned.
        f: a path or a binary file.
        extra_files: further members of the file by name, strings or bytes.

    >>> import io
    >>> program = clew.export.export(clew.nn.Linear(2, 1), (clew.ones(1, 2),))
    >>> file = io.BytesIO()
    >>> clew.export.save(program, file)
    >>> _ = file.seek(0)
    >>> clew.export.load(file).module()(clew.ones(1, 2)).shape
    clew.Size([1, 1])
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"export.save: expected an ExportedProgram; got {type(ep).__name__}")
    data = to_bytes(ep._program, extra_files, ep._methods)
    if hasattr(f, "write"):
        f.write(data)
        return
    from clew._base.whole_files import replacing

    with replacing(os.fspath(f)) as file:
        file.write(data)


def load(f: Any, *, extra_files: dict[str, Any] | None = None) -> ExportedProgram:
    """Reads a program from a file that save() wrote.

    Args:
        f: a path or a binary file.
        extra_files: a dict whose keys name further members; its values are replaced by theirs.

    Raises:
        ExportError: the file is damaged, or no such file.

    Returns:
        an ExportedProgram.

    >>> import io
    >>> program = clew.export.export(clew.nn.Linear(2, 1), (clew.ones(1, 2),))
    >>> file = io.BytesIO()
    >>> clew.export.save(program, file)
    >>> _ = file.seek(0)
    >>> clew.export.load(file).module()(clew.ones(1, 2)).shape
    clew.Size([1, 1])
    """
    if hasattr(f, "read"):
        data = f.read()
    else:
        with open(f, "rb") as file:
            data = file.read()
    program, members, methods = from_bytes(data)
    for name in extra_files or {}:
        if name not in members:
            raise ExportError(f"export.load: the file has no member {name!r}")
        assert extra_files is not None
        extra_files[name] = members[name]
    made = ExportedProgram(program)
    made._methods = methods
    return made
