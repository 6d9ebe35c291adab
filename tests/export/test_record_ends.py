"""Recording leaves nothing of its own behind."""

from __future__ import annotations

import subprocess
import sys

import clew

PROGRAM = """
import sys

import clew

sys.path.insert(0, sys.argv[1])

class Net(clew.nn.Module):
    def forward(self, x):
        if type(clew.zeros).__name__ == "function":  # a stand-in
            import fresh
            return x + fresh.zeros(3)
        return x + clew.zeros(3)

before = clew.zeros
clew.export.export(Net(), (clew.ones(3),))
import fresh
assert fresh.zeros is before, fresh.zeros
"""


def test_what_is_first_asked_for_while_recording_is_the_library_s(tmp_path):
    (tmp_path / "fresh.py").write_text("from clew import zeros\n")
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr


class Told(clew.nn.Module):
    def forward(self, x):
        known = clew.compiler.is_exporting(), clew.compiler.is_compiling()
        assert known in ((True, True), (False, False))
        return x * 2 if known[0] else x + x


def test_a_model_can_ask_whether_it_is_exported():
    program = clew.export.export(Told(), (clew.ones(3),))
    assert "mul" in str(program) and not clew.compiler.is_exporting()
