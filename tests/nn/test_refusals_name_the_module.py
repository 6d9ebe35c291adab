"""What a module refuses names the module, and the numbers that came."""

from __future__ import annotations

from typing import Any

import pytest

import clew
from clew import nn
from clew.optim.lr_scheduler import MultiStepLR
from clew.utils.data import DataLoader

X = clew.ones(4, 3)


@pytest.mark.parametrize(
    "call, error, match",
    [
        (lambda: nn.LSTM(3, 5)(clew.ones(2, 2, 4)), RuntimeError, "LSTM: input.size.* 3, got 4"),
        (lambda: nn.GRU(3, 5)(X, clew.zeros(2, 5)), RuntimeError, "GRU: Expected hidden size"),
        (lambda: nn.RNN(3, 5)(X, clew.zeros(5)), RuntimeError, "RNN: For unbatched 2-D input, hx"),
        (
            lambda: nn.MultiheadAttention(4, 2)(X, X, X),
            AssertionError,
            "multi_head_attention_forward: .* 4, but got 3",
        ),
        (lambda: nn.Embedding(3, 2, padding_idx=7), AssertionError, "Embedding: .*, 3; got 7"),
        (
            lambda: nn.functional.embedding(clew.tensor([0]), X, padding_idx=7),
            AssertionError,
            "embedding: Padding_idx .*, 4; got 7",
        ),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "Conv2d: in_channels .* 3 and 2"),
        (lambda: nn.Conv1d(2, 3, 3, groups=2), ValueError, "Conv1d: out_channels .* 3 and 2"),
        (lambda: nn.Conv1d(2, 2, 3, groups=0), ValueError, "Conv1d: groups .* got 0"),
        (lambda: nn.Conv2d(3, 4, 3, padding="sam"), ValueError, "Conv2d: Invalid padding .*'sam'"),
        (
            lambda: nn.Conv2d(3, 4, 3, stride=2, padding="same"),
            ValueError,
            r"Conv2d: padding='same' .* got stride \(2, 2\)",
        ),
        (lambda: nn.Dropout2d(-1), ValueError, "Dropout2d: dropout probability .* got -1"),
        (lambda: nn.init.xavier_uniform_(clew.ones(3)), ValueError, r"shape \[3\]"),
        (
            lambda: nn.ModuleList([nn.ReLU()])(X),
            NotImplementedError,
            "ModuleList.*; call the modules in it",
        ),
        (lambda: nn.Linear(2, 2).load_state_dict([1]), TypeError, "Linear.load_state_dict: "),
        (lambda: clew.manual_seed("a"), ValueError, "manual_seed: seed must be an int; got 'a'"),
        (lambda: clew.manual_seed(None), TypeError, "manual_seed: seed must be an int; got None"),
        (
            lambda: MultiStepLR(clew.optim.SGD(nn.Linear(2, 2).parameters(), 0.1), 3),
            TypeError,
            "MultiStepLR: milestones must be a list of epochs; got 3",
        ),
        (lambda: DataLoader(5), TypeError, "DataLoader: dataset must have __getitem__ .* got int"),
        (lambda: X & X, NotImplementedError, r"bitwise_and.* float32; .*\.long\(\)"),
        (lambda: (X * 1j).floor(), NotImplementedError, r"floor.* complex64; take \.real"),
    ],
)
def test_the_message(call: Any, error: type[Exception], match: str):
    with pytest.raises(error, match=match):
        call()


def test_a_module_without_children_is_not_told_to_call_them():
    with pytest.raises(NotImplementedError, match='the required "forward" function$'):
        nn.Module().forward(X)


def test_a_dataset_that_gives_whole_batches():
    class Squares:
        def __len__(self) -> int:
            return 3

        def __getitems__(self, keys: list[int]) -> list[int]:
            return [k * k for k in keys]

    data: Any = Squares()
    assert [int(b) for b in DataLoader(data)] == [0, 1, 4]
