"""What tests of the profiler share."""

import pytest

from clew import _C


@pytest.fixture(autouse=True)
def _nothing_left():
    yield
    assert not _C._trace_running()
    assert _C._set_intercept(0) == 0
