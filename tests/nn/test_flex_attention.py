"""flex_attention against scaled_dot_product_attention and NumPy; block masks; causal biases."""

from __future__ import annotations

import numpy as np
import pytest

import clew
from clew.nn.attention import bias
from clew.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)

sdpa = clew.nn.functional.scaled_dot_product_attention


def make(*shape):
    return clew.randn(*shape, dtype=clew.float64, requires_grad=True)


def causal(b, h, q, k):
    return q >= k


def near(b, h, q, k):
    return (q - k).abs() <= 1 + h


@pytest.mark.parametrize("block", [(2, 3), 4, 128])
@pytest.mark.parametrize("mask", [causal, near, and_masks(causal, near), or_masks(causal, near)])
def test_masks_give_what_a_dense_mask_gives(mask, block):
    clew.manual_seed(0)
    q, k, v = make(2, 3, 7, 4), make(2, 3, 9, 4), make(2, 3, 9, 5)
    blocks = create_block_mask(mask, None, 3, 7, 9, BLOCK_SIZE=block)
    dense = create_mask(mask, 1, 3, 7, 9)
    assert dense.dtype is clew.bool and dense.any(-1).all()
    got, want = flex_attention(q, k, v, None, blocks), sdpa(q, k, v, dense)
    assert clew.allclose(got, want)
    seed = clew.randn_like(want)
    for a, b in zip(
        clew.autograd.grad(got, (q, k, v), seed), clew.autograd.grad(want, (q, k, v), seed)
    ):
        assert clew.allclose(a, b)


def test_scores_are_changed_by_a_function_with_tables():
    clew.manual_seed(0)
    q, k, v = make(2, 2, 4, 3), make(2, 2, 4, 3), make(2, 2, 4, 3)
    slope = clew.tensor([0.5, 2.0], dtype=clew.float64, requires_grad=True)
    table = clew.randn(2, 7, dtype=clew.float64)

    def score_mod(score, b, h, i, j):
        return score + slope[h] * (i - j) + table[b, i - j + 3]

    i, j = clew.arange(4)[:, None], clew.arange(4)
    extra = slope.reshape(1, 2, 1, 1) * (i - j) + table[:, i - j + 3].unsqueeze(1)
    got, want = flex_attention(q, k, v, score_mod, scale=0.3), sdpa(q, k, v, extra, scale=0.3)
    assert clew.allclose(got, want)
    a, b = (clew.autograd.grad(x.sin().sum(), slope)[0] for x in (got, want))
    assert clew.allclose(a, b) and a.abs().min() > 0


def test_second_derivatives():
    q, k, v = make(1, 1, 3, 2), make(1, 1, 3, 2), make(1, 1, 3, 2)
    mask = create_block_mask(causal, None, None, 3, 3, BLOCK_SIZE=2)

    def f(q, k, v):
        return flex_attention(q, k, v, lambda s, b, h, i, j: s.tanh(), mask)

    assert clew.autograd.gradcheck(f, (q, k, v))
    assert clew.autograd.gradgradcheck(f, (q, k, v))


def test_sums_maxima_and_rows_that_see_nothing():
    clew.manual_seed(0)
    q, k, v = make(1, 1, 3, 2), make(1, 1, 4, 2), make(1, 1, 4, 2)
    mask = create_block_mask(lambda b, h, i, j: (i > 0) & (j < 3), None, None, 3, 4, BLOCK_SIZE=2)
    out, lse = flex_attention(q, k, v, None, mask, return_lse=True)
    scores = (q @ k.transpose(-2, -1)).detach().numpy()[0, 0] / np.sqrt(2)
    want = np.log(np.exp(scores[:, :3]).sum(1))
    assert out[0, 0, 0].tolist() == [0.0, 0.0] and lse[0, 0, 0].item() == -np.inf
    np.testing.assert_allclose(lse[0, 0, 1:].detach().numpy(), want[1:])
    out, aux = flex_attention(q, k, v, None, mask, return_aux=AuxRequest(max_scores=True))
    assert aux.lse is None
    np.testing.assert_allclose(aux.max_scores[0, 0, 1:].detach().numpy(), scores[1:, :3].max(1))
    out.sum().backward()
    assert all(t.grad.isfinite().all() for t in (q, k, v))
    assert flex_attention(q, k[:, :, :0], v[:, :, :0]).tolist() == [[[[0.0, 0.0]] * 3]]


