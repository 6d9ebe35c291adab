"""Variables that are None after one branch and a tensor or a number after the other."""

from __future__ import annotations

import export_models as models
import pytest
from test_kept_python import B, check, kept, rows

import clew
from clew.export import ExportError, export
from clew.nn import functional as F

ONE = ({0: B},)
EXAMPLE = (clew.ones(4, 3),)


def test_a_tensor_that_may_be_none():
    def f(x):
        more = None
        if x.sum() > 0:
            more = x * 2
        if more is not None:
            x = x + more
        top = None if x.max() < 1 else x.max()
        if top is not None and (top if top > 3 else top - 1):
            x = x + len(more if more is not None else x)
        y = x if top is None else x / top
        if top is not None and top > 2:
            y = y + 1
        if top is None or x.sum() < 0:
            return y, more is None
        return y * top, more is None

    check(f)


def test_a_number_and_what_helpers_are_given():
    def helper(x, mask=None, scale=None):
        if mask is not None:
            x = clew.where(mask, x, clew.zeros(()))
        if scale is None:
            scale = 1.0
        return x * scale

    def f(x):
        mask = scale = None
        if x.sum() > 0:
            mask = x > 0
        if x.max() > 1:
            scale = 2.0
        other = None
        if x.sum() > 1:
            other = x
        if other is None:
            other = -x
        return helper(x, mask, scale=scale) + other

    check(f)


def test_the_last_one_that_was_found():
    def f(x):
        last = None
        for row in x:
            if row.sum() > 0:
                if last is not None:
                    row = row + last
                last = row
        return last if last is not None else x[0] * 0

    with pytest.warns(UserWarning, match="relies on"):  # that there is a round
        check(f)


def test_the_first_one_that_is_found():
    def f(x):
        found = None
        for row in x:
            if row.sum() > 1:
                found = row * 2
                break
        if found is None:
            return x.mean(0)
        return found

    with pytest.warns(UserWarning, match="relies on"):
        check(f)


def test_a_check_that_it_is_there():
    def f(x):
        scale = None
        if x.sum() > 0:
            scale = x.sum()
        if scale is None:
            raise ValueError("nothing")
        return x * scale

    with pytest.warns(UserWarning, match="relies on"):
        kept(f, EXAMPLE, [(x.abs(),) for (x,) in rows(1, 3)], ONE)
    with pytest.raises(RuntimeError, match="test_kept_none.py.*if scale is None"):
        export(models.Net(f), EXAMPLE, dynamic_shapes=ONE).module()(-clew.ones(2, 3))


def test_what_may_be_none_is_not_used_as_if_it_were_there():
    def of(use):
        def f(x):
            other = None
            if x.sum() > 0:
                other = x > 0
            return use(x, other)

        return f

    def is_tensor(x, other):
        return isinstance(other, clew.Tensor)

    uses = (
        lambda x, other: x + other,
        lambda x, other: clew.where(other, x, 0),
        lambda x, other: x[other],
        lambda x, other: other.sum(),
        lambda x, other: F.scaled_dot_product_attention(x, x[:3], x[:3], attn_mask=other),
        is_tensor,
        lambda x, other: x if other.any() else -x,
        lambda x, other: [row * 2 for row in other],
        lambda x, other: x * len(other),
        lambda x, other: (x, other),
    )
    for use in uses:
        with pytest.raises(ExportError, match=r"'other' may be None.*if x.sum\(\) > 0.*is not No"):
            export(models.Net(of(use)), EXAMPLE)

    def wrong_way(x):
        other = None
        if x.sum() > 0:
            other = x
        return x if other is not None else x + other

    with pytest.raises(ExportError, match="'other' may be None"):
        export(models.Net(wrong_way), EXAMPLE)
