"""Files whose tensors have no elements yet (serialization.skip_data), and without checksums."""

from __future__ import annotations

import io
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.serialization import load, save, skip_data


def content() -> dict[str, Any]:
    whole = clew.arange(6.0).view(2, 3)
    return {"a": whole, "part": whole[1], "b": clew.ones(3, dtype=clew.int64), "n": 3}


@pytest.mark.parametrize("to_path", [False, True])
def test_a_file_without_elements_can_be_filled(tmp_path: Path, to_path: bool):
    path = tmp_path / "w.pt"
    with skip_data():
        if to_path:
            save(content(), path)
        else:
            file = io.BytesIO()
            save(content(), file)
            path.write_bytes(file.getvalue())
    found = load(path)
    assert found["a"].tolist() == [[0, 0, 0]] * 2
    assert found["part"].untyped_storage().data_ptr() == found["a"].untyped_storage().data_ptr()
    assert found["b"].tolist() == [0, 0, 0]
    assert found["n"] == 3
    # A second pass writes the elements where they belong.
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo("archive/data/0")
    data = bytearray(path.read_bytes())
    at = member.header_offset + 30
    at += int.from_bytes(data[at - 4 : at - 2], "little") + int.from_bytes(
        data[at - 2 : at], "little"
    )
    assert at % 64 == 0
    data[at : at + 24] = clew.arange(6.0).numpy().tobytes()
    path.write_bytes(data)
    assert load(path)["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert load(path, mmap=True)["part"].tolist() == [3, 4, 5]


def test_elements_are_not_read(tmp_path: Path):
    path = tmp_path / "w.pt"
    save(content(), path)
    data = path.read_bytes()
    path.write_bytes(data.replace(clew.arange(6.0).numpy().tobytes(), b"x" * 24))
    with pytest.raises(RuntimeError, match="checksum"):
        load(path)
    for mmap in (False, True):
        with skip_data():
            found = load(path, mmap=mmap)
        assert found["a"].shape == (2, 3)
        assert found["part"].untyped_storage().data_ptr() == found["a"].untyped_storage().data_ptr()
        found["a"].fill_(1)
        assert found["part"].tolist() == [1, 1, 1]
    with skip_data():
        assert load(path, map_location="meta")["a"].is_meta


def test_it_ends_with_its_block_and_is_the_threads_own(tmp_path: Path):
    path = tmp_path / "w.pt"

    def written() -> Any:
        save(content(), path)
        return load(path)["a"].sum().item()

    seen: list[Any] = []
    with skip_data():
        with skip_data():
            pass
        thread = threading.Thread(target=lambda: seen.append(written()))
        thread.start()
        thread.join()
    assert seen == [15]
    with pytest.raises(KeyError), skip_data():
        raise KeyError
    assert written() == 15


def test_formats_that_cannot_leave_data_out(tmp_path: Path):
    row, tensors = io.BytesIO(), tmp_path / "w.safetensors"
    save(content(), row, _use_new_zipfile_serialization=False)
    save({"a": clew.ones(2)}, tensors)
    before = tensors.read_bytes()
    with skip_data():
        for write in (
            lambda: save(content(), io.BytesIO(), _use_new_zipfile_serialization=False),
            lambda: save({"a": clew.ones(2)}, tensors),
            lambda: load(row),
            lambda: load(tensors),
        ):
            with pytest.raises(RuntimeError, match="skip_data"):
                write()
    assert tensors.read_bytes() == before
    assert load(row)["n"] == 3
    with pytest.raises(NotImplementedError, match="materialize_fake_tensors"):
        skip_data(materialize_fake_tensors=True)


def test_a_whole_object_too():
    file = io.BytesIO()
    with skip_data():
        save(clew.nn.Linear(2, 2), file)
    assert load(file, weights_only=False).weight.tolist() == [[0, 0], [0, 0]]


def test_members_without_a_checksum_are_read():
    # PyTorch writes 0 for a checksum that it has not computed.
    file = io.BytesIO()
    save(content(), file)
    with zipfile.ZipFile(file) as archive:
        sums = [info.CRC.to_bytes(4, "little") for info in archive.infolist()]
        directory = archive.start_dir
    data = file.getvalue()
    head, tail = data[:directory], data[directory:]
    for check in sums:
        tail = tail.replace(check, bytes(4))
    assert load(io.BytesIO(head + tail))["a"].tolist() == content()["a"].tolist()