def test_grouped_heads_and_half_precision():
    clew.manual_seed(0)
    q, k = clew.randn(2, 4, 3, 8), clew.randn(1, 2, 5, 8)
    got = flex_attention(q, k, k, enable_gqa=True)
    wide = k.repeat_interleave(2, 1)
    want = sdpa(q, wide.expand(2, -1, -1, -1), wide.expand(2, -1, -1, -1))
    assert clew.allclose(got, want, atol=1e-6)
    half = flex_attention(q.bfloat16(), wide.bfloat16(), wide.bfloat16())
    assert half.dtype is clew.bfloat16 and clew.allclose(half.float(), got, atol=0.05)
    with pytest.raises(ValueError, match="heads"):
        flex_attention(q, k, k)
    with pytest.raises(ValueError, match="multiple"):
        flex_attention(q[:, :3], k, k, enable_gqa=True)
    with pytest.raises(ValueError, match="dtype"):
        flex_attention(q, k.double(), k)
    with pytest.raises(NotImplementedError, match="4-D"):
        flex_attention(q[0], k[0], k[0])
    with pytest.raises(ValueError, match="mask"):
        flex_attention(wide, wide, wide, None, create_block_mask(causal, 3, None, 5, 5))
    with pytest.raises(ValueError, match="queries"):
        flex_attention(wide, wide, wide, None, create_block_mask(causal, 1, 1, 4, 5))


def test_blocks():
    mask = create_block_mask(causal, 2, None, 5, 5, BLOCK_SIZE=2)
    assert mask.shape == (2, 1, 5, 5) and mask.numel() == 50 and mask.BLOCK_SIZE == (2, 2)
    assert mask.to_dense()[1, 0].tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert mask.kv_num_blocks[0, 0].tolist() == [1, 1, 3]  # the last row is cut off
    assert mask.full_kv_num_blocks[0, 0].tolist() == [0, 1, 0]
    assert mask.kv_indices[0, 0, :, 0].tolist() == [0, 1, 0]
    assert mask.full_q_num_blocks[0, 0].tolist() == [1, 0, 0]
    assert mask.kv_indices.dtype is clew.int32
    assert mask.sparsity() == pytest.approx(100 * (1 - 6 * 4 / 25))
    assert mask[1].shape == (1, 1, 5, 5) and mask[-1, 0].shape == (1, 1, 5, 5)
    assert len(mask.as_tuple()) == 13 and len(mask.as_tuple(False)) == 11
    assert mask.to("cpu").shape == mask.shape and "BlockMask" in repr(mask)
    assert len(mask.to_string().split("\n\n")) == 2
    again = BlockMask.from_kv_blocks(
        mask.kv_num_blocks,
        mask.kv_indices,
        mask.full_kv_num_blocks,
        mask.full_kv_indices,
        BLOCK_SIZE=2,
        mask_mod=causal,
    )
    assert again.shape == (2, 1, 6, 6) and clew.equal(again.to_dense(), mask.to_dense())
    assert clew.equal(again.q_indices, mask.q_indices)
    joint = create_block_mask(causal, 2, None, 5, 5, BLOCK_SIZE=2, separate_full_blocks=False)
    assert joint.full_kv_num_blocks is None and clew.equal(joint.to_dense(), mask.to_dense())
    x = clew.randn(2, 1, 5, 4)
    assert clew.allclose(flex_attention(x, x, x, None, joint), flex_attention(x, x, x, None, mask))
    with pytest.raises(AssertionError, match="together"):
        BlockMask.from_kv_blocks(mask.kv_num_blocks, mask.kv_indices, mask.kv_num_blocks)
    with pytest.raises(RuntimeError, match="functions"):
        and_masks(causal, 3)
    assert create_mask(noop_mask, None, 2, 1, 3).shape == (1, 2, 1, 3)
    scores = create_mask(lambda s, b, h, i, j: s + i, None, None, 2, 2)
    assert scores[0, 0].tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_causal_biases_know_their_kind():
    lower, upper = bias.causal_lower_right(2, 3), bias.causal_upper_left(2, 3)
    assert lower.variant is bias.CausalVariant.LOWER_RIGHT and upper.seq_len_kv == 3
    assert lower.tolist() == [[True, True, False], [True, True, True]]
    assert upper.tolist() == [[True, False, False], [True, True, False]]
    x, y = clew.randn(1, 2, 4), clew.randn(1, 3, 4)
    assert clew.allclose(sdpa(x, y, y, upper), sdpa(x, y, y, is_causal=True))
    with pytest.raises(AssertionError, match="variant"):
        bias.CausalBias(1, 2, 3)
