"""Calls that wait: the same values as at once, and nobody can tell but by the clock."""

from __future__ import annotations

import gc
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import clew
from clew import _C


@contextmanager
def waiting(least: int = 0) -> Iterator[None]:
    """Calls in the block wait, whatever their size."""
    before = _C._defer(least)
    try:
        yield
    finally:
        _C._defer(before)
        _C._run_deferred()


def bits(t: clew.Tensor) -> bytes:
    t = t.detach().contiguous()
    return (t.view(clew.int16) if t.dtype is clew.bfloat16 else t).numpy().tobytes()


def both(f: Callable[[], list[clew.Tensor]]) -> None:
    """f gives the same bits at once and waiting."""
    clew.manual_seed(3)
    at_once = [bits(t) for t in f()]
    clew.manual_seed(3)
    with waiting():
        later = f()
    assert [bits(t) for t in later] == at_once


def leaf(*shape: int) -> clew.Tensor:
    return clew.randn(*shape, requires_grad=True)


def test_calls_wait_until_somebody_looks():
    x = clew.randn(100)
    with waiting():
        y = x * 2 + 1
        assert _C._run_deferred() == 2
        assert _C._run_deferred() == 0
        z = (y * y).sum()
        assert z.item() == pytest.approx(float(((x.numpy() * 2 + 1) ** 2).sum()), rel=1e-5)
        assert _C._run_deferred() == 0  # item() ended the waiting


@pytest.mark.parametrize("shape", [(5000,), (70, 90), (3, 40, 50), (8, 1, 700), (6000, 1)])
@pytest.mark.parametrize("threads", [1, 2])
def test_chains_with_broadcasting(shape: tuple[int, ...], threads: int):
    count = clew.get_num_threads()
    clew.set_num_threads(threads)
    try:

        def chain() -> list[clew.Tensor]:
            x = leaf(*shape)
            row, column = leaf(shape[-1]), leaf(*shape[:-1], 1)
            h = clew.tanh(x * row + column)
            h = h / (1 + (h * column).exp()) - row
            h = h.where(x > 0, h.sigmoid() * 0.5)
            h.pow(3).sum().backward()
            return [h, x.grad, row.grad, column.grad]

        both(chain)
    finally:
        clew.set_num_threads(count)


@pytest.mark.parametrize("dtype", [clew.float16, clew.bfloat16, clew.float64, clew.complex64])
def test_dtypes_and_conversions(dtype: clew.dtype):
    def chain() -> list[clew.Tensor]:
        x = clew.randn(9000).to(dtype)
        small = clew.randn(9000).to(clew.float32 if dtype is not clew.complex64 else dtype)
        y = x * 1.5 + small
        z = (y * x).to(dtype) / 3
        return [y, z, z.real if dtype.is_complex else z.abs()]

    both(chain)


def test_integers_and_truth_values():
    def chain() -> list[clew.Tensor]:
        i = clew.randint(-50, 50, (7000,))
        b = clew.randint(0, 255, (7000,), dtype=clew.uint8)
        return [i * 3 - b, (i > 4) & (b < 9), i // 7 + i % 5, ~(i == 3), i / 2]

    both(chain)


def test_writes_in_place_keep_their_order():
    def program() -> list[clew.Tensor]:
        x = clew.randn(64, 80)
        y = x * 2
        x.add_(1)
        z = x * y
        y[3:9].mul_(z[3:9])
        y[:, 5] = 7
        x += y.t().contiguous().t()
        x[1:, 1:] -= x[:-1, :-1].clone()
        return [x, y, z]

    both(program)


def test_a_reader_that_waits_sees_what_was_there():
    x = clew.arange(6000.0)
    with waiting():
        y = x + 1
        x.numpy()[0] = 100  # NumPy shares the bytes from now on
        assert y[0].item() == 1
        z = x * 2
        x.numpy()[0] = 50
        assert z[0].item() == 200


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.zero_(),
        lambda x: x.fill_(3),
        lambda x: x.copy_(clew.ones_like(x)),
        lambda x: x.normal_(),
        lambda x: x.__setitem__(slice(0, 5), 9.0),
        lambda x: x.index_put_((clew.tensor([1, 2]),), clew.tensor(4.0)),
        lambda x: x.resize_(20_000),
        lambda x: x.data.mul_(3),
        lambda x: clew.add(x, 1, out=x),
        lambda x: clew.sort(x, out=(x, clew.empty(0, dtype=clew.int64))),
        lambda x: x.share_memory_(),
        lambda x: x.set_(clew.zeros(3)),
        lambda x: x.masked_fill_(x > 0, 0),
        lambda x: clew._foreach_mul_([x], 2) if hasattr(clew, "_foreach_mul_") else x.mul_(2),
    ],
)
def test_writers_of_all_kinds_wait_for_readers(write: Callable[[clew.Tensor], object]):
    x = clew.randn(6000)
    was = x.numpy().copy()
    x = x.clone()
    with waiting():
        y = x * 2
        write(x)
    assert np.array_equal(y.numpy(), was * 2)


def test_optimizers_write_after_readers():
    p = clew.nn.Parameter(clew.randn(5000))
    was = p.detach().numpy().copy()
    optimizer = clew.optim.SGD([p], lr=0.5)
    p.grad = clew.ones(5000)
    with waiting():
        y = p.detach() * 2
        optimizer.step()
    assert np.array_equal(y.numpy(), was * 2)
    assert np.array_equal(p.detach().numpy(), was - np.float32(0.5))


