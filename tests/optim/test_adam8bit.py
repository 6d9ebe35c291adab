"""Adam with moments of eight bits: the code's error, convergence, saving."""

import copy
import io

import numpy as np
import pytest

import clew
from clew.optim import Adam, Adam8bit, AdamW, AdamW8bit
from clew.optim._adam8bit import _map, dequantize_blockwise, quantize_blockwise


@pytest.mark.parametrize("signed", [True, False])
def test_the_code(signed):
    code, borders = (t.numpy() for t in _map(signed))
    assert len(code) == 256 and (np.diff(code) > 0).all() and len(borders) == 255
    assert 0 in code and code.max() == 1 and code.min() == (code[0] if signed else 0)
    # As many values in each tenth power as the paper gives: a power has twice those of the last.
    for power in range(7):
        inside = ((code > 10.0 ** (power - 7)) & (code < 10.0 ** (power - 6))).sum()
        assert inside == (1 << power) * (1 if signed else 2)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("n, block", [(1, 256), (256, 256), (1000, 256), (5000, 64), (0, 256)])
def test_error_within_a_half_step(signed, n, block):
    rng = np.random.default_rng(n)
    x = (rng.normal(size=n) * 10.0 ** rng.uniform(-5, 1, n)).astype(np.float32)
    x = x if signed else abs(x)
    codes, sizes = quantize_blockwise(clew.tensor(x), block, signed)
    assert codes.dtype == clew.uint8 and codes.shape == (n,) and sizes.numel() == -(-n // block)
    back = dequantize_blockwise(codes, sizes, block, signed).numpy()
    for at in range(0, n, block):
        part, got = x[at : at + block].astype(np.float64), back[at : at + block]
        size = abs(part).max()
        assert sizes[at // block].item() == pytest.approx(size)
        decade = np.clip(np.floor(np.log10(np.maximum(abs(part) / size, 1e-9))) + 7, 0, 6)
        step = 0.9 / 2 ** (decade + (0 if signed else 1)) * 10.0 ** (decade - 6) * size
        assert (abs(got - part) <= 0.56 * step + 1e-7 * size).all()  # steps meet at powers of ten
        assert abs(got).argmax() == abs(part).argmax() or n == 1
    assert dequantize_blockwise(*quantize_blockwise(clew.zeros(300)))[7].item() == 0


@pytest.mark.parametrize("small, plain, options", [
    (Adam8bit, Adam, {}), (Adam8bit, Adam, {"weight_decay": 0.1}), (AdamW8bit, AdamW, {}),
    (AdamW8bit, AdamW, {"weight_decay": 0.3, "maximize": True}),
])  # fmt: skip
def test_beside_adam(small, plain, options):
    rng = np.random.default_rng(0)
    start = rng.normal(size=(70, 100)).astype(np.float32)
    pair = [clew.tensor(start, requires_grad=True) for _ in range(2)]
    tiny = [clew.tensor(start[0], requires_grad=True) for _ in range(2)]
    opts = [small([pair[0], tiny[0]], 0.01, **options), plain([pair[1], tiny[1]], 0.01, **options)]
    for _ in range(20):
        scale = 10.0 ** rng.uniform(-3, 0, size=(70, 1))
        grad = (rng.normal(size=start.shape) * scale + 0.1).astype(np.float32)
        for p, q, opt in zip(pair, tiny, opts):
            p.grad, q.grad = clew.tensor(grad), clew.tensor(grad[0])
            opt.step()
    moved = abs(pair[1].detach().numpy() - start).mean()
    assert abs((pair[0] - pair[1]).detach().numpy()).mean() < 0.05 * moved
    assert np.allclose(tiny[0].detach().numpy(), tiny[1].detach().numpy(), atol=1e-6)
    state = opts[0].state[pair[0]]
    held = sum(t.numel() * t.element_size() for t in state.values())
    assert held <= 7000 * 2 + 2 * 28 * 4 + 8


def test_training():
    def train(kind):
        clew.manual_seed(0)
        net = clew.nn.Sequential(clew.nn.Linear(20, 256), clew.nn.Tanh(), clew.nn.Linear(256, 20))
        opt = kind(net.parameters(), 0.003)
        x = clew.randn(64, 20)
        y = x.flip(1) ** 2
        for _ in range(150):
            opt.zero_grad()
            loss = clew.nn.functional.mse_loss(net(x), y)
            loss.backward()
            opt.step()
        return loss.item()

    ours, plain = train(Adam8bit), train(Adam)
    assert plain < 0.05 and ours < 1.5 * plain + 0.005


@pytest.mark.parametrize("dtype", [clew.float32, clew.bfloat16])
def test_saving_and_copies(dtype):
    p = clew.ones(5000, dtype=dtype, requires_grad=True)
    q = clew.ones(5000, dtype=dtype, requires_grad=True)
    a, b = Adam8bit([p], 0.1), Adam8bit([q], 0.7)

    def step(opt, param, seed):
        param.grad = clew.tensor(np.random.default_rng(seed).normal(size=5000)).to(dtype)
        opt.step()

    step(a, p, 0)
    file = io.BytesIO()
    clew.save(a.state_dict(), file)
    file.seek(0)
    b.load_state_dict(clew.load(file))
    with clew.no_grad():
        q.copy_(p)
    assert b.state[q]["exp_avg"].dtype == clew.uint8
    assert b.state[q]["exp_avg_scale"].dtype == clew.float32
    twin = copy.deepcopy((a, p))
    for opt, param in ((a, p), (b, q), (twin[0], twin[0].param_groups[0]["params"][0])):
        step(opt, param, 1)
    assert clew.equal(p, q)
    assert clew.equal(p, twin[0].param_groups[0]["params"][0])


def test_a_matrix_that_does_not_lie_in_rows():
    p = clew.randn(80, 90).t().requires_grad_()
    before = p.detach().clone()
    p.grad = clew.ones(90, 80)
    Adam8bit([p], 0.5).step()
    assert np.allclose((before - p.detach()).numpy(), 0.5, atol=1e-5)


def test_bad_options():
    w = [clew.zeros(3, requires_grad=True)]
    for options, text in [({"lr": -1}, "lr"), ({"betas": (1, 0.9)}, "beta"), ({"eps": -1}, "eps"),
                          ({"amsgrad": True}, "amsgrad"), ({"block_size": 100}, "block_size"),
                          ({"block_size": 0}, "block_size")]:  # fmt: skip
        with pytest.raises(ValueError, match=text):
            Adam8bit(w, **options)
    c = clew.zeros(3, dtype=clew.complex64, requires_grad=True)
    c.grad = clew.ones(3, dtype=clew.complex64)
    with pytest.raises(RuntimeError, match="real and dense"):
        Adam8bit([c]).step()


def test_a_small_second_moment_beside_a_large_one_is_not_lost():
    p = clew.zeros(8192, requires_grad=True)
    opt = Adam8bit([p], 0.01)
    for _ in range(5):
        p.grad = clew.full((8192,), 1e-5)
        p.grad[::256] = 1.0
        opt.step()
    # A moment of 0 would divide by eps alone: steps of a thousand times lr.
    assert p.detach().abs().max().item() <= 0.06
    codes, sizes = quantize_blockwise(clew.tensor([0.0, 1e-12, 1.0]), signed=False)
    assert (dequantize_blockwise(codes, sizes, signed=False) > 0).tolist() == [False, True, True]
