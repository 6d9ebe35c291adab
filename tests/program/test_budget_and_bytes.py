"""clew.memory_budget after something has read or written the bytes of parameters."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from budgeted_steps import check, deep, same, stepping

import clew
from clew import distributed as dist
from clew import nn
from clew.nn.parallel import DistributedDataParallel

pytestmark = pytest.mark.usefixtures("young_heap")  # they collect garbage hundreds of times


def saved(model: nn.Module, path: Path) -> None:
    clew.save(model.state_dict(), path / "model.pt")


def saved_in_the_older_format(model: nn.Module, path: Path) -> None:
    clew.save(model.state_dict(), path / "model.pt", _use_new_zipfile_serialization=False)


def saved_as_safetensors(model: nn.Module, path: Path) -> None:
    from safetensors.torch import save_file

    save_file(model.state_dict(), path / "model.safetensors")


def loaded(model: nn.Module, path: Path) -> None:
    file = io.BytesIO()
    clew.save(model.state_dict(), file)
    file.seek(0)
    model.load_state_dict(clew.load(file), assign=True)


def as_bytes(model: nn.Module, path: Path) -> None:
    for p in model.parameters():
        assert bytes(p.detach().untyped_storage())


def seen_as_arrays(model: nn.Module, path: Path) -> None:
    for p in model.parameters():
        assert np.isfinite(p.detach().numpy()).all() and np.asarray(p.detach())[:1].size


def seen_through_dlpack(model: nn.Module, path: Path) -> None:
    for p in model.parameters():
        assert np.isfinite(np.from_dlpack(p.detach())).all()


def profiled(model: nn.Module, path: Path) -> None:
    with clew.profiler.profile(profile_memory=True):
        model(clew.ones(2, 64))


def explained(model: nn.Module, path: Path) -> None:
    """Errors name the parameter that a saved tensor is."""
    loss = model(clew.ones(2, 64)).sum()
    with clew.no_grad():
        for p in model.parameters():
            p.mul_(1)
    with pytest.raises(RuntimeError, match="weight"):
        loss.backward()


def shown(model: nn.Module, path: Path) -> None:
    for p in model.parameters():
        assert repr(p.detach().untyped_storage())


def broadcast(model: nn.Module, path: Path) -> None:
    for p in model.parameters():
        dist.broadcast(p.detach(), 0)


def reduced(model: nn.Module, path: Path) -> None:
    for p in model.parameters():
        dist.all_reduce(p.detach())


@pytest.mark.parametrize("touch", [
    saved, saved_in_the_older_format, loaded, as_bytes, seen_as_arrays, seen_through_dlpack,
    profiled, explained, shown,
])  # fmt: skip
def test_files_and_arrays_leave_parameters_as_they_are(touch, tmp_path):
    """What was computed of parameters whose bytes others may write could not be made again."""
    model = deep()
    touch(model, tmp_path)
    check(stepping(model, clew.randn(512, 64)), 0.5)


def test_what_arrays_wrote_while_they_lived_is_read_when_calls_run_again():
    w = clew.randn(64, 64, requires_grad=True)

    def step():
        x = clew.ones(256, 64)
        total = 0
        for k in range(6):
            x.numpy()[...] = k  # the array goes at once
            h = x * 0.1
            for _ in range(4):
                h = clew.tanh(h @ w)
            total = total + h.sum()
        return clew.autograd.grad(total, [w])

    check(step, 0.7)


def test_memory_is_fixed_while_an_array_lives():
    for share in (lambda t: t.numpy(), np.asarray, np.from_dlpack):
        t = clew.ones(4)
        array, other = share(t), share(t)
        del array
        with pytest.raises(RuntimeError, match="resize_"):
            t.resize_(100)
        assert other.sum() == 4
        del other
        assert t.resize_(100).shape == (100,)


def test_more_arrays_than_are_counted_fix_memory_for_good():
    t = clew.ones(4)
    arrays = [t.numpy() for _ in range(40)]
    arrays[20][0] = 7
    assert same(t, clew.tensor([7.0, 1, 1, 1]))
    del arrays
    with pytest.raises(RuntimeError, match="resize_"):
        t.resize_(100)


@pytest.fixture
def alone():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("touch", [broadcast, reduced])
@pytest.mark.usefixtures("alone")
def test_collectives_leave_parameters_as_they_are(touch, tmp_path):
    model = deep()
    touch(model, tmp_path)
    check(stepping(model, clew.randn(512, 64)), 0.5)


@pytest.mark.usefixtures("alone")
def test_data_parallel_in_half_the_bytes():
    model = DistributedDataParallel(deep())
    check(stepping(model, clew.randn(512, 64)), 0.5)
