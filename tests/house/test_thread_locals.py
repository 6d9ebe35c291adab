"""The native module's thread-local variables, of which a running process can place few."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from clew import _C

TLS, DYNSYM = 6, 11
# What a process has left, beside what other large libraries take, is some 1,600 bytes.
MOST = 512


def sections(data: bytes) -> list[tuple[int, ...]]:
    """(name, type, flags, address, offset, size, link, ...) of a 64-bit ELF file's sections."""
    start = struct.unpack_from("<Q", data, 40)[0]
    size, count = struct.unpack_from("<HH", data, 58)
    return [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ELF files are Linux's")
def test_no_thread_local_variable_of_another_library():
    """Such a variable cannot be placed where the library was loaded before, as by PyTorch."""
    data = Path(_C.__file__).read_bytes()
    assert data[:5] == b"\x7fELF\x02"
    table = sections(data)
    (symbols,) = [s for s in table if s[1] == DYNSYM]
    names = table[symbols[6]]
    foreign = []
    for at in range(symbols[4], symbols[4] + symbols[5], 24):
        name, info, _, section = struct.unpack_from("<IBBH", data, at)
        if info & 15 == TLS and section == 0:
            begin = names[4] + name
            foreign.append(data[begin : data.index(b"\0", begin)].decode())
    assert foreign == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ELF files are Linux's")
def test_own_thread_local_variables_are_few():
    data = Path(_C.__file__).read_bytes()
    start = struct.unpack_from("<Q", data, 32)[0]
    size, count = struct.unpack_from("<HH", data, 54)
    sizes = [
        struct.unpack_from("<IIQQQQQQ", data, start + i * size)[6]
        for i in range(count)
        if struct.unpack_from("<I", data, start + i * size)[0] == 7
    ]
    assert len(sizes) == 1 and 0 < sizes[0] <= MOST
