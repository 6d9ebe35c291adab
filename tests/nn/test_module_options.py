"""Every option of a module reaches the function that it stands for."""

from __future__ import annotations

import pytest
from module_cases import D, r

import clew
from clew import nn
from clew.nn import functional as F


def t(values):
    return clew.tensor(values, dtype=D)


CLASSES = clew.tensor([0, 2, 1])
WEIGHT = t([0.5, 2.0, 1.5])
SIGNS = t([1.0, -1.0, 1.0])
X = r(2, 3, 8)
X2, X3 = r(2, 3, 6, 6), r(2, 3, 6, 6, 6)
ROWS, OTHER, THIRD = r(3, 3), r(3, 3), r(3, 3)
POSITIVE = r(3, 3).abs() + 0.1

# All options of each module, none with its default.
POOLS = {
    "avg 1d": (nn.AvgPool1d(3, 2, 1, True, False), F.avg_pool1d, X, (3, 2, 1, True, False)),
    "avg 2d": (nn.AvgPool2d(3, 2, 1, True, False, 5), F.avg_pool2d, X2, (3, 2, 1, True, False, 5)),
    "avg 3d": (nn.AvgPool3d(3, 2, 1, True, False, 5), F.avg_pool3d, X3, (3, 2, 1, True, False, 5)),
    "max 1d": (nn.MaxPool1d(2, 3, 1, 2, False, True), F.max_pool1d, X, (2, 3, 1, 2, True)),
    "max 2d": (nn.MaxPool2d(2, 3, 1, 2, False, True), F.max_pool2d, X2, (2, 3, 1, 2, True)),
    "max 3d": (nn.MaxPool3d(2, 3, 1, 2, False, True), F.max_pool3d, X3, (2, 3, 1, 2, True)),
    "power 1d": (nn.LPPool1d(3, 3, 2, True), F.lp_pool1d, X.abs(), (3.0, 3, 2, True)),
    "power 2d": (nn.LPPool2d(3, 3, 2, True), F.lp_pool2d, X2.abs(), (3.0, 3, 2, True)),
    "local response": (
        nn.LocalResponseNorm(3, 0.5, 0.6, 0.7),
        F.local_response_norm,
        X,
        (3, 0.5, 0.6, 0.7),
    ),
}
OTHERS = {
    "MultiMarginLoss": (
        nn.MultiMarginLoss(2, 0.5, WEIGHT, reduction="sum"),
        lambda: F.multi_margin_loss(ROWS, CLASSES, 2, 0.5, WEIGHT, reduction="sum"),
        (ROWS, CLASSES),
    ),
    "TripletMarginLoss": (
        nn.TripletMarginLoss(0.5, 1.0, 0.1, True, reduction="sum"),
        lambda: F.triplet_margin_loss(
            ROWS, OTHER, THIRD, 0.5, 1.0, 0.1, swap=True, reduction="sum"
        ),
        (ROWS, OTHER, THIRD),
    ),
    "CosineEmbeddingLoss": (
        nn.CosineEmbeddingLoss(0.3, reduction="sum"),
        lambda: F.cosine_embedding_loss(ROWS, OTHER, SIGNS, 0.3, reduction="sum"),
        (ROWS, OTHER, SIGNS),
    ),
    "HingeEmbeddingLoss": (
        nn.HingeEmbeddingLoss(0.3, reduction="sum"),
        lambda: F.hinge_embedding_loss(ROWS[0], SIGNS, 0.3, reduction="sum"),
        (ROWS[0], SIGNS),
    ),
    "MarginRankingLoss": (
        nn.MarginRankingLoss(0.3, reduction="sum"),
        lambda: F.margin_ranking_loss(ROWS[0], OTHER[0], SIGNS, 0.3, reduction="sum"),
        (ROWS[0], OTHER[0], SIGNS),
    ),
    "GaussianNLLLoss": (
        nn.GaussianNLLLoss(full=True, eps=0.5, reduction="sum"),
        lambda: F.gaussian_nll_loss(ROWS, OTHER, POSITIVE, True, 0.5, "sum"),
        (ROWS, OTHER, POSITIVE),
    ),
    "PoissonNLLLoss": (
        nn.PoissonNLLLoss(log_input=False, full=True, eps=0.3, reduction="sum"),
        lambda: F.poisson_nll_loss(POSITIVE, CLASSES, False, True, eps=0.3, reduction="sum"),
        (POSITIVE, CLASSES),
    ),
    "HuberLoss": (
        nn.HuberLoss("sum", 0.2),
        lambda: F.huber_loss(ROWS, OTHER, "sum", 0.2),
        (ROWS, OTHER),
    ),
    "SmoothL1Loss": (
        nn.SmoothL1Loss(reduction="sum", beta=0.2),
        lambda: F.smooth_l1_loss(ROWS, OTHER, reduction="sum", beta=0.2),
        (ROWS, OTHER),
    ),
    "KLDivLoss": (
        nn.KLDivLoss(reduction="batchmean", log_target=True),
        lambda: F.kl_div(ROWS, OTHER, reduction="batchmean", log_target=True),
        (ROWS, OTHER),
    ),
    "NLLLoss": (
        nn.NLLLoss(WEIGHT, ignore_index=2, reduction="sum"),
        lambda: F.nll_loss(ROWS, CLASSES, WEIGHT, ignore_index=2, reduction="sum"),
        (ROWS, CLASSES),
    ),
    "CrossEntropyLoss": (
        nn.CrossEntropyLoss(WEIGHT, ignore_index=2, reduction="sum", label_smoothing=0.2),
        lambda: F.cross_entropy(
            ROWS, CLASSES, WEIGHT, ignore_index=2, reduction="sum", label_smoothing=0.2
        ),
        (ROWS, CLASSES),
    ),
    "BCEWithLogitsLoss": (
        nn.BCEWithLogitsLoss(WEIGHT, reduction="sum", pos_weight=WEIGHT.flip(0)),
        lambda: F.binary_cross_entropy_with_logits(
            ROWS, POSITIVE, WEIGHT, reduction="sum", pos_weight=WEIGHT.flip(0)
        ),
        (ROWS, POSITIVE),
    ),
    "BCELoss": (
        nn.BCELoss(WEIGHT, reduction="sum"),
        lambda: F.binary_cross_entropy(ROWS.sigmoid(), OTHER.sigmoid(), WEIGHT, reduction="sum"),
        (ROWS.sigmoid(), OTHER.sigmoid()),
    ),
    "MultiLabelSoftMarginLoss": (
        nn.MultiLabelSoftMarginLoss(WEIGHT, reduction="sum"),
        lambda: F.multilabel_soft_margin_loss(ROWS, (OTHER > 0).to(D), WEIGHT, reduction="sum"),
        (ROWS, (OTHER > 0).to(D)),
    ),
    "PairwiseDistance": (
        nn.PairwiseDistance(3.0, 0.1, True),
        lambda: F.pairwise_distance(ROWS, OTHER, 3.0, 0.1, True),
        (ROWS, OTHER),
    ),
    "CosineSimilarity": (
        nn.CosineSimilarity(0, 5.0),
        lambda: F.cosine_similarity(ROWS, OTHER, 0, 5.0),
        (ROWS, OTHER),
    ),
    "Softplus": (nn.Softplus(2.0, 0.5), lambda: F.softplus(ROWS, 2.0, 0.5), (ROWS,)),
    "Hardtanh": (nn.Hardtanh(-0.3, 0.2), lambda: F.hardtanh(ROWS, -0.3, 0.2), (ROWS,)),
    "ELU": (nn.ELU(0.3), lambda: F.elu(ROWS, 0.3), (ROWS,)),
    "CELU": (nn.CELU(0.3), lambda: F.celu(ROWS, 0.3), (ROWS,)),
    "LeakyReLU": (nn.LeakyReLU(0.3), lambda: F.leaky_relu(ROWS, 0.3), (ROWS,)),
    "Hardshrink": (nn.Hardshrink(0.3), lambda: F.hardshrink(ROWS, 0.3), (ROWS,)),
    "Softshrink": (nn.Softshrink(0.3), lambda: F.softshrink(ROWS, 0.3), (ROWS,)),
    "Threshold": (nn.Threshold(0.3, 4.0), lambda: F.threshold(ROWS, 0.3, 4.0), (ROWS,)),
    "GLU": (nn.GLU(0), lambda: F.glu(X, 0), (X,)),
    "GELU": (nn.GELU("tanh"), lambda: F.gelu(ROWS, approximate="tanh"), (ROWS,)),
    "Softmax2d of three": (nn.Softmax2d(), lambda: F.softmax(X, 0), (X,)),
    "Unfold": (
        nn.Unfold(2, 2, 1, 3),
        lambda: F.unfold(X2, 2, dilation=2, padding=1, stride=3),
        (X2,),
    ),
}


