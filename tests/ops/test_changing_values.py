"""Values that decide addresses may change while a kernel reads them: garbage out, no crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import changing_values
import pytest

OFTEN = ["cross_entropy", "embedding", "gather_strided", "index_writes", "scatter_reduce", "unique"]


def survives(case: str, seconds: float) -> None:
    script = Path(changing_values.__file__)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), case, str(seconds)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{case}: {done.returncode}\n{done.stderr[-2000:]}"
    assert " runs, " in done.stdout


@pytest.mark.parametrize("case", OFTEN)
def test_a_short_while(case: str):
    survives(case, 0.3)


@pytest.mark.slow
@pytest.mark.parametrize("case", changing_values.CASES)
def test_some_seconds(case: str):
    survives(case, 4.0)
