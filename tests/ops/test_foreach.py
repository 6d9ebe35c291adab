"""Operations on every tensor of a list: each as the method of its name."""

from __future__ import annotations

import pytest

import clew
from clew._ops import foreach

OWN = {"maximum": "clamp_min", "minimum": "clamp_max"}


def tensors() -> list[clew.Tensor]:
    clew.manual_seed(0)
    shapes = [(3, 4), (), (0,), (5,)]
    return [clew.rand(shape, dtype=clew.float64) * 0.8 + 0.1 for shape in shapes]


def assert_equal(got, want):
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.dtype == w.dtype and clew.equal(g, w)


def check(short: str, *columns, rows, **options):
    """Both forms; `rows` are the operands of each tensor."""
    own = OWN.get(short, short)
    want = [getattr(t, own)(*row, **options) for t, row in zip(tensors(), rows)]
    got = getattr(clew, f"_foreach_{short}")(tensors(), *columns, **options)
    assert isinstance(got, tuple)
    assert_equal(got, want)
    written = tensors()
    versions = [t._version for t in written]
    assert getattr(clew, f"_foreach_{short}_")(written, *columns, **options) is written
    assert_equal(written, want)
    assert all(t._version > v for t, v in zip(written, versions))


@pytest.mark.parametrize("short", foreach._UNARY)
def test_unary(short: str):
    check(short, rows=[()] * 4)


@pytest.mark.parametrize("short", foreach._BINARY)
def test_binary(short: str):
    check(short, 0.5, rows=[(0.5,)] * 4)
    check(short, [0.5, 1, 2.0, 3.0], rows=[(0.5,), (1,), (2.0,), (3.0,)])
    others = [t + 0.25 for t in tensors()]
    check(short, others, rows=[(t,) for t in others])


def test_ternary():
    first, second = [t + 1 for t in tensors()], [t + 2 for t in tensors()]
    rows = list(zip(first, second))
    for short in ("addcmul", "addcdiv"):
        check(short, first, second, rows=rows)
        check(short, first, second, rows=rows, value=0.5)
        want = [getattr(t, short)(*row, value=i) for i, (t, row) in enumerate(zip(tensors(), rows))]
        assert_equal(getattr(clew, f"_foreach_{short}")(tensors(), first, second, range4()), want)
        assert_equal(
            getattr(clew, f"_foreach_{short}")(tensors(), first, second, clew.arange(4.0)), want
        )
    check("lerp", first, 0.25, rows=[(t, 0.25) for t in first])
    check("lerp", first, second, rows=rows)


def range4() -> list[float]:
    return [0.0, 1.0, 2.0, 3.0]


def test_alpha_keywords_and_a_number_to_powers():
    others = [t + 1 for t in tensors()]
    check("add", others, rows=[(t,) for t in others], alpha=0.5)
    check("sub", others, rows=[(t,) for t in others], alpha=2)
    want = [t.pow(2) for t in tensors()]
    assert_equal(clew._foreach_pow(tensors(), exponent=2), want)
    assert_equal(clew._foreach_pow(2.0, tensors()), [2.0**t for t in tensors()])


def test_gradients_pass():
    xs = [clew.ones(2, requires_grad=True), clew.full((3,), 2.0, requires_grad=True)]
    sum(t.sum() for t in clew._foreach_mul(xs, [3.0, 4.0])).backward()
    assert [x.grad.tolist() for x in xs] == [[3.0] * 2, [4.0] * 3]
    ys = [x * 1 for x in xs]
    clew._foreach_mul_(ys, [3.0, 4.0])
    sum(y.sum() for y in ys).backward()
    assert [x.grad.tolist() for x in xs] == [[6.0] * 2, [8.0] * 3]


def test_copies_zeros_norms_and_maxima():
    into = [t * 0 for t in tensors()]
    assert clew._foreach_copy_(into, tensors()) is into
    assert_equal(into, tensors())
    assert_equal(clew._foreach_norm(into, 1), [clew.linalg.vector_norm(t, 1) for t in into])
    full = [into[0], into[1], into[3]]
    assert_equal(clew._foreach_max(full), [t.max() for t in full])
    assert_equal(clew._foreach_powsum(into, 3), [t.pow(3).sum() for t in into])
    assert clew._foreach_powsum(into, dtype=clew.float32)[0].dtype == clew.float32
    copies = clew._foreach_clone(into)
    assert isinstance(copies, tuple)
    assert_equal(copies, into)
    assert_equal(clew._foreach_mm([into[0]], [into[0].mT]), [into[0] @ into[0].mT])
    assert clew._foreach_zero_(into) is into
    assert copies[0].all()
    assert not any(t.any() for t in into)


def test_unscaling_says_what_is_not_finite():
    found = clew.zeros(1)
    grads = [clew.full((2,), 8.0), clew.full((1,), 4.0)]
    clew._amp_foreach_non_finite_check_and_unscale_(grads, found, clew.tensor(0.25))
    assert [g.tolist() for g in grads] == [[2.0, 2.0], [1.0]] and found.item() == 0
    grads[0][1] = clew.inf
    clew._amp_foreach_non_finite_check_and_unscale_(grads, found, clew.tensor(0.25))
    assert found.item() == 1


def test_refusals():
    xs = tensors()
    with pytest.raises(RuntimeError, match="same number"):
        clew._foreach_add(xs, [1.0])
    with pytest.raises(TypeError, match="expected a list of tensors; got Tensor"):
        clew._foreach_add(xs[0], 1.0)
    with pytest.raises(TypeError, match="takes 2 operands; got 1"):
        clew._foreach_addcmul(xs, xs)
