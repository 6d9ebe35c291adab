"""Files that are replaced as a whole: a reader finds the old content or the new, never a part."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from typing import Any

__all__ = ["replacing"]

# Errors that say that the system or the file system has no files without a name.
_NO_NAMELESS = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL, errno.ENOSYS)
# Errors that say that the folder takes no new files.
_NO_NEW_FILES = (errno.EACCES, errno.EPERM, errno.EROFS)


# What PyTorch raises is a RuntimeError.
class MissingFolderError(FileNotFoundError, RuntimeError):
    """The folder of a file to be written does not exist."""


class IsFolderError(IsADirectoryError, RuntimeError):
    """What is to be written is a folder."""


@contextlib.contextmanager
def replacing(path: Any, mode: str = "wb", **options: Any) -> Iterator[Any]:
    """An open file that takes the place of `path` when the block ends without an exception.

    It is written in the same folder under no name or a private one, and reaches the disk before it
    is renamed. An existing file's permissions and owner are kept, and a symbolic link goes on to
    point to its target, which is what is replaced; another name of the file (a hard link) keeps
    the old content. What is no regular file (a pipe, a terminal) is written as it is, and so is a
    file whose folder takes no new ones or that cannot be renamed.

    Args:
        path: the file.
        mode: "wb" or "w".
        options: for `open`.
    """
    target = os.path.realpath(os.fsdecode(path))
    try:
        old = os.stat(path)
    except FileNotFoundError:
        old = None
    if old is not None:
        if stat.S_ISDIR(old.st_mode):
            raise IsFolderError(errno.EISDIR, "a folder cannot be replaced by a file", path)
        # A link of /proc (/dev/stdout) may lead to what has no path, or no longer one.
        if not stat.S_ISREG(old.st_mode) or not os.path.exists(target):
            with open(path, mode, **options) as file:
                yield file
            return
        # Whoever may not write to the file may not replace it either.
        os.close(os.open(target, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0)))
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise MissingFolderError(errno.ENOENT, "the folder does not exist", folder)
    private = os.path.join(folder, f".clew-{os.getpid()}-{os.urandom(6).hex()}.tmp")
    try:
        handle, named = _create(folder, private)
    except OSError as error:
        if old is None or error.errno not in _NO_NEW_FILES:
            raise
        with open(target, mode, **options) as file:
            yield file
        return
    try:
        with os.fdopen(handle, mode, **options) as file:
            if old is not None:
                _take_after(handle, old)
            yield file
            file.flush()
            os.fsync(handle)
            if not named:
                named = True
                _give_name(handle, private)
        _rename(private, target)
        named = False
    finally:
        if named:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(private)
    _sync_folder(folder)


def _create(folder: str, private: str) -> tuple[int, bool]:
    """A new file in the folder, and whether it has a name already."""
    nameless = getattr(os, "O_TMPFILE", None)
    # Without a name nothing is left when the process is killed. It gets one through /proc.
    if nameless is not None and os.path.isdir("/proc/self/fd"):
        try:
            return os.open(folder, nameless | os.O_RDWR | os.O_CLOEXEC, 0o666), False
        except OSError as error:
            if error.errno not in _NO_NAMELESS:
                raise
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    return os.open(private, flags, 0o666), True


def _give_name(handle: int, private: str) -> None:
    descriptors = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY)
    try:
        # With a folder for the source, Python follows the link that it finds there.
        os.link(str(handle), private, src_dir_fd=descriptors, follow_symlinks=True)
    except OSError:  # not between these mounts, or not here at all
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        with open(private, "xb") as file, open(handle, "rb", closefd=False) as source:
            source.seek(0)
            shutil.copyfileobj(source, file)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
    finally:
        os.close(descriptors)


def _take_after(handle: int, old: os.stat_result) -> None:
    if not hasattr(os, "fchmod"):
        return
    new = os.fstat(handle)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        # Only root may give files away: others become the owner of what they write.
        with contextlib.suppress(PermissionError):
            os.fchown(handle, old.st_uid, old.st_gid)
    os.fchmod(handle, stat.S_IMODE(old.st_mode))


def _rename(private: str, target: str) -> None:
    try:
        os.replace(private, target)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        # A file mounted by itself stays where it is.
        with open(private, "rb") as source, open(target, "wb") as file:
            shutil.copyfileobj(source, file)
            file.flush()
            os.fsync(file.fileno())
        os.unlink(private)


def _sync_folder(folder: str) -> None:
    """Has the new name reach the disk."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF):  # not on every file system
            raise
    finally:
        os.close(handle)
