"""Reads tensors while somebody else fills them with garbage: run by test_changing_values.py.

The other writer is a process that shares the memory: no lock keeps it from writing in the middle of
a kernel. Arguments: a case's name and the seconds it runs. Errors are expected; a crash is not.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import clew

F = clew.nn.functional
N = 300_000  # enough for kernels that let other threads run


def _table() -> clew.Tensor:
    return clew.randn(1000, 64)


def _share(t: clew.Tensor) -> clew.Tensor:
    a = t.numpy()
    shared = np.frombuffer(mmap.mmap(-1, a.nbytes), a.dtype).reshape(a.shape)
    shared[...] = a
    return clew.from_numpy(shared)


def _index(n: int = N, high: int = 1000) -> clew.Tensor:
    return _share(clew.randint(0, high, (n,)))


Case = tuple[clew.Tensor, Callable[[], Any]]


def gather() -> Case:
    i, x = _index().reshape(300, 1000), clew.randn(300, 1000)
    return i, lambda: (x.gather(1, i), clew.gather(x, 1, i, out=clew.empty(300, 1000)))


def gather_strided() -> Case:
    i, x = _index(N, 300).reshape(1000, 300).t(), clew.randn(1000, 300).t()
    return i, lambda: (x.gather(0, i), x.t().gather(1, i.t()))


def gather_rows() -> Case:
    i, x = _index(5000, 1000), _table()
    return i, lambda: x.gather(0, i[:, None].expand(5000, 64))


def scatter() -> Case:
    i, x = _index().reshape(300, 1000), clew.randn(300, 1000)
    return i, lambda: (x.scatter(1, i, x), x.scatter_add(1, i, x), x.clone().scatter_(1, i, x))


def scatter_half() -> Case:
    i, x = _index().reshape(300, 1000), clew.randn(300, 1000).half()
    return i, lambda: x.scatter_add(1, i, x)


def scatter_reduce() -> Case:
    i, x = _index().reshape(300, 1000), clew.randn(300, 1000)
    return i, lambda: [
        x.scatter_reduce(1, i, x, how, include_self=False) for how in ("amax", "mean", "prod")
    ]


def scatter_rows() -> Case:
    i, x, s = _index(5000, 1000), _table(), clew.randn(5000, 64)
    return i, lambda: x.scatter_add(0, i[:, None].expand(5000, 64), s)


def index_select() -> Case:
    i, x = _index(5000), _table()
    y = x.t().contiguous()
    return i, lambda: (x.index_select(0, i), y.index_select(1, i), y.t()[i], y[:, i])


def index_writes() -> Case:
    i, x, s = _index(5000), _table(), clew.randn(5000, 64)
    return i, lambda: (
        x.index_add(0, i, s),
        x.index_copy(0, i, s),
        x.index_fill(0, i, 1.0),
        x.index_reduce(0, i, s, "amax"),
        x.t().contiguous().index_add_(1, i, s.t()),
    )


def take_put() -> Case:
    i, x = _index(N, N), clew.randn(N)
    return i, lambda: (
        x.take(i),
        x.put(i, x),
        x.put(i, x, accumulate=True),
        x[i],
        x.clone().put_(i, x),
    )


def advanced() -> Case:
    i, x = _index(5000), clew.randn(1000, 1000)

    def write() -> None:
        x[i, i] = 1.0
        x[i] = 2.0

    return i, lambda: (x[i, i], x[:, i], x[i[:, None], i[:50]], write())


def indexing_gradient() -> Case:
    i, x = _index(5000), _table().requires_grad_()
    return i, lambda: (x[i].sum().backward(), (x * 1)[i, i % 64].sum().backward())


def masks() -> Case:
    m, x = _share(clew.rand(N) > 0.5), clew.randn(N)

    def write() -> None:
        x[m] = 1.0

    return m, lambda: (x[m], m.nonzero(), x.masked_select(m), write(), x.masked_scatter(m, x))


def masks_of_rows() -> Case:
    m = _share(clew.rand(600, 500) > 0.5)
    return m, lambda: (clew.nonzero(m, as_tuple=True), clew.argwhere(m), clew.where(m))


def embedding() -> Case:
    i, w = _index(5000), _table().requires_grad_()
    return i, lambda: [
        F.embedding(i, w, scale_grad_by_freq=scale, padding_idx=pad).sum().backward()
        for scale in (False, True)
        for pad in (None, 3)
    ]


def embedding_small() -> Case:
    i, w = _index(16), _table()
    return i, lambda: [F.embedding(i, w) for _ in range(100)]


def embedding_bag() -> Case:
    i, w = _index(8192), _table().requires_grad_()
    offsets = clew.arange(0, 8192, 8)
    return i, lambda: [
        F.embedding_bag(i, w, offsets, mode=mode).sum().backward()
        for mode in ("sum", "mean", "max")
    ]


def embedding_bag_offsets() -> Case:
    i, w = _index(8192), _table().requires_grad_()
    offsets = _share(clew.arange(0, 8192, 8))
    return offsets, lambda: F.embedding_bag(i, w, offsets, mode="sum").sum().backward()


def cross_entropy() -> Case:
    x, t = clew.randn(4000, 100, requires_grad=True), _index(4000, 100)
    return t, lambda: (
        F.cross_entropy(x, t).backward(),
        F.nll_loss(x, t, clew.rand(100)).backward(),
        F.cross_entropy(x, t, clew.rand(100), label_smoothing=0.1, reduction="none")
        .sum()
        .backward(),
    )


def cross_entropy_images() -> Case:
    x, t = clew.randn(2, 5, 200, 200, requires_grad=True), _share(clew.randint(0, 5, (2, 200, 200)))
    return t, lambda: (F.cross_entropy(x, t).backward(), F.nll_loss(x, t).backward())


def margins() -> Case:
    x, t = clew.randn(4000, 100, requires_grad=True), _index(4000, 100)
    return t, lambda: F.multi_margin_loss(x, t).backward()


def multilabel() -> Case:
    x, t = clew.randn(400, 100, requires_grad=True), _share(clew.randint(-1, 100, (400, 100)))
    return t, lambda: F.multilabel_margin_loss(x, t).backward()


def ctc() -> Case:
    x = clew.randn(100, 32, 30, requires_grad=True)
    t = _share(clew.randint(1, 30, (32, 20)))
    steps, labels = clew.full((32,), 100), clew.full((32,), 20)
    return t, lambda: F.ctc_loss(x.log_softmax(2), t, steps, labels).backward()


def ctc_lengths() -> Case:
    x = clew.randn(100, 32, 30, requires_grad=True)
    t = clew.randint(1, 30, (32, 20))
    steps, labels = clew.full((32,), 100), _share(clew.full((32,), 20))
    return labels, lambda: F.ctc_loss(x.log_softmax(2), t, steps, labels).backward()


def one_hot() -> Case:
    i = _index(5000, 100)
    return i, lambda: (F.one_hot(i, 100), F.one_hot(i.clamp(0, 99)))


def bincount() -> Case:
    i, w = _index(), clew.rand(N)
    return i, lambda: (clew.bincount(i), clew.bincount(i, w))


def histograms() -> Case:
    x = _share(clew.rand(N))
    return x, lambda: (clew.histc(x, 50), clew.histogram(x, 50))


def repeat_interleave() -> Case:
    r, x = _index(3000, 20), clew.randn(3000)
    return r, lambda: x.repeat_interleave(r)


def searchsorted() -> Case:
    order = _share(clew.arange(1000))
    rows, x = clew.rand(1000).sort().values, clew.rand(N)
    return order, lambda: clew.searchsorted(rows, x, sorter=order)


def searchsorted_rows() -> Case:
    rows, x = _share(clew.rand(1000).sort().values), clew.rand(N)
    return rows, lambda: (clew.searchsorted(rows, x), clew.bucketize(x, rows))


def unique() -> Case:
    i = _index()
    return i, lambda: (
        clew.unique(i),
        clew.unique(i, return_inverse=True, return_counts=True),
        clew.unique_consecutive(i, return_inverse=True, return_counts=True),
    )


def unique_rows() -> Case:
    i = _index(30_000, 3).reshape(10_000, 3)
    return i, lambda: (
        clew.unique(i, dim=0, return_inverse=True),
        clew.unique_consecutive(i, dim=0, return_counts=True),
    )


def unique_floats() -> Case:
    x = _share(clew.rand(100_000))
    return x, lambda: clew.unique(x, return_inverse=True, return_counts=True)


def sort_integers() -> Case:
    i = _index()
    return i, lambda: (i.sort(), i.sort(descending=True), i.argsort(), i.msort())


def sort_floats() -> Case:
    x = _share(clew.randn(N))
    return x, lambda: (x.sort(), x.topk(10), x.topk(N // 2), x.reshape(300, 1000).sort(0))


def picks() -> Case:
    x = _share(clew.randn(N))
    return x, lambda: (x.kthvalue(1000), x.median(), x.nanmedian(), x.mode(), x.quantile(0.3))


def picks_of_integers() -> Case:
    i = _index()
    return i, lambda: (
        i.kthvalue(1000),
        i.median(),
        i.mode(),
        i.topk(20),
        i.reshape(300, -1).mode(1),
    )


def max_unpool() -> Case:
    x = clew.randn(4, 16, 64, 64)
    y, i = F.max_pool2d(x, 2, return_indices=True)
    i = _share(i)
    return i, lambda: F.max_unpool2d(y.requires_grad_(), i, 2).sum().backward()


def grid_sample() -> Case:
    x, g = clew.randn(2, 8, 64, 64, requires_grad=True), _share(clew.rand(2, 64, 64, 2))
    return g, lambda: [
        F.grid_sample(x, g, mode=mode, padding_mode=pad, align_corners=False).sum().backward()
        for mode in ("bilinear", "nearest", "bicubic")
        for pad in ("zeros", "border", "reflection")
    ]


def multinomial() -> Case:
    w = _share(clew.rand(300, 1000))
    return w, lambda: (w.multinomial(50), w.multinomial(50, replacement=True))


def packed() -> Case:
    rnn = clew.nn.LSTM(8, 16, batch_first=True)
    x, lengths = clew.randn(32, 20, 8), _share(clew.randint(1, 21, (32,)))
    pack = clew.nn.utils.rnn

    def run() -> None:
        p = pack.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        rnn(p)[0].data.sum().backward()

    return lengths, run


def packed_sizes() -> Case:
    rnn = clew.nn.LSTM(8, 16)
    pack = clew.nn.utils.rnn
    p = pack.pack_padded_sequence(clew.randn(20, 32, 8), clew.arange(32, 0, -1).clamp(max=20))
    sizes = _share(p.batch_sizes)
    p = type(p)(p.data, sizes)

    def run() -> None:
        rnn(p)
        pack.pad_packed_sequence(p)

    return sizes, run


def triangular_pivots() -> Case:
    a = clew.randn(200, 200)
    lu, pivots = clew.linalg.lu_factor(a)
    pivots = _share(pivots)
    b = clew.randn(200, 5)
    return pivots, lambda: (clew.linalg.lu_solve(lu, pivots, b), clew.lu_unpack(lu, pivots))


def ldl_pivots() -> Case:
    a = clew.randn(100, 100)
    ld, pivots = clew.linalg.ldl_factor(a + a.t())
    pivots = _share(pivots)
    b = clew.randn(100, 5)
    return pivots, lambda: clew.linalg.ldl_solve(ld, pivots, b)


def take_along() -> Case:
    i, x = _index(N, 300).reshape(300, 1000), clew.randn(300, 1000)
    return i, lambda: (clew.take_along_dim(x, i, 0), clew.unravel_index(i, (1000, 1000)))


def cut() -> Case:
    at = _share(clew.tensor([100, 200, 300]))
    x = clew.randn(1000)
    return at, lambda: clew.tensor_split(x, at)


CASES = {
    name: f
    for name, f in list(globals().items())
    if callable(f)
    and not name.startswith("_")
    and getattr(f, "__annotations__", {}).get("return") == "Case"
}


def _garbage(t: clew.Tensor, rng: np.random.Generator) -> list[np.ndarray]:
    """What the tensor held, and several kinds of what it should not hold."""
    a = t.numpy()
    good = a.copy()
    if a.dtype == np.bool_:
        return [good, np.zeros_like(a), np.ones_like(a), ~good]
    if a.dtype.kind == "f":
        return [good, good * 1e30, np.full_like(a, np.nan), -good, np.full_like(a, np.inf)]
    top = np.iinfo(a.dtype)
    if sys.argv[1] in ("bincount", "repeat_interleave", "one_hot"):  # sizes follow from values
        return [good, np.full_like(a, -1), good * 3, good + 4000]
    return [
        good,
        rng.integers(top.min, top.max, a.shape, dtype=a.dtype),
        np.full_like(a, top.max),
        np.full_like(a, top.min),
        good + 10**9,
        np.full_like(a, -1),
    ]


def main() -> None:
    clew.set_num_threads(2)
    clew.manual_seed(0)
    shared, read = CASES[sys.argv[1]]()
    rng = np.random.default_rng(0)
    kinds = _garbage(shared, rng)
    array = shared.numpy()
    read()
    writer = os.fork()
    if writer == 0:
        while os.getppid() != 1:
            np.copyto(array, kinds[rng.integers(len(kinds))])
            np.copyto(array, kinds[0])
            time.sleep(rng.random() * 0.001)
    try:
        stop = time.monotonic() + float(sys.argv[2])
        runs = failed = 0
        while time.monotonic() < stop:
            runs += 1
            try:
                read()
            except (RuntimeError, IndexError, ValueError, ArithmeticError, MemoryError) as e:
                failed += 1
                assert "internal error" not in str(e), e
    finally:
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
    print(f"{sys.argv[1]}: {runs} runs, {failed} refused")


if __name__ == "__main__":
    main()
