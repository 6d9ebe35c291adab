"""How clew was built and what it runs on."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator

import clew

__all__ = ["parallel_info", "show"]


def _onednn() -> str:
    import ctypes

    # Beside the extension, which in an editable install is not where the Python files are.
    folder = os.path.dirname(clew._C.__file__)
    for place in (os.path.join(folder, "libdnnl.so.3"), "libdnnl.so.3"):
        try:
            library = ctypes.CDLL(place)
            break
        except OSError:
            continue
    else:
        return "not found"

    class Version(ctypes.Structure):
        _fields_ = [(n, ctypes.c_int) for n in ("major", "minor", "patch")]

    library.dnnl_version.restype = ctypes.POINTER(Version)
    version = library.dnnl_version().contents
    return f"{version.major}.{version.minor}.{version.patch}"


def _processor() -> tuple[str, set[str]]:
    name, flags = platform.processor() or platform.machine(), set()
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    name = value.strip()
                elif key.strip() == "flags":
                    flags = set(value.split())
                    break
    except OSError:
        pass
    return name, flags


def _size(path: str) -> int:
    return sum(
        os.path.getsize(os.path.join(folder, name))
        for folder, _, names in os.walk(path)
        for name in names
    )


def _lines() -> Iterator[tuple[str, str]]:
    yield "clew", clew.__version__
    yield "Python", f"{platform.python_version()} ({sys.platform}, {platform.machine()})"
    import numpy

    yield "NumPy", numpy.__version__
    name, flags = _processor()
    yield "processor", name
    sets = [s for s in ("avx2", "fma", "avx512f", "avx512_bf16", "amx_tile") if s in flags]
    yield "instructions", ", ".join(sets) or "baseline"
    yield "loops", clew._C._cpu_capability()
    yield "threads", f"{clew.get_num_threads()} of {os.cpu_count()} processors"
    yield "oneDNN", _onednn()
    if not clew._C._has_onednn():
        from clew._base.lapack import load

        yield "products", "OpenBLAS" if load() else "clew's own kernels"
    folder = os.path.dirname(clew.__file__)
    yield "installed in", folder
    native = os.path.dirname(clew._C.__file__)
    size = _size(folder) + (0 if native == folder else _size(native))
    yield "size", f"{size / 1e6:.1f} MB"
    yield "default dtype", str(clew.get_default_dtype())


def show() -> str:
    """A table of versions, processor and threads, as `clew info` prints it.

    Returns:
        One line a fact.

    Example:
        >>> from clew.__config__ import show
        >>> "oneDNN" in show()
        True
    """
    return "".join(f"{key + ':':<15}{value}\n" for key, value in _lines())


def parallel_info() -> str:
    """How many threads operations use.

    Returns:
        One line a fact.

    Example:
        >>> from clew.__config__ import parallel_info
        >>> "threads" in parallel_info()
        True
    """
    return f"threads: {clew.get_num_threads()}\nprocessors: {os.cpu_count()}\n"
