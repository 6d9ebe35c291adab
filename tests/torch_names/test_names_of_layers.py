"""Helpers that copies of PyTorch's layers and functions call."""

import pytest

import clew
from clew._torch import _more

INF = float("inf")


def test_sizes_that_cannot_be_normalised():
    batch = _more.find("nn.functional", "_verify_batch_size")
    spatial = _more.find("nn.functional", "_verify_spatial_size")
    assert batch([2, 3]) is None and batch([1, 3, 2]) is None and spatial([2, 3, 2]) is None
    with pytest.raises(ValueError, match=r"more than 1 value per channel.*\[1, 3, 1\]"):
        batch([1, 3, 1])
    with pytest.raises(ValueError, match="more than 1 spatial element"):
        spatial([2, 3, 1, 1])


def test_the_dim_of_a_softmax():
    choose = _more.find("nn.functional", "_get_softmax_dim")
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax"):
        assert [choose("softmax", n, 3) for n in range(5)] == [0, 0, 1, 0, 1]


def test_sizes_of_an_unpooling():
    size = _more.find("nn.functional", "_unpool_output_size")
    x, two = clew.ones(1, 1, 3, 3), [2, 2]
    assert size(x, two, two, [0, 0], None) == [6, 6]
    assert size(x, two, two, [0, 1], None) == [6, 4]
    assert size(x, two, two, [0, 0], [7, 5]) == size(x, two, two, [0, 0], (1, 1, 7, 5)) == [7, 5]
    with pytest.raises(ValueError, match=r"invalid output_size .* \(dim 1 must be between 4 and 8"):
        size(x, two, two, [0, 0], [7, 8])
    with pytest.raises(ValueError, match="2 or 4 elements"):
        size(x, two, two, [0, 0], [7])


def test_shapes_of_attention():
    check = _more.find("nn.functional", "_mha_shape_check")
    q, single = clew.ones(3, 2, 4), clew.ones(3, 4)
    assert check(q, q, q, clew.ones(2, 3), clew.ones(3, 3), 2) is True
    assert check(single, single, single, None, clew.ones(2, 3, 3), 2) is False
    for arguments, text in (
        ((q[0, 0], q, q, None, None), "received 1-D query"),
        ((q, single, q, None, None), "`key` and `value` to be 3-D but found 2-D and 3-D"),
        ((q, q, q, clew.ones(3), None), "`key_padding_mask` to be `None` or 2-D but found 1-D"),
        ((q, q, q, None, clew.ones(3)), "`attn_mask` to be `None`, 2-D or 3-D but found 1-D"),
        ((single, single, single, None, clew.ones(1, 3, 3)), r"\(2, 3, 3\) but got \(1, 3, 3\)"),
    ):
        with pytest.raises(AssertionError, match=text):
            check(*arguments, 2)


def test_masks_of_transformers():
    mask = _more.find("nn.modules.transformer", "_generate_square_subsequent_mask")
    causal = _more.find("nn.modules.transformer", "_detect_is_causal_mask")
    length = _more.find("nn.modules.transformer", "_get_seq_len")
    assert mask(2).tolist() == [[0, -INF], [0, 0]]
    assert mask(1, dtype=clew.float64).dtype is clew.float64
    assert causal(mask(3)) is causal(None, True) is causal(mask(3), None, 3) is True
    for arguments in ((None,), (clew.zeros(2, 2),), (mask(3), False), (mask(3), None, 2)):
        assert causal(*arguments) is False
    x = clew.ones(4, 2, 3)
    assert (length(x, True), length(x, False), length(x[0], True)) == (2, 4, 2)


def test_sizes_left_open():
    fill = _more.find("nn.modules.utils", "_list_with_default")
    assert fill([None, 3], [1, 5, 6]) == [5, 3] and fill(4, [1, 5]) == 4
    with pytest.raises(ValueError, match="at least 3"):
        fill([1, 2], [5, 6])


def test_orders_of_states():
    permute = _more.find("nn.modules.rnn", "apply_permutation")
    with pytest.warns(FutureWarning, match="index_select"):
        assert permute(clew.tensor([[1, 2]]), clew.tensor([1, 0])).tolist() == [[2, 1]]


def test_the_norm_of_gradients():
    norm = _more.find("nn.utils.clip_grad", "_get_total_norm")
    assert norm([clew.tensor([3.0]), clew.tensor([4.0])]).item() == 5
