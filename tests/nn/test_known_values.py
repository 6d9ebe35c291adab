"""Layers made from seed 0 give the same numbers as in PyTorch 2.13, stored here."""

from __future__ import annotations

import numpy as np
import pytest

import clew
from clew import nn

KNOWN = {
    "Linear": [-0.821886, 0.0526046],
    "Conv2d": [0.816492, -3.4211],
    "LSTM": [0.0245529, -0.126514, 0.0627719, 0.11027, 0.0370425, -0.163954, 0.0263016, 0.0871413],
    "GRU": [-0.189831, -0.35569, -0.350061, -0.489036],
    "MultiheadAttention": [
        -0.246254, -0.0319472, -0.107348, 0.136462, -0.243885, -0.0401848, -0.107847, 0.141446,
    ],
    "TransformerEncoderLayer": [
        -1.38553, -0.0869593, 0.0331953, 1.4393, -1.36378, -0.121454, 0.0276599, 1.45758,
    ],
    "Transformer": [
        -0.994858, -0.234099, -0.43439, 1.66335, -0.993723, -0.231983, -0.437737, 1.66344,
    ],
    "Embedding": [1.541, -0.293429, -1.08452, -1.3986],
    "Bilinear": [-0.932155, 1.4013],
    "Dropout": [0, 0, 2, 0, 0, 0, 2, 2],
    "trunc_normal_": [0.403347, -0.293429, -0.719258, 0.568431, -0.596635, 0.182036],
    "orthogonal_": [0.573981, -0.109295, -0.811542, -0.345415, -0.930883, -0.118936],
    "kaiming_normal_": [1.25822, -0.239584, -1.77897, 0.464122, -0.885509, -1.14195],
    "xavier_uniform_": [-0.0082014, 0.587645, -0.901601, -0.806181, -0.421915, 0.293752],
    "sparse_": [0, -0.00293429, 0, 0.00568431, 0, -0.013986],
}  # fmt: skip


def steps(*shape):
    n = int(np.prod(shape))
    return clew.arange(float(n)).reshape(shape)


def eighths():
    return steps(2, 1, 4) / 8


MAKE = {
    "Linear": lambda: nn.Linear(3, 2)(clew.tensor([1.0, 2, 3])),
    "Conv2d": lambda: nn.Conv2d(2, 2, 2)(steps(1, 2, 2, 2)),
    "LSTM": lambda: nn.LSTM(2, 2, 2, bidirectional=True)(steps(2, 1, 2))[0],
    "GRU": lambda: nn.GRU(2, 2)(steps(2, 1, 2))[0],
    "MultiheadAttention": lambda: nn.MultiheadAttention(4, 2)(*[eighths()] * 3)[0],
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(4, 2, 8, 0.0)(eighths()),
    "Transformer": lambda: nn.Transformer(4, 2, 1, 1, 8, 0.0)(eighths(), eighths()),
    "Embedding": lambda: nn.Embedding(3, 2)(clew.tensor([0, 2])),
    "Bilinear": lambda: nn.Bilinear(2, 2, 2)(clew.ones(2), clew.tensor([1.0, 2])),
    "Dropout": lambda: nn.Dropout(0.5)(clew.ones(8)),
    "trunc_normal_": lambda: nn.init.trunc_normal_(clew.empty(2, 3), 0.0, 1.0, -1.0, 1.0),
    "orthogonal_": lambda: nn.init.orthogonal_(clew.empty(2, 3)),
    "kaiming_normal_": lambda: nn.init.kaiming_normal_(clew.empty(2, 3)),
    "xavier_uniform_": lambda: nn.init.xavier_uniform_(clew.empty(2, 3)),
    "sparse_": lambda: nn.init.sparse_(clew.empty(2, 3), 0.5),
}


@pytest.mark.parametrize("name", KNOWN)
def test_same_seed_same_numbers(name):
    clew.manual_seed(0)
    got = MAKE[name]().detach().numpy().ravel()
    np.testing.assert_allclose(got, KNOWN[name], rtol=2e-5, atol=2e-6)
