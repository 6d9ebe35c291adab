"""Files that are written over: whole or not at all."""

from __future__ import annotations

import errno
import io
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import clew
from clew._base import whole_files as _files
from clew._base.whole_files import replacing
from clew.serialization import load, save

posix = pytest.mark.skipif(os.name != "posix", reason="needs permissions and links")


@pytest.fixture(params=["nameless", "named"])
def way(request, monkeypatch):
    """Both kinds of files that are written beside the target."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("no files without a name here")


def write(path, text):
    with replacing(path, "w") as file:
        file.write(text)


def test_new_and_replaced(tmp_path, way):
    path = tmp_path / "a"
    write(path, "one")
    assert path.read_text() == "one"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    write(str(path), "two")
    write(os.fsencode(path), "three")
    assert path.read_text() == "three" and os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_leaves_the_old_file(tmp_path, way, error):
    path = tmp_path / "a"
    for expected in (None, "old"):
        with pytest.raises(error):
            with replacing(path, "w") as file:
                file.write("x" * 100_000)
                raise error
        assert os.listdir(tmp_path) == ([] if expected is None else ["a"])
        path.write_text("old")
        assert path.read_text() == "old"


@posix
def test_permissions_and_links_are_kept(tmp_path, way):
    path, link = tmp_path / "sub" / "a", tmp_path / "link"
    path.parent.mkdir()
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to("sub/a")
    second = tmp_path / "second"
    second.symlink_to("link")
    write(second, "new")
    assert second.is_symlink() and link.is_symlink() and not path.is_symlink()
    assert path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == 0o640
    dangling = tmp_path / "dangling"
    dangling.symlink_to("sub/b")
    write(dangling, "b")
    assert dangling.is_symlink() and (path.parent / "b").read_text() == "b"
    if os.getuid() == 0:
        os.chown(path, 1234, 1235)
        write(path, "newer")
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1235)


@posix
def test_what_is_no_regular_file_is_written_as_it_is(tmp_path, way):
    save([1], "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    for kind in (IsADirectoryError, RuntimeError):  # PyTorch's, too
        with pytest.raises(kind):
            write(tmp_path, "x")
    for kind in (FileNotFoundError, RuntimeError):
        with pytest.raises(kind, match="not there"):
            write(tmp_path / "not there" / "a", "x")
    with pytest.raises(NotADirectoryError):
        (tmp_path / "file").write_text("")
        write(tmp_path / "file" / "a", "x")


AS_NOBODY = """
import os, sys
import clew
from clew._base.whole_files import replacing
folder = sys.argv[1]
os.setuid(65534)
try:
    with replacing(folder + "/read_only", "w") as file:
        file.write("new")
except PermissionError:
    print("refused")
os.chdir(folder + "/closed")
with replacing("writable", "w") as file:
    file.write("new")
try:
    with replacing("another", "w") as file:
        file.write("new")
except PermissionError:
    print("refused")
"""


@posix
@pytest.mark.skipif(os.name == "posix" and os.getuid() != 0, reason="becomes another user")
def test_who_may_not_write_may_not_replace():
    tmp_path = Path(tempfile.mkdtemp())  # pytest's own is closed to others
    try:
        who_may_not_write(tmp_path)
    finally:
        shutil.rmtree(tmp_path)


def who_may_not_write(tmp_path):
    tmp_path.chmod(0o777)
    (tmp_path / "read_only").write_text("old")
    (tmp_path / "read_only").chmod(0o444)
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "writable").write_text("old")
    (closed / "writable").chmod(0o666)
    closed.chmod(0o755)
    run = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(tmp_path)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "refused\nrefused\n"
    assert (tmp_path / "read_only").read_text() == "old"
    assert (closed / "writable").read_text() == "new" and os.listdir(closed) == ["writable"]


def test_a_file_that_cannot_be_renamed(tmp_path, monkeypatch, way):
    path = tmp_path / "mounted"
    path.write_text("old and longer")

    def busy(*names):
        raise OSError(errno.EBUSY, "busy")

    monkeypatch.setattr(_files.os, "replace", busy)
    write(path, "new")
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["mounted"]


def test_a_full_disk(tmp_path, monkeypatch, way):
    path = tmp_path / "a"
    save([1], path)

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_files.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save([2], path)
    assert load(path) == [1] and os.listdir(tmp_path) == ["a"]


def test_a_refused_value_leaves_the_old_file(tmp_path):
    path, tensors = tmp_path / "a.pt", tmp_path / "a.safetensors"
    save([1], path)
    save({"a": clew.ones(1)}, tensors)
    with pytest.raises(Exception, match="lambda"):
        save([clew.ones(3), lambda: 0], path)
    with pytest.raises(TypeError):
        save({"a": clew.ones(1), "b": 3}, tensors)
    assert load(path) == [1] and load(tensors)["a"].tolist() == [1.0]
    assert sorted(os.listdir(tmp_path)) == ["a.pt", "a.safetensors"]


def test_an_open_file_is_written_from_its_position_on():
    file = io.BytesIO()
    file.write(b"before")
    save([1], file)
    assert not file.closed and file.getvalue().startswith(b"beforePK")


KILLED = """
import sys
import clew
path, suffix = sys.argv[1:]
state = {str(i): clew.full((50_000,), float(i)) for i in range(10)}
print("ready", flush=True)
while True:
    clew.save(state, path)
"""


@posix
@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_a_kill_leaves_a_whole_file(tmp_path, suffix):
    path = tmp_path / ("state" + suffix)
    for _ in range(6):
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path), suffix], stdout=subprocess.PIPE
        )
        assert child.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + 20
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(random.uniform(0, 0.02))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        state = load(path)
        assert len(state) == 10
        for key, value in state.items():
            assert value.eq(float(key)).all()
    # At most one, of a kill between the last two steps, each time.
    assert len(os.listdir(tmp_path)) <= 3


def test_exports_are_whole_too(tmp_path, monkeypatch):
    x = clew.ones(3, requires_grad=True)
    graph = clew.graph((x * 2).sum())
    path = tmp_path / "graph.html"
    path.write_text("old")
    graph.save(path)
    assert path.read_text() != "old"

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_files.os, "fsync", full)
    with clew.profiler.profile(profile_memory=True) as recorded:
        (x * 2).sum().backward()
    for name, write_it in (
        ("graph.html", graph.save),
        ("trace.json", recorded.export_chrome_trace),
        ("trace.json.gz", recorded.export_chrome_trace),
        ("memory.html", recorded.export_memory_timeline),
    ):
        target = tmp_path / name
        target.write_text("old")
        with pytest.raises(OSError, match="No space"):
            write_it(str(target))
        assert target.read_text() == "old"


@posix
def test_what_standard_output_leads_to_is_written_as_it_is(tmp_path):
    """A pipe has no path of its own, and neither has a file that was deleted."""
    code = "import clew; clew.save({'a': clew.arange(5)}, '/dev/stdout')"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert load(io.BytesIO(done.stdout))["a"].tolist() == [0, 1, 2, 3, 4]
    with open(tmp_path / "gone", "w+b") as file:
        os.unlink(tmp_path / "gone")
        save({"a": clew.arange(5)}, f"/proc/self/fd/{file.fileno()}")
        file.seek(0)
        assert load(file)["a"].tolist() == [0, 1, 2, 3, 4]
    assert os.listdir(tmp_path) == []
