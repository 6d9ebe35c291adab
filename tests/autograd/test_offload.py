"""Saved tensors on disk: the same gradients, less memory, and what goes wrong with files."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import signal
import sys
import tempfile
import threading
import time
import warnings

import pytest

import clew
from clew import nn
from clew.autograd import _offload


def gradients(model, x, region=None, **options):
    model.zero_grad()
    clew.manual_seed(1)
    if region is None:
        loss = model(x).square().mean()
    else:
        with region:
            loss = model(x).square().mean()
    loss.backward(**options)
    return [p.grad.clone() for p in model.parameters()]


def wait_for(region):
    """Until everything is in the file."""
    for ref in list(region._store.entries.values()) if hasattr(region, "_store") else ():
        entry = ref()
        if entry is not None:
            entry.written.wait()


def network():
    clew.manual_seed(0)
    return nn.Sequential(
        nn.Linear(64, 96), nn.GELU(), nn.Dropout(0.2), nn.LayerNorm(96),
        nn.Linear(96, 64), nn.Tanh(), nn.BatchNorm1d(64), nn.Linear(64, 3),
    )  # fmt: skip


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("in_flight", [1, 100_000, 1 << 30])
def test_gradients_have_the_same_bits(tmp_path, threads, in_flight):
    model, x = network(), clew.randn(300, 64)
    want = gradients(model, x)
    region = clew.offload(tmp_path, threads=threads, in_flight=in_flight, least=1000)
    for _ in range(3):
        for got, w in zip(gradients(model, x, region), want):
            assert clew.equal(got, w)
    assert os.listdir(tmp_path) == []  # the file has no name


@pytest.mark.parametrize("dtype", [clew.float64, clew.bfloat16, clew.complex64, clew.float16])
def test_dtypes_and_layouts(dtype):
    base = clew.randn(40, 30, dtype=clew.float64).to(dtype)
    for x in (base, base.T, base[::2, 1:], base.expand(3, 40, 30)):
        grads = []
        for region in (None, clew.offload(least=0)):
            leaf = x.clone().requires_grad_()
            with region or clew.enable_grad():
                y = (leaf * leaf.sum(-1, keepdim=True)).exp() * leaf.transpose(0, 1).sum()
            (y.abs().sum() if dtype.is_complex else y.sum()).backward()
            grads.append(leaf.grad)
        assert clew.equal(grads[0], grads[1]) or (grads[0] != grads[0]).any()


LAYOUTS = {
    "expanded": lambda t: t[:1].expand(5, 6),
    "expanded where it lies apart": lambda t: t[:, 1].expand(3, 4),
    "overlapping": lambda t: t.reshape(-1).unfold(0, 3, 1),
    "overlapping apart": lambda t: t.reshape(-1)[::2].unfold(0, 3, 1),
    "permuted": lambda t: t.reshape(2, 2, 3, 2).permute(3, 0, 2, 1),
    "apart": lambda t: t.T[1::2],
    "empty": lambda t: t[:0].expand(3, 0, 6),
    "one number": lambda t: t[1, 1],
    "conjugated": lambda t: t.T.conj(),
}


@pytest.mark.parametrize("region", [clew.offload, clew.autograd.graph.save_on_cpu])
@pytest.mark.parametrize("name", LAYOUTS)
def test_saved_tensors_come_back_in_their_layout(name, region):
    base = clew.randn(4, 6, dtype=clew.complex64 if name == "conjugated" else clew.float32)
    x = LAYOUTS[name](base)
    leaf = clew.ones_like(x, requires_grad=True)
    with region(least=0) if region is clew.offload else region():
        y = leaf * x
    saved = y.grad_fn._saved_other
    assert saved.dtype == x.dtype and clew.equal(saved, x)
    if name != "overlapping apart":
        assert saved.stride() == x.stride()
    y.sum().abs().backward()
    assert leaf.grad.shape == x.shape


def test_memory_is_given_back(tmp_path):
    x = clew.randn(1000, 256)
    layers = [nn.Linear(256, 256) for _ in range(12)]

    def forward():
        h = x
        for layer in layers:
            h = layer(h).tanh()
        return h.sum()

    def held(region):
        gc.collect()
        before = clew.memory_stats()["live_bytes"]
        with region:
            loss = forward()
        wait_for(region)
        now = clew.memory_stats()["live_bytes"] - before
        loss.backward()
        return now

    plain = held(clew.enable_grad())
    assert held(clew.offload(tmp_path)) < 0.2 * plain


def test_second_derivatives_retained_graphs_and_writes_after_saving():
    x = clew.randn(50, 50, requires_grad=True)
    with clew.offload(least=0):
        y = x.exp()
        z = (y * y).sum()
    with clew.no_grad():
        y.zero_()  # the graph has the value of before
    (g,) = clew.autograd.grad(z, x, create_graph=True)
    assert clew.allclose(g, 2 * (2 * x.detach()).exp())
    (h,) = clew.autograd.grad(g.sum(), x)
    assert clew.allclose(h, 4 * (2 * x.detach()).exp(), rtol=1e-4)
    a = x.detach().requires_grad_()
    with clew.offload(least=0):
        loss = a.sin().sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert clew.allclose(a.grad, 2 * a.detach().cos())


def test_what_was_read_ahead_does_not_hold_up_the_next_forward():
    model, x = network(), clew.randn(300, 64)
    region = clew.offload(least=0, in_flight=100_000)
    kept = []
    for _ in range(4):
        with region:
            loss = model(x).square().mean()
        loss.backward(retain_graph=True)
        kept.append(loss)
    assert len(region._store.entries) > 20
    kept.clear()
    del loss
    gc.collect()
    assert not region._store.entries


def test_small_tensors_and_parameters_stay():
    region = clew.offload(least=10_000)
    model = nn.Linear(100, 100)
    with region:
        model(clew.randn(2, 100)).sum()
    assert region._store.count == 0
    with region:
        model(clew.randn(100, 100)).tanh().sum()
    assert region._store.count == 2  # the input, and tanh's result; not the weight


def in_memory(region):
    """Numbers of the saved tensors that are in memory and not written, and how many there are."""
    for number, ref in list(region._store.entries.items()):
        if number not in region._store.staying.sizes:
            ref().written.wait()
    entries = {number: ref() for number, ref in region._store.entries.items()}
    return [number for number, e in entries.items() if e.data is not None], len(entries)


@pytest.mark.parametrize(
    "keep, want",
    [
        (None, []),
        (0, []),
        ("0 MB", []),
        (39_999, []),
        (40_000, [10]),
        (120_000, [8, 9, 10]),
        (130_000.0, [8, 9, 10]),
        ("160 kB", [7, 8, 9, 10]),
        (0.5, [6, 7, 8, 9, 10]),
        (0.25, [9, 10]),
        (1.0, [*range(1, 11)]),
        ("1 TB", [*range(1, 11)]),
    ],
)
def test_the_last_saved_stay_in_memory(tmp_path, keep, want):
    x = clew.linspace(0, 1, 10_000).requires_grad_()
    y = x
    for _ in range(10):
        y = y.tanh()
    (plain,) = clew.autograd.grad(y.sum(), x)
    region = clew.offload(directory=tmp_path, threads=1, keep=keep, least=1000)
    for _ in range(3):  # with the memory of an earlier step's in use again
        with region:
            y = x
            for _ in range(10):
                y = y.tanh()
        first = region._store.count - 10
        kept, count = in_memory(region)
        assert [number - first for number in kept] == want and count == 10
        assert region._store.staying.bytes == 40_000 * len(want)
        (grad,) = clew.autograd.grad(y.sum(), x)
        assert clew.equal(grad, plain)
        del y
        gc.collect()
        assert region._store.staying.bytes == 0 and not region._store.staying.sizes
    assert region._store.file._end == 40_000 * (10 - len(want))


def test_what_is_larger_than_keep_is_written_and_smaller_ones_stay():
    x, small = clew.ones(5000, requires_grad=True), clew.ones(500, requires_grad=True)
    region = clew.offload(keep=10_000, least=0)
    with region:
        a, b = small.exp(), x.exp()
        c = small.exp()
    kept, count = in_memory(region)
    assert (kept, count) == ([1, 3], 3)
    (a.sum() + b.sum() + c.sum()).backward()
    assert clew.equal(x.grad, x.detach().exp())


@pytest.mark.parametrize("keep", [0.3, 100_000])
def test_keep_with_second_derivatives_retained_graphs_and_writes_after_saving(keep):
    x = clew.rand(50, 50, requires_grad=True)
    with clew.offload(least=0, keep=keep):
        y = x.exp()
        z = (y * y).sum() + x.sin().cos().sum()
        with clew.no_grad():
            y.zero_()  # the graph has the value of before
        (g,) = clew.autograd.grad(z, x, create_graph=True)
    (again,) = clew.autograd.grad(z, x, retain_graph=True)
    assert clew.allclose(g, again)
    (h,) = clew.autograd.grad(g.sum(), x)
    w = x.detach().requires_grad_()
    (want,) = clew.autograd.grad((2 * w).exp().sum() + w.sin().cos().sum(), w, create_graph=True)
    assert clew.allclose(g, want)
    assert clew.allclose(h, clew.autograd.grad(want.sum(), w)[0], rtol=1e-4)


def test_with_a_full_disk_tensors_stay_in_memory(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_offload.os, "pwrite", full)
    x = clew.randn(200, 200, requires_grad=True)
    region = clew.offload(least=0)
    with pytest.warns(RuntimeWarning, match="No space left"):
        with region:
            y = x.exp().sum()
        wait_for(region)
    y.backward()
    assert clew.equal(x.grad, x.detach().exp())


def test_a_file_that_is_cut_off_is_an_error_in_backward(tmp_path):
    x = clew.randn(200, 200, requires_grad=True)
    region = clew.offload(tmp_path, least=0)
    with region:
        y = x.exp().sum()
    wait_for(region)
    region._store.file._file.truncate(10)
    with pytest.raises(OSError, match=rf"the file {tmp_path}/.* ends before"):
        y.backward()


def test_a_file_that_was_cut_off_is_not_filled_with_zeros(tmp_path):
    """Tensors that are saved later would make it long enough again."""
    x = clew.randn(200, 200, requires_grad=True)
    region = clew.offload(tmp_path, least=0)
    with region:
        y = x.exp().sum()
    wait_for(region)
    region._store.file._file.truncate(10)
    with pytest.warns(RuntimeWarning, match=rf"the file {tmp_path}/.* was cut off"):
        with region:
            z = x.exp().exp().sum()
        wait_for(region)
    with pytest.raises(OSError, match="ends before"):
        y.backward()
    z.backward()
    assert clew.allclose(x.grad, x.detach().exp() * x.detach().exp().exp())


@pytest.mark.parametrize(
    "options, error",
    [
        ({"threads": 0}, ValueError),
        ({"least": -1}, ValueError),
        ({"in_flight": 0}, ValueError),
        ({"threads": "2"}, ValueError),
        ({"directory": "/no/such/folder"}, NotADirectoryError),
    ],
)
def test_what_is_refused(options, error):
    with pytest.raises(error, match="offload"):
        clew.offload(**options)


@pytest.mark.parametrize("bad", [-1, "-3 MB", "much", "", 1.5, float("nan"), -0.5, True, [], 1j])
@pytest.mark.parametrize("target", [None, "optimizer"])
def test_what_keep_may_not_be(bad, target):
    if target:
        target = clew.optim.Adam([clew.ones(2, requires_grad=True)])
    with pytest.raises((ValueError, TypeError), match="offload: keep"):
        clew.offload(target, keep=bad)


def test_threads_end_and_space_is_used_again(tmp_path):
    def threads_of_mine():
        return {t for t in threading.enumerate() if t.name == "clew-offload"} - others

    others: set[threading.Thread] = set()
    others = threads_of_mine()
    region = clew.offload(tmp_path, least=0)
    x = clew.randn(100, 100, requires_grad=True)
    for _ in range(5):
        with region:
            y = x.exp().tanh().sum()
        y.backward()
        del y
        gc.collect()
    assert region._store.file._end <= 6 * 40_000
    mine = threads_of_mine()
    assert len(mine) == 1
    del region
    gc.collect()
    for thread in mine:
        thread.join(10)
    assert not threads_of_mine()


def test_threads_end_with_the_last_graph_without_the_collector():
    before = set(threading.enumerate())
    x = clew.randn(100, 100, requires_grad=True)
    gc.disable()
    try:
        for _ in range(3):
            with clew.offload(least=0):
                y = x.exp().tanh().sum()
            mine = set(threading.enumerate()) - before
            assert mine  # what reads ahead is there until backward is through
            y.backward()
            del y
            for thread in mine:
                thread.join(10)
                assert not thread.is_alive()
    finally:
        gc.enable()


def test_a_forked_child_writes_to_a_file_of_its_own():
    x = clew.linspace(0, 1, 1000).requires_grad_()
    region = clew.offload(least=0, in_flight=1)
    with region:
        y = x.exp().tanh().sum()
    wait_for(region)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(20)  # a child that waits for the parent's threads would wait for ever
        with contextlib.suppress(BaseException):
            with region:
                z = x.exp().tanh().sum()
            (grad,) = clew.autograd.grad(z, x)
            os.write(write, b"%.6f " % grad.sum().item())
            try:
                y.backward()
            except RuntimeError as error:
                os.write(write, str(error).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        number, _, message = file.read().decode().partition(" ")
    os.waitpid(child, 0)
    y.backward()
    assert number == f"{x.grad.sum().item():.6f}"
    assert message.startswith("offload: a saved tensor lies in the file of the process")


def test_without_large_tensors_there_are_no_threads():
    before = threading.active_count()
    w = clew.ones(3, requires_grad=True)
    with clew.offload():
        y = (w * 2).exp().sum()
        assert threading.active_count() <= before  # one of another test may end meanwhile
    y.backward()
    assert clew.allclose(w.grad, 2 * clew.full((3,), 2.0).exp())


def test_files_are_closed_without_a_warning(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: told.append(found.exc_value))
    model, x = nn.Linear(256, 256), clew.ones(300, 256)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        with clew.offload(tmp_path):
            model(x).exp().sum().backward()
        optimizer = clew.offload(clew.optim.Adam(model.parameters()), tmp_path)
        optimizer.step()
        with clew.memory_budget("1 GB", offload=tmp_path):
            model(x).exp().sum().backward()
        del optimizer
        gc.collect()
    assert told == []


def test_a_directory_that_takes_no_file(tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    for begin in (
        lambda: clew.offload(tmp_path),
        lambda: clew.offload(clew.optim.Adam([clew.ones(2, requires_grad=True)]), tmp_path),
        lambda: clew.memory_budget("1 GB", offload=tmp_path),
    ):
        with pytest.raises(PermissionError, match="no file can be made in .* can be written"):
            begin()


def test_within_a_memory_budget_forward_waits_for_the_disk(tmp_path, monkeypatch):
    """What waits to be written counts as live, and no budget can give it up."""
    write = _offload._File.write

    def slowly(file, data, offset):
        time.sleep(0.003)
        write(file, data, offset)

    monkeypatch.setattr(_offload._File, "write", slowly)
    clew.manual_seed(0)
    model = nn.Sequential(*[m for _ in range(12) for m in (nn.Linear(64, 64), nn.Tanh())])
    x = clew.randn(500, 64)

    want = gradients(model, x)
    model.zero_grad()
    gc.collect()
    saved = 24 * 500 * 64 * 4
    limit = clew.memory_stats()["live_bytes"] + 12 * (64 * 64 + 64) * 4 + saved // 3
    with clew.memory_budget(limit) as budget:
        with clew.offload(tmp_path, least=1000):
            loss = model(x).square().mean()
        loss.backward()
    assert budget.report().peak <= limit
    for p, b in zip(model.parameters(), want, strict=True):
        assert clew.equal(p.grad, b)