def test_random_draws_keep_their_order():
    def program() -> list[clew.Tensor]:
        a = clew.randn(5000)
        b = clew.nn.functional.dropout(a * 2, 0.3)
        c = clew.rand(5000) * b
        d = clew.bernoulli(c.sigmoid())
        return [a, b, c, d, clew.randperm(10)]

    both(program)


def test_shape_errors_come_at_the_line():
    with waiting():
        x = clew.randn(5000) * 2
        with pytest.raises(RuntimeError, match="broadcast"):
            x + clew.randn(3)
        assert (x / x).sum().item() == 5000


def test_errors_of_values_name_the_line_of_the_call():
    with waiting():
        rows = clew.tensor([1, 99])
        got = clew.nn.functional.embedding(rows, clew.randn(10, 4))  # the line at fault
        later = got + 1
        fine = clew.ones(4) * 3
        with pytest.raises(IndexError, match=r"test_deferral\.py.*the line at fault") as error:
            later.sum().item()
        assert "99" in str(error.value)
        with pytest.raises(IndexError):
            later.sum().item()
    assert (clew.ones(3) * 2).tolist() == [2, 2, 2]
    del fine


def test_gradients_hooks_and_second_derivatives():
    def program() -> list[clew.Tensor]:
        x = leaf(80, 70)
        seen = []
        y = (x.exp() * x.sin()).tanh()
        y.register_hook(lambda g: seen.append(g) or g * 2)
        (first,) = clew.autograd.grad((y**2).sum(), x, create_graph=True)
        (second,) = clew.autograd.grad(first.square().sum(), x)
        return [first, second, *seen]

    both(program)


def test_a_training_step():
    def program() -> list[clew.Tensor]:
        model = clew.nn.Sequential(
            clew.nn.Linear(20, 64),
            clew.nn.GELU(),
            clew.nn.LayerNorm(64),
            clew.nn.Dropout(0.1),
            clew.nn.Linear(64, 5),
        )
        optimizer = clew.optim.AdamW(model.parameters(), lr=1e-2)
        x, target = clew.randn(128, 20), clew.randint(0, 5, (128,))
        losses = []
        for _ in range(3):
            loss = clew.nn.functional.cross_entropy(model(x), target)
            optimizer.zero_grad()
            loss.backward()
            clew.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            losses.append(loss.detach())
        return [*losses, *model.parameters()]

    both(program)


def test_what_nobody_keeps_takes_no_memory():
    x = clew.randn(1_000_000)
    y = x * 2
    del y
    clew._C.reset_peak_memory_stats()
    before = clew._C._memory_stats()["live_bytes"]
    with waiting():
        y = ((x * 2).tanh() + 1).exp() * x
    assert clew._C._memory_stats()["peak_bytes"] - before <= 4_100_000
    del y


def test_deleted_results_are_not_missed():
    with waiting():
        x = clew.randn(5000)
        y = x * 2
        seen = weakref.ref(y)
        z = y + 1
        del y
        gc.collect()
        assert seen() is None
    assert np.array_equal(z.numpy(), x.numpy() * 2 + 1)


def test_another_thread_may_look():
    got = []
    with waiting():
        x = clew.randn(100_000)
        y = (x * 2).exp()
        thread = threading.Thread(target=lambda: got.append(y.sum().item()))
        thread.start()
        thread.join()
    assert got == [(x * 2).exp().sum().item()]


def test_copies_pickles_and_lent_memory():
    import copy
    import pickle

    with waiting():
        x = clew.randn(3000)
        y = x * 3
        assert np.array_equal(copy.deepcopy(y).numpy(), x.numpy() * 3)
        z = x * 4
        assert np.array_equal(pickle.loads(pickle.dumps(z)).numpy(), x.numpy() * 4)
        w = x * 5
        assert np.array_equal(np.from_dlpack(w), x.numpy() * 5)
        v = x * 6
        assert v.data_ptr() != 0
        assert repr(x * 7) == repr(clew.from_numpy(x.numpy() * 7))


def test_transforms():
    def program() -> list[clew.Tensor]:
        x = clew.randn(50, 60)
        f = lambda v: (v.sin() * v).sum()
        return [
            clew.func.vmap(clew.func.grad(f))(x),
            clew.func.jvp(lambda v: v.exp() * 2, (x,), (clew.ones(50, 60),))[1],
            clew.func.hessian(f)(x[0]),
        ]

    both(program)


@pytest.mark.parametrize("name", ["sin", "sin_", "cumsum"])
def test_after_an_interrupt_the_rest_is_done_when_asked_for(name: str):
    """What a signal broke off is begun again; what was written in place is not."""

    def chain(x: clew.Tensor) -> clew.Tensor:
        for _ in range(160):
            x = x.cumsum(0) if name == "cumsum" else getattr(x, name)()
        return x

    x = clew.randn(3_000_000)
    want = chain(x.clone())
    x = x.clone()

    def handler(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    interrupted = 0
    start = x
    try:
        for delay in (0.04, 0.01, 0.02, 0.08):
            x = start.clone()
            with waiting():
                got = chain(x)
                signal.setitimer(signal.ITIMER_REAL, delay)
                try:
                    _C._run_deferred()
                except KeyboardInterrupt:
                    interrupted += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
                assert np.array_equal(got.numpy(), want.numpy(), equal_nan=True)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert name == "sin_" or interrupted > 0
