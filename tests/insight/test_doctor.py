"""clew.debug.doctor: each silent mistake is found on its line, and no clean program is blamed."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from doctor_clean import CLEAN
from doctor_programs import HEADER, PROGRAMS, variants

from clew._debug.doctor.observer import Observer


def watched(source: str, path: Path):
    """What is found in a program; rules that failed fail the test."""
    path.write_text(source, encoding="utf-8")
    observer = Observer()
    observer.install()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(source, str(path), "exec"), {"__name__": "__main__"})
    finally:
        observer.remove()
    found = observer.finish(failed=False)
    assert not observer.broken, observer.broken
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_mistake_is_found(name, tmp_path):
    source, line, _ = variants(name)
    found = watched(source, tmp_path / f"{name}.py")
    mistake = PROGRAMS[name][0]
    mine = [f for f in found if mistake in f.mistake]
    assert mine, [str(f) for f in found]
    assert any(c.isdigit() for c in mine[0].evidence) and mine[0].change
    if line is not None:
        assert line in [f.line for f in mine], (line, [str(f) for f in found])


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_clean_twin_is_not_blamed(name, tmp_path):
    found = watched(variants(name)[2], tmp_path / f"{name}_clean.py")
    assert not found, [str(f) for f in found]


@pytest.mark.parametrize("name", CLEAN)
def test_clean_programs_are_not_blamed(name, tmp_path):
    found = watched(HEADER + CLEAN[name], tmp_path / f"{name}.py")
    assert not found, [str(f) for f in found]
