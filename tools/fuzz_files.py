"""Loads thousands of damaged and hostile files, and counts what must not happen.

    python tools/fuzz_files.py --files 20000 --seed 1

Files come from `clew.save` (containers, safetensors), damaged in the bytes, in the structure (with
the checksums made right again) and in the archive's directory; and from a generator of random
structures that knows what the reader knows. Each is loaded in a child process with bounded memory.
What must not happen: the child dies or takes more than 20 s of the processor for a file, an
exception of another type than promised, or one whose text is longer than 2,000 characters. The file
is then kept.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pickle
import random
import resource
import select
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from typing import Any, BinaryIO

from fuzz.processes import bound_addresses, seconds_of

MOST_SECONDS = 20.0
MOST_MEMORY = 3 << 30  # of addresses, some 1.5 GB of which the libraries take
LONGEST_MESSAGE = 2000

# ---- making files --------------------------------------------------------------------------------


def whole_files() -> list[bytes]:
    """Good files of both formats."""
    import numpy as np

    import clew
    from clew import nn, serialization

    clew.manual_seed(0)
    base = clew.rand(4, 6)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    optimizer = clew.optim.Adam(model.parameters())
    model(clew.rand(5, 3)).sum().backward()
    optimizer.step()
    nested: Any = defaultdict(dict)
    noted: list[Any] = [clew.ones(2), nn.Parameter(clew.ones(2)), nn.Buffer(clew.ones(2))]
    noted.append(clew.eye(2).to_sparse())
    for x in noted:
        x.note, x.more = 1, {"a": base}
    nested["a"][(1, "b")] = [1.5, None, True, 2**70, b"bytes", bytearray(b"more")]
    values: list[Any] = [
        model.state_dict(),
        optimizer.state_dict(),
        [base, base.t(), base[1:, ::2], nn.Parameter(base[0]), clew.ones(2, device="meta")],
        [clew.ones(3).to(d) for d in (clew.bool, clew.bfloat16, clew.complex64, clew.uint16)],
        {"np": np.arange(6.0).reshape(2, 3), "s": np.float32(3), "t": np.array(["ab", "c"])},
        [nested, Counter("hello"), OrderedDict(a=1), {1, 2}, frozenset("ab"), slice(1, None)],
        [clew.Size([1, 2]), clew.device("cpu"), clew.float32, 1 + 2j, float("nan"), "\udcff"],
        clew.rand(3, requires_grad=True),
        noted,
    ]
    files = []
    for value in values:
        file = io.BytesIO()
        serialization.save(value, file)
        files.append(file.getvalue())
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.safetensors"
        serialization.save({"a": base, "b": clew.arange(3), "c": clew.ones(0)}, path)
        files.append(Path(path).read_bytes())
    return files


def container(structure: bytes, storages: dict[str, bytes] | None = None) -> bytes:
    """A container with right sizes and checksums."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", structure)
        archive.writestr("archive/byteorder", sys.byteorder)
        for key, data in (storages or {}).items():
            archive.writestr(f"archive/data/{key}", data)
        archive.writestr("archive/version", "3\n")
    return file.getvalue()


