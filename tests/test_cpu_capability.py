"""Which instruction set's loops run, and that all of them give the same within rounding."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import clew

SETS = ["DEFAULT", "AVX2", "AVX512"]
PROGRAM = """
import clew
clew.manual_seed(0)
a, b = clew.randn(37, 41, dtype=clew.float64), clew.randn(41, 29, dtype=clew.float64)
whole = clew.arange(-600, 600).reshape(30, 40)
results = [(a @ b).tanh().softmax(1).sum(0), (whole @ whole.mT).double().sum(0),
           a.float().exp().cumsum(0).double().mean(1), a.sort(0).values.std(1)]
print(clew.backends.cpu.get_cpu_capability(), *clew.cat(results).tolist())
"""


BITS = """
import clew
x = clew.arange(-8, 8, 0.001)
print(clew.backends.cpu.get_cpu_capability(), x.sinh().numpy().tobytes().hex())
"""


def run(capability: str | None, program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "ATEN_CPU_CAPABILITY"}
    if capability is not None:
        environment["ATEN_CPU_CAPABILITY"] = capability
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


@pytest.mark.parametrize("capability", ["default", "avx2", "avx512"])
def test_the_environment_chooses_among_those_that_the_processor_has(capability):
    best, *expected = run(None).stdout.split()
    done = run(capability)
    if "one instruction set only" in done.stderr:
        assert done.stdout.split() == [best, *expected]
        pytest.skip("this build has the loops of one set only")
    chosen, *got = done.stdout.split()
    assert SETS.index(chosen) == min(SETS.index(best), SETS.index(capability.upper()))
    clew.testing.assert_close(
        clew.tensor([float(x) for x in got], dtype=clew.float64),
        clew.tensor([float(x) for x in expected], dtype=clew.float64),
        rtol=1e-6,
        atol=1e-12,
    )


def test_another_value_is_told_and_ignored():
    done = run("avx3")
    assert "must be default, avx2 or avx512; got avx3" in done.stderr
    assert done.stdout == run(None).stdout


def test_elementwise_loops_are_of_that_set_too():
    # Products and sums are rounded once where they are fused, twice where the set has no such.
    best, bits = run(None, BITS).stdout.split()
    plain = run("default", BITS)
    if best == "DEFAULT" or "one instruction set only" in plain.stderr:
        pytest.skip("there is one set only")
    assert plain.stdout.split()[0] == "DEFAULT" and plain.stdout.split()[1] != bits
