"""Tensors that an `if` or a loop passes on and that are written to: kept, or refused for ONNX."""

from __future__ import annotations

import io

import export_models
import numpy as np
import pytest
from test_kept_python import agree, kept, leaves

import clew
from clew.export import Dim, ExportError, export, load, save

ANY = ({0: Dim("n", min=1)},)


def written_after_a_choice(x):
    b = x * 1
    h = b if x.sum() > 0 else b * 2
    h += 1
    return h, b


def the_other_is_written(x):
    b = x * 1
    h = b if x.sum() > 0 else x * 2
    b += 1
    return h


def a_part_is_written(x):
    b = x * 1
    top = b[:1] if x.sum() > 0 else b[1:2]
    top += 1
    return b


def an_element_of_a_list(x):
    buffers = [x * 0, x * 1, x * 2]
    b = buffers[int(x.sum(0).argmax())]
    b.mul_(3)
    return b + buffers[0] + buffers[1]


def in_the_first_round(x):
    y = x * 1
    h = y
    while h.norm() > 1:
        h *= 0.5
        h = h * 0.9
    return h, y


def what_any_round_made(x):
    a = x * 1
    b = a
    for row in x:
        if row.sum() > 0:
            b = a
        elif row[0] > 0:
            a = a * 0.5
        a += row
    return a, b


def behind_a_loop(x):
    y = x * 1
    h = y
    while h.norm() > 1:
        h = h * 0.5
    h += 1
    return h, y


SHARED = [
    written_after_a_choice, the_other_is_written, a_part_is_written, an_element_of_a_list,
    in_the_first_round, what_any_round_made, behind_a_loop,
]  # fmt: skip


def read_no_more(x):
    b = x * 1
    h = b if x.sum() > 0 else b * 2
    h += 1
    return h


def made_in_the_branch(x):
    b = x * 1
    h = b + 1 if x.sum() > 0 else b * 2
    h += 1
    return h, b


def new_in_each_round(x):
    h = x * 1
    for row in x:
        h *= 0.5
        h = h + row
    return h


def written_before(x):
    d = x * 1
    d[0] = 0
    for row in x:
        d = d * 0.5 + row
    e = d
    e += 1
    return d, e


def centres(x):
    """k-means: the variable is what a round began with, or a copy that the round has written to."""
    c = x[:2].clone()
    for _ in range(20):
        nearest = (x[:, None] - c).norm(dim=-1).argmin(1)
        new = c.clone()
        for k in range(2):
            chosen = nearest == k
            if chosen.any():
                new[k] = x[chosen].mean(0)
        if clew.allclose(new, c):
            break
        c = new
    return c, nearest


def centres_in_place(x):
    c = x[:2].clone()
    shift = clew.tensor(1.0)
    while shift > 1e-4:
        nearest = (x[:, None] - c).norm(dim=-1).argmin(1)
        old = c.clone()
        for k, row in enumerate(c):
            chosen = x[nearest == k]
            if len(chosen) > 0:
                row.copy_(chosen.mean(0))
        shift = (c - old).norm()
    return c


def what_the_round_before_made(x):
    a = x * 1
    before = a
    for row in x:
        before = a
        a = before * 0.5
        a += row
    return a, before


def read_in_the_other_branch(x):
    b = x * 1
    h = b if x.sum() > 0 else b * 2
    if x.max() > 1:
        h += 1
        y = h * 3
    else:
        y = b + h
    return y


APART = [
    read_no_more,
    made_in_the_branch,
    new_in_each_round,
    written_before,
    centres,
    centres_in_place,
    what_the_round_before_made,
    read_in_the_other_branch,
]
SHAPES = ({0: Dim("n", min=2)},)


def inputs():
    clew.manual_seed(4)
    return [clew.randn(n, 3) + s for n in (2, 3, 5) for s in (0.0, 1.5, -1.5, 0.1)]


@pytest.mark.parametrize("function", SHARED)
def test_shared_tensors(function):
    for example in (clew.rand(4, 3), -clew.rand(4, 3)):
        file = io.BytesIO()
        save(export(export_models.Net(function), (example,), dynamic_shapes=SHAPES), file)
        program = load(io.BytesIO(file.getvalue())).module()
        for x in inputs():
            agree(leaves(function(x.clone())), leaves(program(x.clone())))
        pytest.importorskip("onnx")
        with pytest.raises(ExportError, match=r"(?s)passed on is written to.*aliases.py:.*clone"):
            clew.onnx.export(export_models.Net(function), (example,), dynamic_shapes=SHAPES)


@pytest.mark.parametrize("function", APART)
def test_tensors_of_ones_own(function):
    for example in (clew.rand(4, 3), -clew.rand(4, 3)):
        kept(export_models.Net(function), (example,), [(x,) for x in inputs()], SHAPES)


def test_what_branches_within_branches_pass_on():
    def passes(x):
        a, b = x * 1.0, x + 0.5
        if x.sum() > 2:
            b = (a if x[0] > 1 else x) if x[0] > 1 else (-a if x[0] > 1 else clew.tanh(x))
        a.mul_(0.5)
        return a, b

    def in_a_loop(x):
        a, b = x * 1.0, x + 0.5
        for row in x:
            if row > 0:
                b = a if row > 1 else b * 2
        a.mul_(0.5)
        return a, b

    def swapped(x):
        a, b = x * 1.0, x + 0.5
        for row in x:
            if row > 0:
                a, b = (b, a) if row > 1 else (a, b)
        a.mul_(0.5)
        return a, b

    for f in (passes, in_a_loop, swapped):
        with pytest.raises(ExportError, match="may have passed on"):
            clew.onnx.export(export_models.Net(f), (clew.randn(3),), dynamic_shapes=ANY)


def test_writes_within_branches_of_loops_are_no_such():
    def f(x):
        total = clew.zeros(())
        for row in x:
            if row > 0:
                y = row.clone()
                if row > 1:
                    y += 1
                y *= 2
            else:
                y = row * 0.5
            total = total + y
        return total

    made = clew.onnx.export(export_models.Net(f), (clew.randn(3),), dynamic_shapes=ANY)
    for x in (clew.randn(5) * 2, clew.ones(1), -clew.ones(2)):
        np.testing.assert_allclose(made(x)[0], f(x), rtol=1e-5)


def test_two_results_of_one_branch_that_are_one_tensor():
    def branch(x):
        a, b = x * 1.0, x + 0.5
        if x.sum() > 0:
            a = a * 2
            b = a.view(-1)
        a += 1
        return a, b

    def loop(x):
        a, b = x * 1.0, x + 0.5
        for row in x:
            a = a + row
            b = a.detach()
        a[:1].mul_(2)
        return b

    def inner(x):
        a, b = x * 1.0, x + 0.5
        if x.sum() > 0:
            a = a * 2
            b = a if x.max() > 1 else a * 3
        b += 1
        return a, b

    def next_round(x):
        a, b = x * 1.0, x + 0.5
        for row in x:
            b = b * 1
            a.add_(row)
            a = b
        return a, b

    for f in (branch, loop, inner, next_round):
        with pytest.raises(ExportError, match="may have passed on"):
            clew.onnx.export(export_models.Net(f), (-clew.ones(3),), dynamic_shapes=ANY)