def _opened(data: bytes) -> tuple[bytes, dict[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = {name: archive.read(name) for name in archive.namelist()}
    storages = {n.split("/data/")[1]: d for n, d in names.items() if "/data/" in n}
    return names["archive/data.pkl"], storages


NUMBERS = [0, 1, 2, 3, 255, 256, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1, 2**63]


class Damage:
    """Ways to damage bytes, chosen by a random generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def bytes(self, data: bytes) -> bytes:
        """Some bytes changed, cut, doubled, moved or replaced by telling numbers."""
        out = bytearray(data)
        for _ in range(self.rng.choice((1, 1, 2, 4, 16))):
            if not out:
                break
            at = self.rng.randrange(len(out))
            length = min(self.rng.choice((1, 2, 4, 8, 40)), len(out) - at)
            way = self.rng.randrange(7)
            if way == 0:
                out[at] = self.rng.randrange(256)
            elif way == 1:
                out[at] ^= 1 << self.rng.randrange(8)
            elif way == 2:
                del out[at : at + length]
            elif way == 3:
                out[at:at] = out[at : at + length]
            elif way == 4:
                to = self.rng.randrange(len(out))
                out[to:to] = out[at : at + length]
            elif way == 5:
                size = self.rng.choice((1, 2, 4, 8))
                number = self.rng.choice(NUMBERS) & ((1 << 8 * size) - 1)
                out[at : at + size] = number.to_bytes(size, "little")
            else:
                del out[at:]
        return bytes(out)

    def structure(self, data: bytes) -> bytes:
        """A container whose structure or storages are damaged and whose checksums are right."""
        structure, storages = _opened(data)
        if storages and self.rng.random() < 0.2:
            key = self.rng.choice(sorted(storages))
            storages[key] = self.bytes(storages[key])
        else:
            structure = self.bytes(structure)
        return container(structure, storages)

    def directory(self, data: bytes) -> bytes:
        """An archive whose directory or headers lie."""
        out = bytearray(data)
        marks = []
        for mark, fields in (
            (b"PK\x01\x02", (8, 10, 12, 16, 20, 24, 28, 30, 32, 34, 42)),
            (b"PK\x03\x04", (6, 8, 14, 18, 22, 26, 28)),
            (b"PK\x05\x06", (4, 8, 10, 12, 16, 20)),
        ):
            at = data.find(mark)
            while at >= 0:
                marks.append((at, fields))
                at = data.find(mark, at + 1)
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            at, fields = self.rng.choice(marks)
            field = at + self.rng.choice(fields)
            size = self.rng.choice((2, 4))
            number = self.rng.choice([*NUMBERS, *(a for a, _ in marks), len(data)])
            out[field : field + size] = (number & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        return bytes(out)


class Structures:
    """Random structures: opcodes that mostly find on the stack what they need."""

    def __init__(self, rng: random.Random) -> None:
        from clew._files.construct import DTYPES, NAMES

        self.rng = rng
        self.names = [*NAMES, *DTYPES, "os.system", "torch.nn.Module"]

    def _number(self, n: int) -> bytes:
        if 0 <= n < 256:
            return pickle.BININT1 + bytes([n])
        data = pickle.encode_long(n)
        return pickle.LONG1 + bytes([len(data)]) + data

    def _name(self, full: str) -> bytes:
        module, _, name = full.rpartition(".")
        return pickle.GLOBAL + f"{module}\n{name}\n".encode()

    def _atom(self) -> bytes:
        rng = self.rng
        return rng.choice(
            (
                lambda: pickle.NONE,
                lambda: rng.choice((pickle.NEWTRUE, pickle.NEWFALSE)),
                lambda: self._number(rng.choice(NUMBERS) * rng.choice((1, 1, -1))),
                lambda: pickle.BINFLOAT + struct.pack(">d", rng.choice((0.0, 1e300, float("nan")))),
                lambda: pickle.SHORT_BINUNICODE + b"\x01" + rng.choice((b"0", b"f", b"a")),
                lambda: (
                    pickle.SHORT_BINUNICODE + b"\x02" + rng.choice((b"f4", b"cp", b"U9", b"<b"))
                ),
                lambda: pickle.SHORT_BINBYTES + b"\x08" + rng.randbytes(8),
                lambda: rng.choice((b"]", b"}", b")", b"\x8f")),
                lambda: self._name(rng.choice(self.names)),
                lambda: self._storage(),
            )
        )()

    def _storage(self) -> bytes:
        kinds = ("FloatStorage", "BoolStorage", "LongStorage", "ComplexDoubleStorage")
        return (
            pickle.MARK
            + pickle.SHORT_BINUNICODE
            + b"\x07storage"
            + self._name(f"torch.{self.rng.choice(kinds)}")
            + pickle.SHORT_BINUNICODE
            + b"\x010"
            + pickle.SHORT_BINUNICODE
            + b"\x03cpu"
            + self._number(self.rng.choice((*NUMBERS, 8, 16)))
            + pickle.TUPLE
            + pickle.BINPERSID
        )

    def _sizes(self) -> bytes:
        n = self.rng.choice((0, 1, 1, 2, 3, 70))
        values = [self.rng.choice((0, 1, 1, 2, 3, *NUMBERS)) for _ in range(n)]
        return pickle.MARK + b"".join(self._number(v) for v in values) + pickle.TUPLE

    def _tensor(self) -> bytes:
        return (
            self._name("torch._utils._rebuild_tensor_v2")
            + pickle.MARK
            + self._storage()
            + self._number(self.rng.choice((0, 0, 1, *NUMBERS)))
            + self._sizes()
            + self._sizes()
            + self.rng.choice((pickle.NEWTRUE, pickle.NEWFALSE))
            + b"}"
            + pickle.TUPLE
            + pickle.REDUCE
        )

    def _call(self) -> bytes:
        args = b"".join(self._value(0.5) for _ in range(self.rng.choice((0, 1, 1, 2, 3, 7))))
        name = self._name(self.rng.choice(self.names))
        end = pickle.REDUCE if self.rng.random() < 0.9 else pickle.NEWOBJ
        return name + pickle.MARK + args + pickle.TUPLE + end

    def _doubled(self) -> bytes:
        """Containers of the same container, level over level."""
        level = self.rng.choice((5, 30, 100))
        make = self.rng.choice((b"\x86", b"\x86", b"l"))
        out = self.rng.choice((b")", b"N", b"K\x01\x85")) + pickle.BINPUT + b"\xff"
        for _ in range(level):
            pair = pickle.BINGET + b"\xff" + pickle.BINGET + b"\xff"
            out += b"0" + (b"(" + pair + b"l" if make == b"l" else pair + make)
            out += pickle.BINPUT + b"\xff"
        return out

    def _deep(self) -> bytes:
        """One container in another many times."""
        levels = self.rng.choice((50, 2000, 100_000))
        if self.rng.random() < 0.5:
            new = self._name("collections.defaultdict") + pickle.BINPUT + b"\xfe0"
            one = pickle.BINGET + b"\xfe)R"
            return new + (one + b"N") * (levels - 1) + one + b"s" * (levels - 1)
        wrap = self.rng.choice((b"\x85", b"]", b"}N"))
        if wrap == b"\x85":
            return b")" + wrap * levels
        if wrap == b"]":
            return wrap * levels + b"a" * (levels - 1)
        return wrap * (levels - 1) + b"}" + b"s" * (levels - 1)

    def _repeated(self) -> bytes:
        """The same large value, used by many calls."""
        size = self.rng.choice((100, 100_000))
        kind = self.rng.choice(("bytearray", "set", "list", "Counter", "Size"))
        times = self.rng.choice((10, 5000))
        if kind == "bytearray":
            value = pickle.BINBYTES + struct.pack("<I", size) + b"x" * size
        else:
            value = b"(" + b"K\x01" * size + b"t"
        name = {"Counter": "collections.Counter", "Size": "torch.Size"}.get(kind)
        call = self._name(name or f"builtins.{kind}") + pickle.BINPUT + b"\xfd0"
        args = value + b"\x85" + pickle.BINPUT + b"\xfc0"
        one = pickle.BINGET + b"\xfd" + pickle.BINGET + b"\xfcR"
        return call + args + b"(" + one * times + b"l"

    def _keys(self) -> bytes:
        """A dict or set of keys with one hash."""
        count = self.rng.choice((10, 300, 30_000))
        keys = [self._number(k * (2**61 - 1)) for k in range(1, count)]
        if self.rng.random() < 0.5:
            return b"}(" + b"".join(k + b"N" for k in keys) + b"u"
        return self._name("builtins.set") + b"(" + b"".join(keys) + b"l\x85R"

    def _value(self, simple: float) -> bytes:
        if self.rng.random() < simple:
            return self._atom()
        odd = self.rng.random()
        if odd < 0.03:
            make = self.rng.choice((self._doubled, self._deep, self._repeated, self._keys))
            return make()
        if odd < 0.2:
            return self._tensor()
        if odd < 0.6:
            return self._call()
        inside = b"".join(self._value(0.7) for _ in range(self.rng.choice((0, 2, 4))))
        way = self.rng.randrange(5)
        if way == 0:
            return b"(" + inside + b"t"
        if way == 1:
            return b"](" + inside + b"e"
        if way == 2:
            return b"}(" + inside + b"u"
        if way == 3:
            return self._call() + self._value(0.5) + b"b"
        return b"\x8f(" + inside + b"\x90"

    def structure(self) -> bytes:
        """One."""
        out = b"\x80\x02" + self._value(0.1)
        for _ in range(self.rng.choice((0, 0, 1, 3))):
            value = self._value(0.3)
            out += value + self.rng.choice((b"\x86", b"0", b"Q", b"b", b"R", b"\x85R", b"a", b"Ns"))
        return out + b"."


def one_file(number: int, seed: int, good: list[bytes]) -> bytes:
    """File `number` of a run."""
    rng = random.Random(f"{seed}/{number}")
    damage = Damage(rng)
    way = rng.random()
    source = rng.choice(good)
    if way < 0.15:
        return damage.bytes(source)
    if way < 0.5 and source[:2] == b"PK":
        return damage.structure(source)
    if way < 0.6 and source[:2] == b"PK":
        return damage.directory(source)
    if way < 0.65:
        header = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
        text = json.dumps(header).encode()
        text = damage.bytes(text) if rng.random() < 0.8 else b"[" * rng.choice((10, 100_000))
        return struct.pack("<Q", len(text)) + text + bytes(8)
    storages = {"0": rng.randbytes(rng.choice((0, 8, 64))) if rng.random() < 0.5 else bytes(64)}
    return container(Structures(rng).structure(), storages)


# ---- loading them --------------------------------------------------------------------------------


def _look_at(value: Any, seen: int = 0) -> int:
    """Uses the tensors of what was loaded."""
    import clew

    if isinstance(value, clew.Tensor):
        if not value.is_meta and value.numel() < 10_000:
            value.detach().clone()
            str(value)
        return seen + 1
    if isinstance(value, (list, tuple)):
        for item in value[:20]:
            if seen > 100:
                break
            seen = _look_at(item, seen + 1)
    elif isinstance(value, dict):
        for item in list(value.values())[:20]:
            if seen > 100:
                break
            seen = _look_at(item, seen + 1)
    return seen


def load_all(first: int, count: int, seed: int, folder: str) -> None:
    """What the child does: a line for each file, before it and after it."""
    import clew
    from clew import serialization

    good = whole_files()
    expected = (pickle.UnpicklingError, RuntimeError, EOFError)
    bound_addresses(MOST_MEMORY)
    for number in range(first, first + count):
        data = one_file(number, seed, good)
        path = Path(folder, f"file-{seed}-{number}")
        path.write_bytes(data)
        print(json.dumps(["start", number]), flush=True)
        began = time.process_time()
        results = []
        ways: list[Any] = [
            (clew.load, io.BytesIO(data), {}),
            (clew.load, path, {"mmap": True}),
            (serialization.get_unsafe_globals_in_checkpoint, path, {}),
        ]
        for function, source, options in ways:
            try:
                value = function(source, **options)
                _look_at(value)
                del value
                results.append("loaded")
            except expected as error:
                text = str(error)
                results.append(
                    type(error).__name__ if len(text) <= LONGEST_MESSAGE else "long message"
                )
            except BaseException as error:
                results.append(f"unexpected {type(error).__name__}: {str(error)[:300]}")
        took = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        bad = any(r.startswith(("unexpected", "long")) for r in results)
        if not bad:
            path.unlink()
        print(json.dumps(["end", number, took, peak, results]), flush=True)


class Run:
    """Children that load files, watched."""

    def __init__(self, seed: int, folder: str) -> None:
        self.seed = seed
        self.folder = folder
        self.results: Counter[str] = Counter()
        self.bad: list[str] = []
        self.slowest = (0.0, -1)
        self.peak = 0

    def _blame(self, number: int, what: str) -> None:
        self.bad.append(f"{what}: {self.folder}/file-{self.seed}-{number}")
        print(self.bad[-1], flush=True)

    def part(self, first: int, count: int) -> int:
        """Loads files in one child; returns how many were done with."""
        child = subprocess.Popen(
            [
                sys.executable,
                __file__,
                "--child",
                *map(str, (first, count, self.seed, self.folder)),
            ],
            stdout=subprocess.PIPE,
        )
        assert child.stdout is not None
        current, done, began = -1, 0, MOST_SECONDS  # as many again for the imports
        lines = _lines(child.stdout)
        while True:
            line = lines.next(MOST_SECONDS)
            if line is None:
                # Seconds of the processor: others may use it, too.
                if seconds_of(child.pid) - began < MOST_SECONDS:
                    continue
                self._blame(current, f"more than {MOST_SECONDS:.0f} s")
                child.kill()
                child.wait()
                return done + 1
            if line == b"":
                break
            message = json.loads(line)
            current = message[1]
            began = seconds_of(child.pid)
            if message[0] == "end":
                done += 1
                _, _, took, peak, results = message
                self.slowest = max(self.slowest, (took, current))
                self.peak = max(self.peak, peak)
                for result in results:
                    self.results[result.split(":")[0]] += 1
                    if result.startswith(("unexpected", "long")):
                        self._blame(current, result)
        if child.wait() != 0 and done < count:
            self._blame(current, f"the process died ({child.returncode})")
            return done + 1
        return done


class _lines:
    """Lines of a pipe, with a time limit for each."""

    def __init__(self, pipe: BinaryIO) -> None:
        self.pipe = pipe
        self.rest = b""

    def next(self, seconds: float) -> bytes | None:
        """The next line, b"" at the end, None when it does not come in time."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.pipe], [], [], left)[0]:
                return None
            more = os.read(self.pipe.fileno(), 1 << 16)
            if not more:
                return b""
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        return line


def main() -> int:
    """Loads the files and says what happened."""
    if sys.argv[1:2] == ["--child"]:
        first, count, seed = (int(a) for a in sys.argv[2:5])
        load_all(first, count, seed, sys.argv[5])
        return 0
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--keep", help="folder for the files that did harm")
    parser.add_argument("--report", help="a file for the numbers, as JSON")
    args = parser.parse_args()
    folder = args.keep or tempfile.mkdtemp(prefix="clew-files-")
    os.makedirs(folder, exist_ok=True)
    run = Run(args.seed, folder)
    done = 0
    while done < args.files:
        done += max(1, run.part(args.first + done, min(1000, args.files - done)))
    for result, times in run.results.most_common():
        print(f"{times:8} {result}")
    print(f"slowest: {run.slowest[0]:.2f} s (file {run.slowest[1]}); most memory: {run.peak} MB")
    print(f"{done} files, {len(run.bad)} did what must not happen")
    if args.report:
        summary = {
            "seed": args.seed,
            "files": done,
            "loaded": run.results["loaded"],
            "bad": len(run.bad),
            "slowest": round(run.slowest[0], 2),
            "peak": run.peak,
            "found": run.bad,
        }
        Path(args.report).write_text(json.dumps(summary, indent=1), encoding="utf-8")
    return 1 if run.bad else 0


if __name__ == "__main__":
    sys.exit(main())
