"""Saving and loading: tensors and plain data, in files that execute nothing unless told to.

Two formats: a zip container laid out as PyTorch's `.pt` files are, and safetensors for dicts of
tensors. Loading builds numbers, strings, containers and tensors; a file that asks for anything
else is refused, unless the caller passes weights_only=False.
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from clew import Tensor, device
from clew._base.whole_files import replacing
from clew._files import safe
from clew._files.skipping import skipping

if TYPE_CHECKING:
    from clew._files.places import default_restore_location, location_tag, register_package

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "register_package",
    "safe_globals",
    "save",
    "skip_data",
]

DEFAULT_PROTOCOL = 2
_ENCODINGS = ("utf-8", "ascii", "latin1", "latin-1", "bytes")


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Saves tensors and plain data to a file.

    A path that ends in `.safetensors` gets that format, which holds a dict of tensors. Any other
    file gets the container, which PyTorch reads too: tensors, parameters, numbers, strings, bytes,
    None, dtypes, devices, sizes, NumPy arrays of numbers, and lists, tuples, dicts and sets of
    such. Tensors that share memory share it again when loaded, and keep the attributes that the
    program has set on them. Other objects, such as whole modules, are written by Python's pickle,
    and only `load(..., weights_only=False)` reads them.

    A path gets the new content as a whole: it is written beside an existing file, reaches the disk,
    and takes that file's place, its permissions, and the target of a symbolic link. Until then, and
    after any exception or kill, the old file is there unchanged; other names of it (hard links)
    keep the old content. An open file is written from its position on as the bytes come, and
    neither flushed to the disk nor closed: what is in it after an exception is not defined.

    Args:
        obj: what to save; of a module or optimizer, its `state_dict()`.
        f: a path, or a file open for binary writing.
        pickle_module: only Python's own `pickle`.
        pickle_protocol: 2 or a later one; what is written is the second, which all readers of
            later ones read, too.
        _use_new_zipfile_serialization: False writes the format before the container, for readers
            older than PyTorch 1.6; of data only.

    Example:
        >>> import io
        >>> from clew.serialization import load, save
        >>> file = io.BytesIO()
        >>> save({"weight": clew.ones(2), "epoch": 3}, file)
        >>> load(io.BytesIO(file.getvalue()))
        {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    if pickle_module is not pickle:
        raise ValueError(f"save: pickle_module must be Python's pickle; got {pickle_module!r}")
    if pickle_protocol not in range(DEFAULT_PROTOCOL, pickle.HIGHEST_PROTOCOL + 1):
        raise ValueError(
            f"save: pickle_protocol must be from 2 to {pickle.HIGHEST_PROTOCOL}; got "
            f"{pickle_protocol!r}"
        )
    path = isinstance(f, (str, os.PathLike))
    if not path and not hasattr(f, "write"):
        raise TypeError(
            f"save: f must be a path or a file open for binary writing; got {type(f).__name__}"
        )
    if not _use_new_zipfile_serialization:
        _write_row(obj, f)
        return
    if _disable_byteorder_record:
        raise ValueError("save: the byte order is always recorded")
    from clew._files import archive, safetensors

    if path:
        if safetensors.has_suffix(f):
            _write_safetensors(obj, f)
            return
        encoded = _encoded(obj)  # before a file is opened: a refusal leaves no trace
        with replacing(f) as file:
            archive.write_encoded(*encoded, file)
        return
    archive.write_encoded(*_encoded(obj), f)


def _encoded(obj: Any) -> tuple[bytes, dict[str, Tensor]]:
    """The structure and the storages: as plain data where that will do, else as pickle's."""
    from clew._files.encode import Encoder, NotData

    encoder = Encoder()
    try:
        return encoder.dump(obj), encoder.storages
    except NotData:
        from clew._files import whole

        return whole.dump(obj)


def _need_container(call: str, what: str) -> None:
    """Raises where the elements of another format would be left out."""
    if skipping.on:
        raise RuntimeError(f"{call}: under skip_data() only the container is {what}")


def _write_row(obj: Any, f: Any) -> None:
    """Writes the format before the zip container."""
    from clew._files import row
    from clew._files.encode import NotData

    _need_container("save", "written; leave out _use_new_zipfile_serialization=False")
    try:
        pieces = row.encode(obj)
    except NotData as error:
        raise NotData(f"{error}; the format before the zip container holds data only") from None
    if isinstance(f, (str, os.PathLike)):
        with replacing(f) as file:
            for piece in pieces:
                file.write(piece)
        return
    for piece in pieces:
        f.write(piece)


