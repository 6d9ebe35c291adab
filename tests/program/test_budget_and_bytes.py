"""clew.memory_budget after something has read or written the bytes of parameters."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from budgeted_steps import check, deep, stepping

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


def broadcast(model: nn.Module, path: Path) -> None:
    for p in model.parameters():
        dist.broadcast(p.detach(), 0)


def reduced(model: nn.Module, path: Path) -> None:
    for p in model.parameters():
        dist.all_reduce(p.detach())


@pytest.mark.parametrize("touch", [saved, saved_in_the_older_format, loaded, as_bytes])
def test_files_leave_parameters_as_they_are(touch, tmp_path):
    """What was computed of parameters whose bytes others may write could not be made again."""
    model = deep()
    touch(model, tmp_path)
    check(stepping(model, clew.randn(512, 64)), 0.5)


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
