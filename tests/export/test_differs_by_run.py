"""Values that differ from run to run are refused, however little they differ."""

import itertools
import time

import pytest

import clew
from clew import nn
from clew.export import ExportError, export

X = (clew.randn(3, 2),)


class Clock(nn.Module):
    def forward(self, x):
        return x * time.time()


class ClockInATensor(nn.Module):
    def forward(self, x):
        return x + clew.tensor([time.perf_counter()]) * 1e-9


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.numbers = itertools.count()

    def forward(self, x):
        return x + next(self.numbers) * 1e-7


class ClockInABranch(nn.Module):
    def forward(self, x):
        scale = time.time() if x.sum() > 0 else 1.0
        return x * scale


class Stamped(nn.Module):
    def forward(self, x):
        return x * 2, {"at": time.time()}


@pytest.mark.parametrize("model", [Clock, ClockInATensor, ClockInABranch, Counter])
def test_a_value_that_changes_is_told_with_its_line(model):
    with pytest.raises(ExportError, match=r"differs from run to run.*test_differs_by_run\.py:\d+"):
        export(model(), X)


def test_a_result_that_changes_is_told():
    with pytest.raises(ExportError, match="differs from run to run.*in what the model returns"):
        export(Stamped(), X)


def test_what_stays_is_kept():
    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.made_at = time.time()

        def forward(self, x):
            return x * self.made_at + clew.tensor([float("nan"), 1.0])

    class Cached(nn.Module):
        mask = None

        def forward(self, x):
            if self.mask is None:
                self.mask = clew.ones(2).tril().diagonal() if x.dim() == 3 else clew.ones(2) * 3
            return x * self.mask

    clew.testing.assert_close(export(Cached(), X).module()(*X), X[0] * 3)
    model = Fixed()
    clew.testing.assert_close(export(model, X).module()(*X), model(*X), equal_nan=True)
