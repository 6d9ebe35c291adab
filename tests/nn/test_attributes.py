"""Names that programs read of modules, as they are in PyTorch."""

from __future__ import annotations

import pytest
from module_cases import CASES

import clew
from clew import nn


def test_constants_are_attributes():
    """PyTorch's jit reads them; here subclasses of programs add to them."""
    for name, (build, _) in CASES.items():
        module = build()
        constants = getattr(module, "__constants__", [])
        assert type(constants) is list, name
        for constant in constants:
            assert hasattr(module, constant), (name, constant)


def test_constants_of_some():
    assert nn.Linear.__constants__ == ["in_features", "out_features"]
    assert nn.BCELoss.__constants__ == nn.L1Loss.__constants__ == ["reduction"]
    assert nn.LazyConv2d.__constants__ == nn.Conv1d.__constants__
    assert nn.Conv1d.__constants__[0] == "stride" and len(nn.Conv1d.__constants__) == 9
    assert nn.AvgPool1d.__constants__ == nn.AvgPool2d.__constants__[:-1]
    assert "nonlinearity" in nn.RNNCell.__constants__
    assert nn.GRUCell.__constants__ == ["input_size", "hidden_size", "bias"]
    assert not hasattr(nn.Module, "__constants__")

    assert (nn.Embedding.__constants__ + ["rank"])[-2:] == ["sparse", "rank"]  # as subclasses do


def test_pools_in_one_dim_have_no_divisor():
    assert not hasattr(nn.AvgPool1d(2), "divisor_override")
    assert nn.AvgPool2d(2).divisor_override is None
    assert nn.AvgPool1d(2)(clew.tensor([[1.0, 3.0]])).tolist() == [[2.0]]


def test_expected_sizes():
    x = clew.ones(5, 6, 3)
    m = nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)
    assert m.get_expected_hidden_size(x, None) == (4, 6, 2)
    assert m.get_expected_cell_size(x, None) == (4, 6, 4)
    assert m.get_expected_hidden_size(x[0], clew.tensor([3, 2])) == (4, 3, 2)
    assert nn.RNN(3, 4, batch_first=True).get_expected_hidden_size(x, None) == (1, 5, 4)
    assert not hasattr(nn.GRU(3, 4), "get_expected_cell_size")


def test_check_forward_args():
    x, hx = clew.ones(5, 6, 3), (clew.zeros(4, 6, 2), clew.zeros(4, 6, 4))
    m = nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)
    assert m.check_forward_args(x, hx, None) is None
    for call, error, text in (
        (lambda: m.check_input(x[0, 0], None), RuntimeError, "must have 3 dimensions, got 1"),
        (lambda: m.check_input(x, clew.tensor([1])), RuntimeError, "must have 2 dimensions, got 3"),
        (lambda: m.check_input(clew.ones(5, 6, 4), None), RuntimeError, "Expected 3, got 4"),
        (lambda: m.check_input(x.long(), None), ValueError, "does not match weight dtype"),
        (lambda: m.check_hidden_size(x, (1, 2, 3), "{} or {}"), RuntimeError, r"3\) or \[5, 6, 3"),
        (lambda: m.check_forward_args(x, hx[::-1], None), RuntimeError, r"hidden\[0\] size \(4, 6"),
        (lambda: m.check_forward_args(x, (hx[0], hx[0]), None), RuntimeError, r"hidden\[1\] size"),
        (lambda: nn.GRU(3, 4).check_forward_args(x, hx[0], None), RuntimeError, r"\(1, 6, 4\)"),
    ):
        with pytest.raises(error, match=text):
            call()
    with clew.autocast("cpu"):
        m.check_input(x.bfloat16(), None)


def test_permute_hidden():
    h, c = clew.arange(6.0).reshape(1, 3, 2), clew.arange(3.0).reshape(1, 3, 1)
    order = clew.tensor([2, 0, 1])
    m = nn.LSTM(3, 1)
    assert m.permute_hidden((h, c), None) == (h, c)
    assert [s.flatten().tolist() for s in m.permute_hidden((h, c), order)] == [
        [4, 5, 0, 1, 2, 3],
        [2, 0, 1],
    ]
    assert nn.GRU(3, 1).permute_hidden(c, order).flatten().tolist() == [2, 0, 1]