@pytest.mark.parametrize("name", POOLS)
def test_pools(name):
    module, function, x, arguments = POOLS[name]
    if name.startswith("max"):
        *others, ceil = arguments
        assert module(x).equal(function(x, *others, ceil_mode=ceil))
        module.return_indices = True
        want = function(x, *others, ceil_mode=ceil, return_indices=True)
        assert all(a.equal(b) for a, b in zip(module(x), want, strict=True))
    else:
        assert module(x).equal(function(x, *arguments))


@pytest.mark.parametrize("name", OTHERS)
def test_others(name):
    module, want, inputs = OTHERS[name]
    assert module(*inputs).equal(want())


def test_output_sizes_of_transposed_convolutions():
    layer, x = nn.ConvTranspose1d(2, 4, 2, stride=3, dtype=D), r(5, 2, 3)
    for size in (8, 9, 10):  # two further places lie behind the last window
        for given in ((size,), (4, size), (5, 4, size)):
            assert layer(x, given).shape == (5, 4, size)
    assert layer(x, (9,)).equal(
        F.conv_transpose1d(x, layer.weight, layer.bias, stride=3, output_padding=1)
    )
    for size in (7, 11):
        with pytest.raises(ValueError, match="valid sizes range from"):
            layer(x, (size,))
    assert layer(x[0], (4, 9)).shape == (4, 9)
