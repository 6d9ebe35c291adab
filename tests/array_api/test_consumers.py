"""Libraries that are written against the Array API take clew's tensors and answer with them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCIPY = """
import numpy as np, scipy, clew, scipy.special, scipy.stats, scipy.fft, scipy.cluster.vq
a = np.random.default_rng(0).normal(size=(12, 3))
calls = [
    lambda x: scipy.special.logsumexp(x, axis=0), lambda x: scipy.special.softmax(x, axis=1),
    lambda x: scipy.stats.zscore(x), lambda x: scipy.stats.kurtosis(x), lambda x: scipy.fft.dct(x),
    lambda x: scipy.fft.rfft(x, axis=0), lambda x: scipy.cluster.vq.whiten(x),
    lambda x: scipy.stats.ttest_1samp(x, 0.0).pvalue, lambda x: scipy.special.erf(x),
]
for call in calls:
    got = call(clew.tensor(a))
    assert isinstance(got, clew.Tensor), type(got)
    np.testing.assert_allclose(got.numpy(), call(a), atol=1e-10)
x = clew.tensor([1.0, 2.0, 3.0], requires_grad=True)
scipy.special.logsumexp(x).backward()
np.testing.assert_allclose(x.grad.numpy(), scipy.special.softmax([1.0, 2.0, 3.0]), rtol=1e-6)
"""
SKLEARN = """
import numpy as np, sklearn, clew
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import StandardScaler
sklearn.set_config(array_api_dispatch=True)
a = np.random.default_rng(0).normal(size=(30, 4))
y = a @ np.array([1.0, -2.0, 0.0, 3.0]) + 0.5
calls = [
    lambda x, y: Ridge(solver="svd").fit(x, y).predict(x),
    lambda x, y: abs(PCA(2, svd_solver="full").fit_transform(x)),
    lambda x, y: StandardScaler().fit_transform(x),
]
for call in calls:
    got = call(clew.tensor(a), clew.tensor(y))
    assert isinstance(got, clew.Tensor), type(got)
    np.testing.assert_allclose(got.numpy(), call(a, y), atol=1e-8)
c = clew.tensor(y) > 0
assert accuracy_score(c.int(), c.int()) == 1.0
"""


@pytest.mark.parametrize(
    ("library", "least", "program"),
    [("scipy", "1.16", SCIPY), ("sklearn", "1.6", SKLEARN)],
    ids=["scipy", "sklearn"],
)
def test_library(library: str, least: str, program: str):
    pytest.importorskip("scipy", "1.16")
    pytest.importorskip(library, least)
    source = str(Path(__file__).parents[2] / "src")
    path = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
    # SciPy reads the switch when it is imported.
    got = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert got.returncode == 0, got.stderr[-2000:]
