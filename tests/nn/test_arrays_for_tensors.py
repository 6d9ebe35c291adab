"""Arrays and lists where a tensor is due: the error names the operation, the argument and a way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from module_cases import CASES

import clew
from clew import nn

# Modules that a first program calls; each input is given as an array, then as a list.
NAMES = """
Linear Conv1d Conv2d Conv3d ConvTranspose2d Embedding EmbeddingBag
BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm GroupNorm
ReLU GELU Softmax MaxPool1d MaxPool2d AvgPool2d AdaptiveAvgPool1d AdaptiveMaxPool1d
RNN LSTM GRU MultiheadAttention CircularPad1d PixelShuffle Upsample-nearest Upsample-bilinear
MSELoss SmoothL1Loss HuberLoss CrossEntropyLoss CrossEntropyLoss-probabilities NLLLoss
BCELoss BCEWithLogitsLoss KLDivLoss
MarginRankingLoss CosineEmbeddingLoss TripletMarginLoss MultiMarginLoss HingeEmbeddingLoss
""".split()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["array", "list"])
def test_each_input(name: str, kind: str):
    make, inputs = CASES[name][:2]
    module, given = make(), inputs()
    for at, one in enumerate(given):
        if not isinstance(one, clew.Tensor):
            continue
        plain: Any = one.detach().numpy() if kind == "array" else one.tolist()
        with pytest.raises(TypeError, match=r"must be Tensor, not (numpy\.)?(ndarray|list)"):
            module(*given[:at], plain, *given[at + 1 :])


@pytest.mark.parametrize(
    "call",
    [
        lambda x, a: nn.functional.mse_loss(a, a),
        lambda x, a: nn.functional.mse_loss(x, a.tolist()),
        lambda x, a: nn.functional.cross_entropy(x, a),
        lambda x, a: nn.functional.binary_cross_entropy(x, a),
        lambda x, a: nn.LSTM(2, 3)(a),
        lambda x, a: nn.BatchNorm1d(2)(a.tolist()),
    ],
)
def test_the_way_out_is_named(call: Any):
    x = clew.rand(3, 2)
    with pytest.raises(TypeError, match=r"\w\(\): argument '\w+' must .*; clew.tensor\(\) makes"):
        call(x, np.ones((3, 2), dtype=np.float32))


def test_an_argument_that_is_no_number_gets_no_advice():
    with pytest.raises(TypeError, match="'target' must be Tensor, not str$"):
        nn.functional.mse_loss(clew.ones(2), "a")


def test_losses_given_tensors_in_place_of_a_call():
    x = clew.ones(2, 3)
    with pytest.raises(RuntimeError, match=r"size_average must be a bool.*\[2, 3\].*MSELoss\(\)\("):
        nn.MSELoss(x, x)
    with pytest.raises(RuntimeError, match="reduce must be a bool"):
        nn.functional.l1_loss(x, x, None, x)


def test_a_reduction_that_is_none():
    with pytest.raises(ValueError, match="avg is not a valid.*'none', 'mean' or 'sum'"):
        nn.functional.mse_loss(clew.ones(2), clew.ones(2), reduction="avg")


def test_a_list_of_modules():
    with pytest.raises(TypeError, match=r"Sequential: list is not a .*Sequential\(\*modules\)"):
        nn.Sequential([nn.Linear(2, 2)])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="ModuleList: int is not a Module subclass$"):
        nn.ModuleList([1])  # type: ignore[list-item]


def test_dims_name_the_module():
    with pytest.raises(ValueError, match=r"BatchNorm2d: expected 4D.*2D input of shape \[2, 3\]"):
        nn.BatchNorm2d(3)(clew.ones(2, 3))


def test_a_wrong_target_is_told_of_the_loss_that_was_called():
    with pytest.raises(RuntimeError, match=r"cross_entropy: target must have shape \(2,\)"):
        nn.functional.cross_entropy(clew.ones(2, 3), clew.tensor([[0], [1]]))