def _write_safetensors(obj: Any, path: Any) -> None:
    from clew._files import safetensors

    _need_container("save", "written; take a path that does not end in .safetensors")
    with replacing(path) as file:
        safetensors.write(obj, file)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Loads what `save`, PyTorch's `save` or safetensors wrote; executes nothing that a file says,
    unless weights_only is False.

    PyTorch's formats before the container are read by the same rules: a row of pickles, of before
    1.6, and a tar archive, of before 0.1.10.

    Args:
        f: a path, or a file open for binary reading that can seek. It is read from where it
            stands, or from its beginning if it stands at its end, and left behind what was read.
        map_location: where tensors go: a device, a dict from the file's devices to others, or a
            function of (storage, location); None for the device in the file.
        pickle_module: only None or Python's own `pickle`.
        weights_only: True, or None: a file that asks for more than data is refused. False: what it
            asks for is called, which may be anything: only for files that you trust.
        mmap: map the file instead of reading it; `f` must be a path. Changes stay in memory.
        pickle_load_args: only `encoding`, of the texts that Python 2 wrote: "utf-8", "ascii",
            "latin1", or "bytes" to leave them as they are.

    Returns:
        The object.

    Example:
        >>> import io
        >>> from clew.serialization import load, save
        >>> file = io.BytesIO()
        >>> save([clew.zeros(1), "a"], file)
        >>> load(file)
        [tensor([0.]), 'a']
    """
    if pickle_module is not None and pickle_module is not pickle:
        raise ValueError(f"load: pickle_module must be Python's pickle; got {pickle_module!r}")
    encoding = pickle_load_args.pop("encoding", "utf-8")
    if pickle_load_args:
        raise TypeError(
            f"load: unknown arguments {sorted(pickle_load_args)}; files are not read by Python's "
            "unpickler"
        )
    if str(encoding).lower() not in _ENCODINGS:
        raise ValueError(f"load: encoding must be one of {_ENCODINGS}; got {encoding!r}")
    encoding = str(encoding).lower()
    trusted = weights_only is False
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _load(file, map_location, os.fspath(f) if mmap else None, trusted, encoding)
    if mmap:
        raise ValueError("load: mmap=True needs a path; got a file object")
    if not hasattr(f, "read"):
        raise TypeError(
            f"load: f must be a path or a file open for binary reading; got {type(f).__name__}"
        )
    if not (hasattr(f, "seek") and getattr(f, "seekable", lambda: True)()):
        f = io.BytesIO(f.read())
    return _load(f, map_location, None, trusted, encoding)


def _load(file: Any, map_location: Any, path: str | None, trusted: bool, encoding: str) -> Any:
    from clew._files import archive
    from clew._files.stretch import Stretch

    start, size = file.tell(), archive.file_size(file)
    try:
        if not 0 < start < size:  # at its end, as save leaves it, too
            return _load_from(file, size, map_location, path, trusted, encoding)[0]
        part = Stretch(file, start, size - start)
        found, end = _load_from(part, size - start, map_location, path, trusted, encoding)
        file.seek(start + end)
        return found
    except BaseException:
        file.seek(start)
        raise


def _load_from(
    file: Any, size: int, map_location: Any, path: str | None, trusted: bool, encoding: str
) -> tuple[Any, int]:
    """What stands at the file's beginning, and where that ends; the file is left there."""
    from clew._files import archive, legacy, safetensors, whole
    from clew._files.places import placement

    file.seek(0)
    head = file.read(512)
    if not isinstance(head, bytes):
        raise TypeError("load: the file must be open for binary reading")
    place = placement(map_location)
    reader: Any
    if archive.is_archive(head):
        reader = archive.Reader(file, place, path, encoding)
    elif safetensors.is_safetensors(head[:16], size):
        _need_container("load", "read; this is a safetensors file")
        return safetensors.read(file, place, path), size
    elif not head:
        raise EOFError("load: the file is empty")
    elif legacy.is_tar(head) or head[:1] == b"\x80":
        if path:
            raise RuntimeError(
                "load: mmap=True needs a container; this file is of a format before it. Save it "
                "again, or leave mmap out"
            )
        _need_container("load", "read; this file is of a format before it")
        kind = legacy.TarReader if legacy.is_tar(head) else legacy.RowReader
        reader = kind(file, size, place, encoding)
    else:
        raise pickle.UnpicklingError(
            f"load: the file is neither one made by save nor safetensors; {_foreign(head)}"
        )
    found = whole.load(reader) if trusted and not reader.is_data() else reader.load()
    file.seek(reader.end)  # where what was saved after it begins
    return found, reader.end


_FOREIGN = {
    b"version https://git-lfs": "it is a pointer of Git LFS; `git lfs pull` fetches the file",
    b"<": "it looks like a web page; look at what was downloaded",
    b"\x93NUMPY": "it is an array of NumPy's; use clew.from_numpy(numpy.load(...))",
    b"\x1f\x8b": "it is compressed by gzip; unpack it first",
    b"\x89HDF": "it is an HDF5 file, which h5py reads",
}


