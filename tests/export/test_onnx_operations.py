"""Operations in ONNX files whose sizes vary, run by onnxruntime on sizes that the export has not
seen."""

from __future__ import annotations

import pytest
from test_onnx import B, both, exported

import clew
from clew import nn
from clew.export import Dim, ExportError
from clew.nn import functional as F

SIZES = (5, 1, 2, 9)


def rows(*shape):
    return [(clew.randn(n, *shape),) for n in SIZES]


def test_tensordot():
    def f(x, y):
        pairs = clew.tensordot(x, y, dims=([2, 1], [0, -2]))
        return pairs, clew.tensordot(x, y, 1), clew.tensordot(x, x, ([0, 1], [0, 1])), (
            clew.tensordot(x[:, 0, 0], y[0, 0], 0)
        )  # fmt: skip

    both(f, (clew.randn(4, 3, 5), clew.randn(5, 3, 2)),
         *[(x, clew.randn(5, 3, 2)) for (x,) in rows(3, 5)], shapes=({0: B}, None))  # fmt: skip


def test_tensordot_of_one_and_many_is_refused_where_that_is_known():
    with pytest.raises(ExportError, match="sizes 1 and 3 are paired"):
        exported(Pair(), (clew.ones(2, 1), clew.ones(3, 2)))


class Pair(nn.Module):
    def forward(self, x, y):
        return clew.tensordot(x, y, 1)


def test_logspace_and_linspace_of_named_ends():
    def f(x):
        n = x.shape[0]
        return (
            x[:, 0] * clew.logspace(0, 1, n), clew.logspace(-1, 2, 4, base=2.0),
            clew.logspace(1, 3, 3, dtype=clew.float64),
            clew.linspace(start=-1, end=1, steps=n), clew.linspace(0, end=n, steps=3),
        )  # fmt: skip

    both(f, (clew.randn(4, 3),), *rows(3), shapes=({0: B},))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_with_smoothing(reduction, weighted):
    weight = clew.tensor([1.0, 0.5, 2.0, 3.0]) if weighted else None

    def f(x, t):
        alike = {"weight": weight, "reduction": reduction}
        return F.cross_entropy(x, t, label_smoothing=0.2, **alike), F.cross_entropy(
            x, t, label_smoothing=0.3, ignore_index=1, **alike
        )

    def example(n, *more):
        return clew.randn(n, 4, *more), clew.arange(n * max(1, sum(more))).reshape(n, *more) * 3 % 4

    both(f, example(4), *map(example, (5, 3, 9)), shapes=({0: B}, {0: B}))
    both(f, example(4, 3), example(6, 3), shapes=({0: B}, {0: B}))
    both(f, (clew.randn(4), clew.tensor(2)), (clew.randn(4), clew.tensor(0)))


def test_rot90():
    def f(x):
        turned = [clew.rot90(x, k) for k in (-1, 0, 1, 2, 3, 4)]
        return *turned, clew.rot90(x, 1, (2, 0)), clew.rot90(x, 3, [-1, 1])

    both(f, (clew.randn(4, 3, 2),), *rows(3, 2), shapes=({0: B},))


def test_tensor_split():
    def f(x):
        n = x.shape[0]
        return (
            *clew.tensor_split(x, 3), *clew.tensor_split(x, (1, n - 1)), *x.tensor_split([-2, 7]),
            *clew.tensor_split(x, (n // 2,)), *clew.tensor_split(x.t(), 2, dim=1),
            *clew.vsplit(x, (1,)),
        )  # fmt: skip

    both(f, (clew.randn(4, 3),), *rows(3), shapes=({0: B},))


def test_hsplit_of_a_size_that_varies():
    def f(x):
        return clew.hsplit(x, 2)

    both(f, (clew.randn(3, 4),), (clew.randn(3, 6),), (clew.randn(3, 2),),
         shapes=({1: 2 * Dim("half")},))  # fmt: skip


def test_rows_are_exchanged_at_places_that_data_decide():
    def f(x):
        v = x.sum(1)
        for i in range(v.shape[0]):
            for j in range(v.shape[0] - 1 - i):
                if v[j] > v[j + 1]:
                    v[[j, j + 1]] = v[[j + 1, j]]
        return v

    both(f, (clew.randn(4, 3),), *rows(3), shapes=({0: B},))
