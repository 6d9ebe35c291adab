"""Top-level names of nn.functional's functions, and constants."""

from __future__ import annotations

import math

import pytest

import clew
from clew.nn import functional as F


def test_constants():
    assert (clew.pi, clew.e, clew.inf) == (math.pi, math.e, math.inf)
    assert math.isnan(clew.nan) and clew.newaxis is None
    assert clew.ones(2)[clew.newaxis].shape == (1, 2)


@pytest.mark.parametrize(("number", "word"), [(0, "none"), (1, "mean"), (2, "sum")])
def test_losses_take_a_number_for_the_reduction(number, word):
    clew.manual_seed(0)
    x, y, z = clew.randn(4, 3), clew.randn(4, 3), clew.randn(4, 3)
    sign = clew.tensor([1.0, -1.0, 1.0, -1.0])
    probs = clew.rand(4, 3)
    pairs = [
        (
            clew.binary_cross_entropy_with_logits(x, probs, reduction=number),
            F.binary_cross_entropy_with_logits(x, probs, reduction=word),
        ),
        (
            clew.cosine_embedding_loss(x, y, sign, 0.1, number),
            F.cosine_embedding_loss(x, y, sign, 0.1, reduction=word),
        ),
        (
            clew.hinge_embedding_loss(x[:, 0], sign, 1.0, number),
            F.hinge_embedding_loss(x[:, 0], sign, reduction=word),
        ),
        (
            clew.margin_ranking_loss(x[:, 0], y[:, 0], sign, 0.2, number),
            F.margin_ranking_loss(x[:, 0], y[:, 0], sign, 0.2, reduction=word),
        ),
        (
            clew.poisson_nll_loss(x, probs, True, False, 1e-8, number),
            F.poisson_nll_loss(x, probs, reduction=word),
        ),
        (
            clew.triplet_margin_loss(x, y, z, swap=True, reduction=number),
            F.triplet_margin_loss(x, y, z, swap=True, reduction=word),
        ),
        (
            clew.ctc_loss(
                clew.randn(5, 2, 3, generator=clew.Generator().manual_seed(1)).log_softmax(2),
                clew.tensor([[1, 2], [2, 1]]),
                (5, 5),
                (2, 1),
                reduction=number,
            ),
            F.ctc_loss(
                clew.randn(5, 2, 3, generator=clew.Generator().manual_seed(1)).log_softmax(2),
                clew.tensor([[1, 2], [2, 1]]),
                (5, 5),
                (2, 1),
                reduction=word,
            ),
        ),
    ]
    for got, want in pairs:
        assert clew.equal(got, want)
    target = probs.softmax(1)
    want = F.kl_div(x.log_softmax(1), target, reduction="none")
    want = {"none": want, "mean": want.mean(), "sum": want.sum()}[word]
    assert clew.allclose(clew.kl_div(x.log_softmax(1), target, number), want)


def test_a_reduction_is_0_1_or_2():
    with pytest.raises(ValueError, match="reduction"):
        clew.kl_div(clew.ones(2), clew.ones(2), 3)


def test_norms_with_arguments_in_the_low_level_order():
    clew.manual_seed(0)
    x, w, b = clew.randn(4, 6, 5), clew.rand(6), clew.randn(6)
    mean, var = clew.zeros(6), clew.ones(6)
    got = clew.batch_norm(x, w, b, mean, var, True, 0.1, 1e-5, True)
    again = F.batch_norm(x, clew.zeros(6), clew.ones(6), w, b, True, 0.1, 1e-5)
    assert clew.equal(got, again) and mean.abs().sum() > 0
    got = clew.instance_norm(x, w, b, None, None, True, 0.1, 1e-5, False)
    assert clew.equal(got, F.instance_norm(x, weight=w, bias=b))
    assert clew.equal(clew.group_norm(x, 3, w, b), F.group_norm(x, 3, w, b))
    assert clew.equal(clew.layer_norm(x, [5]), F.layer_norm(x, [5]))


def test_pools():
    x = clew.randn(1, 2, 8)
    values, where = clew.max_pool1d_with_indices(x, 2)
    assert clew.equal(values, clew.max_pool1d(x, 2)) and where.shape == (1, 2, 4)
    values, where = clew.adaptive_max_pool1d(x, 3)
    assert clew.equal(x.gather(2, where), values)
    clew.manual_seed(1)
    a = clew.rrelu(x, training=True)
    clew.manual_seed(1)
    assert clew.equal(a, clew.rrelu_(x.clone(), training=True))


def test_numbers_alone_stand_for_tensors():
    assert clew.add(True, True).dtype == clew.bool and clew.add(True, True).item() is True
    assert clew.add(1, 2).dtype == clew.int64 and clew.mul(2, 3.0).dtype == clew.float32
    assert clew.add(1, 2, out=clew.empty(())).item() == 3
    with pytest.raises(TypeError):
        clew.maximum(1, 2)


def test_a_multiple_before_the_factors():
    x, y = clew.tensor([1.0, 2.0]), clew.tensor([3.0, 4.0])
    assert clew.addcmul(x, 2, x, y).tolist() == [7, 18]
    assert x.addcdiv(3, y, x).tolist() == [10, 8]
    assert x.clone().addcmul_(2, x, y).tolist() == [7, 18]


def test_nothing_to_join_or_turn():
    assert clew.tensor(3.0).mT.item() == 3 and clew.tensor(1j).mH.item() == -1j
    for dim in (0, 1, 2):
        assert clew.cat([clew.ones(0), clew.ones(0)], dim).shape == (0,)
    assert clew.block_diag().shape == (1, 0)
    with pytest.raises(ValueError, match="more than 1 value"):
        clew.nn.GroupNorm(3, 3)(clew.ones(1, 3))
    assert clew.nn.GroupNorm(3, 3)(clew.ones(2, 3)).shape == (2, 3)
    with pytest.raises(RuntimeError, match="complex"):
        clew.zeros(3).index_fill_(0, clew.tensor([0]), 1j)


def test_sizes_stay_sizes():
    size = clew.Size([1, 2])
    for made, want in [
        (size * 2, (1, 2, 1, 2)),
        (2 * size, (1, 2, 1, 2)),
        ((3,) + size, (3, 1, 2)),
    ]:
        assert made == want
    assert type(size * 2) is clew.Size and type((3,) + size) is clew.Size
    assert type(size + (3,)) is clew.Size


def test_a_capsule_is_an_array():
    x = clew.ones(3)
    y = clew.asarray(x.__dlpack__())
    y[0] = 5
    assert x.tolist() == [5, 1, 1]


def test_where_keeps_the_layout():
    x = clew.arange(24.0).view(2, 3, 4).permute(2, 0, 1)
    got = clew.where(x > 5, x, -1.0)
    assert (
        got.stride() == x.stride()
        and got.tolist() == clew.where((x > 5).contiguous(), x.contiguous(), -1.0).tolist()
    )
    image = clew.rand(2, 3, 4, 4).to(memory_format=clew.channels_last)
    assert clew.where(image > 0.5, image, image).is_contiguous(memory_format=clew.channels_last)
    assert image.masked_fill(image > 0.5, 0).is_contiguous()  # as in PyTorch