def _foreign(head: bytes) -> str:
    """What a file that begins so may be instead, and what to do with it."""
    for beginning, told in _FOREIGN.items():
        if head.lstrip().startswith(beginning):
            return told
    return f"it begins with {head[:16]!r}"


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allows files to construct objects of these classes, and `save` to write them.

    Constructing runs the class's `__new__`, `__setstate__` and the like with what the file
    contains: allow only classes whose construction is harmless whatever the arguments.

    Args:
        safe_globals: classes, or (class, "module.name") pairs for another name in the file.

    Example:
        >>> from clew.serialization import add_safe_globals, clear_safe_globals
        >>> from fractions import Fraction
        >>> add_safe_globals([Fraction])
        >>> clear_safe_globals()
    """
    safe.allow(safe_globals)


def get_safe_globals() -> list[Any]:
    """The classes allowed so far.

    Example:
        >>> from clew.serialization import get_safe_globals
        >>> get_safe_globals()
        []
    """
    return safe.entries()


def clear_safe_globals() -> None:
    """Allows no classes any more.

    Example:
        >>> from clew.serialization import clear_safe_globals
        >>> clear_safe_globals()
    """
    safe.replace([])


class skip_data:
    """Leaves the elements of tensors out of what `save` writes and `load` reads, in this thread.

    What is saved has room for the elements, zeros, which another program may fill. What is loaded
    has its shapes, and elements that are not set.

    Args:
        materialize_fake_tensors: False.

    Example:
        >>> import io
        >>> from clew.serialization import load, save, skip_data
        >>> file = io.BytesIO()
        >>> with skip_data():
        ...     save(clew.ones(2), file)
        >>> load(file)
        tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        if materialize_fake_tensors:
            raise NotImplementedError(
                "skip_data: materialize_fake_tensors=True is not offered; save the tensors that "
                "the fake ones stand for"
            )

    def __enter__(self) -> None:
        self._before = skipping.on
        skipping.on = True

    def __exit__(self, *exc: object) -> None:
        skipping.on = self._before


class safe_globals:
    """Allows classes within a `with` block.

    Args:
        safe_globals: classes, or (class, "module.name") pairs.

    Example:
        >>> from clew.serialization import get_safe_globals, safe_globals
        >>> from fractions import Fraction
        >>> with safe_globals([Fraction]):
        ...     len(get_safe_globals())
        1
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self._entries = safe_globals

    def __enter__(self) -> None:
        self._before = safe.entries()
        safe.allow(self._entries)

    def __exit__(self, *exc: object) -> None:
        safe.replace(self._before)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a container that `load` would refuse; nothing is constructed for them.

    Args:
        f: a path, or a file open for binary reading.

    Returns:
        Names such as "package.module.Class".

    Example:
        >>> import io
        >>> from clew.serialization import get_unsafe_globals_in_checkpoint, save
        >>> file = io.BytesIO()
        >>> save([1, 2], file)
        >>> get_unsafe_globals_in_checkpoint(file)
        []
    """
    from clew._files import archive
    from clew._files.places import placement
    from clew._files.stretch import Stretch

    with _opened(f) as file:
        at, size = file.tell(), archive.file_size(file)
        # From where load would read it.
        part = Stretch(file, at, size - at) if 0 < at < size else file
        try:
            return sorted(set(archive.Reader(part, placement("cpu")).unknown_names()))
        finally:
            file.seek(at)  # so that it can be loaded then


@contextmanager
def _opened(f: Any) -> Iterator[Any]:
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            yield file
    else:
        yield f


class SourceChangeWarning(Warning):
    """The source of a saved class has changed: not given, since sources are not compared."""


class LoadEndianness(Enum):
    """The byte order of files that do not say it."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def _get_layout(name: str) -> Any:
    """A layout by its name, as Python's pickles of PyTorch's sparse tensors hold it."""
    import clew

    return getattr(clew, name.removeprefix("torch."))


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order of files that do not say it: None, which is this machine's."""
    return None


# For annotations.
FILE_LIKE: TypeAlias = str | os.PathLike[str] | IO[bytes]
MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | device | str | dict[str, str] | None


if not TYPE_CHECKING:  # else checkers take any name to be there

    def __getattr__(name: str) -> Any:
        if name in ("default_restore_location", "location_tag", "register_package"):
            from clew._files import places

            return getattr(places, name)
        if name == "STORAGE":
            from clew.storage import TypedStorage, UntypedStorage

            return TypedStorage | UntypedStorage
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"annotations"})
