"""What a module refuses names the module, and the numbers that came."""

from __future__ import annotations

from typing import Any

import pytest

import clew
from clew import nn
from clew.nn import functional as F
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
        (lambda: nn.LSTM(3, 0), ValueError, "LSTM: hidden_size .* got 0"),
        (lambda: nn.GRU(0, 3), ValueError, "GRU: input_size .* got 0"),
        (lambda: nn.RNN(3, 3, num_layers=0), ValueError, "RNN: num_layers .* got 0"),
        (lambda: nn.LSTM(3, 4, proj_size=5), ValueError, "LSTM: proj_size .* got 5 and 4"),
        (lambda: nn.LSTM(3, 4, dropout=2), ValueError, "LSTM: dropout .* got 2"),
        (lambda: nn.LSTM(3, 4.0), TypeError, "LSTM: hidden_size .* float"),
        (lambda: nn.RNN(3, 4, nonlinearity="x"), ValueError, "RNN: Unknown nonlinearity 'x'"),
        (
            lambda: nn.RNNCell(3, 4, nonlinearity="x")(X),
            RuntimeError,
            "RNNCell: Unknown nonlinearity: x; it must be",
        ),
        (lambda: nn.Conv2d(1, 1, 3, padding_mode="x"), ValueError, "Conv2d: padding_mode .*'x'"),
        (
            lambda: nn.ConvTranspose1d(1, 1, 3)(clew.ones(1, 1, 3), output_size=[99]),
            ValueError,
            r"ConvTranspose1d: requested an output size of \[99\]",
        ),
        (lambda: nn.GroupNorm(3, 4), ValueError, r"GroupNorm: num_channels \(4\)"),
        (
            lambda: nn.InstanceNorm1d(2)(clew.ones(2, 2, 1)),
            ValueError,
            r"instance_norm: Expected more than 1 .* \(2, 2, 1\)",
        ),
        (
            lambda: nn.TransformerEncoderLayer(4, 2, activation="x"),
            RuntimeError,
            "Transformer: activation .* not x",
        ),
        (
            lambda: nn.Transformer(4, 2, 1, 1, 8)(clew.ones(3, 2, 4), clew.ones(3, 1, 4)),
            RuntimeError,
            "Transformer: the batch number .* got 2 and 1",
        ),
        (lambda: F.interpolate(X[None]), ValueError, "interpolate: either size .* got neither"),
        (lambda: F.interpolate(X[None], 2, 2), ValueError, "interpolate: only one .* got both"),
        (
            lambda: F.interpolate(X[None], 2, mode="bilinear"),
            NotImplementedError,
            "interpolate: Got 3D input, but bilinear",
        ),
        (
            lambda: F.interpolate(X[None], 2, align_corners=True),
            ValueError,
            "interpolate: align_corners .* got mode='nearest'",
        ),
        (
            lambda: F.embedding_bag(clew.tensor([1]), X),
            ValueError,
            "embedding_bag: offsets has to be a 1D Tensor but got None",
        ),
        (
            lambda: F.embedding_bag(clew.tensor([1]), X, clew.tensor([1])),
            RuntimeError,
            r"embedding_bag: offsets\[0\] has to be 0",
        ),
        (
            lambda: F.embedding_bag(clew.tensor([1]), X, clew.tensor([0]), mode="x"),
            ValueError,
            "embedding_bag: mode .* got 'x'",
        ),
        (
            lambda: F.gaussian_nll_loss(X, X, X - 3),
            ValueError,
            "gaussian_nll_loss: var has negative .* -2.0",
        ),
        (lambda: F.gaussian_nll_loss(X, X, -1.0), ValueError, "gaussian_nll_loss: .* got -1.0"),
        (
            lambda: nn.MultiheadAttention(3, 1)(X, X, X, key_padding_mask=X > 0),
            AssertionError,
            "multi_head_attention_forward: .*key_padding_mask.* found 2-D",
        ),
        (
            lambda: nn.MultiheadAttention(3, 1)(X, X, X, attn_mask=X > 0),
            RuntimeError,
            "multi_head_attention_forward: The shape of the 2D attn_mask",
        ),
        (
            lambda: nn.utils.rnn.pack_padded_sequence(X, [1]),
            RuntimeError,
            "pack_padded_sequence: Expected `len",
        ),
        (
            lambda: nn.utils.rnn.pack_padded_sequence(X, [2, 1, -1]),
            RuntimeError,
            "pack_padded_sequence: Length of all .* <= 0: -1",
        ),
        (
            lambda: nn.utils.rnn.pack_padded_sequence(X, [1, 2, 1]),
            RuntimeError,
            "pack_padded_sequence: `lengths` array must be sorted",
        ),
        (
            lambda: nn.utils.rnn.pad_packed_sequence(
                nn.utils.rnn.pack_sequence([X]), total_length=2
            ),
            ValueError,
            "pad_packed_sequence: .* total_length=2 and .* 4",
        ),
        (
            lambda: clew.promote_types(clew.float32, "a"),
            TypeError,
            r"promote_types\(\): argument 'type2' must be dtype, not str",
        ),
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
