"""The file of an exported program: a zip of JSON and raw tensors. Nothing in it is executed.

``program.json`` has the calls; ``tensors/<n>`` the elements of tensor n, row by row, little
endian. Members are stored, not compressed. Reading builds plain data and checks all of it: a call
names an operation of `_names`, arguments refer to values that exist before it.
"""

from __future__ import annotations

import io
import json
import keyword
import math
import os
import zipfile
from typing import Any

import numpy as np

import clew
from clew import _C, Tensor
from clew._files.archive import made_by_pytorch
from clew.export import _tree
from clew.export._errors import ExportError, Place
from clew.export._ir import Block, Node, Program, Value
from clew.export._listing import name_values
from clew.export._names import function_of
from clew.nn import Parameter

__all__ = ["from_bytes", "to_bytes"]

_FORMAT = "clew program"
_VERSION = 1
_DTYPES = {
    d.name: d
    for d in (
        clew.bool, clew.uint8, clew.int8, clew.int16, clew.int32, clew.int64, clew.uint16,
        clew.uint32, clew.uint64, clew.float16, clew.bfloat16, clew.float32, clew.float64,
        clew.complex64, clew.complex128,
    )
}  # fmt: skip
_FORMATS = {
    "contiguous_format": clew.contiguous_format,
    "channels_last": clew.channels_last,
    "channels_last_3d": clew.channels_last_3d,
    "preserve_format": clew.preserve_format,
}


# ---- writing ----


def _value(v: Value) -> Any:
    sizes = list(v.sizes) if v.kind == "tensor" else []
    return [v.id, v.kind, v.dtype.name if v.dtype is not None else None, sizes, v.name]


class _Table:
    """A program's calls as JSON, and the places and tensors that they refer to by number.

    `shared` has the names, by id, of tensors that stand in the file around this one.
    """

    def __init__(self, shared: dict[int, str]) -> None:
        self.shared = shared
        self.places: list[Any] = []
        self.tensors: list[Any] = []
        self.payload: list[bytes] = []
        self._numbers: dict[Any, int] = {}  # of places
        self._stored: dict[int, int] = {}  # numbers of tensors, by id

    def place(self, p: Place) -> int:
        key = (p.file, p.line, p.text, p.module)
        if key not in self._numbers:
            self._numbers[key] = len(self.places)
            self.places.append([os.path.basename(p.file), p.line, p.text, p.module])
        return self._numbers[key]

    def node(self, n: Node) -> Any:
        return {
            "op": n.op,
            "args": _packed(tuple(n.args)),
            "kwargs": {k: _packed(v) for k, v in n.kwargs.items()},
            "outputs": [_value(o) for o in n.outputs],
            "blocks": [self.block(b) for b in n.blocks],
            "place": self.place(n.place),
            "flags": [int(n.shares), int(n.no_grad), int(n.several)],
        }

    def block(self, b: Block) -> Any:
        return {
            "params": [_value(p) for p in b.params],
            "nodes": [self.node(n) for n in b.nodes],
            "results": _packed(list(b.results)),
        }

    def tensor(self, tensor: Tensor) -> int:
        key = id(tensor)
        if key not in self._stored:
            self._stored[key] = len(self.tensors)
            if key in self.shared:
                self.tensors.append([self.shared[key]])
                self.payload.append(b"")
            else:
                sizes = [int(n) for n in tensor.shape]
                self.tensors.append([tensor.dtype.name, sizes, bool(tensor.requires_grad)])
                self.payload.append(_raw(tensor))
        return self._stored[key]


def to_bytes(
    program: Program,
    extra: dict[str, Any] | None = None,
    methods: dict[str, Program] | None = None,
    shared: dict[int, str] | None = None,
) -> bytes:
    """A program as a file's bytes.

    Args:
        program: what is written.
        extra: further members, strings or bytes.
        methods: further programs of the same module, by name; each is a file in the file.
        shared: names of tensors, by id, that stand in the file around this one.
    """
    table = _Table(shared or {})
    kept = []
    for v in program.kept:
        assert v.source is not None
        kind, name = v.source
        kept.append([_value(v), kind, name, table.tensor(program.tensors[name])])
    state = [[kind, name, table.tensor(program.tensors[name])] for kind, name in program.state]
    whole = {
        "format": _FORMAT,
        "version": _VERSION,
        "inputs": [_value(v) for v in program.inputs],
        "kept": kept,
        **({"state": state} if state else {}),
        **({"transient": sorted(program.transient)} if program.transient else {}),
        "tensors": table.tensors,
        "body": table.block(program.body),
        "in": program.in_tree,
        "out": program.out_tree,
        "names": program.input_names,
        "dims": [{str(d): n for d, n in table.items()} for table in program.dims],
        "ranges": {n: list(r) for n, r in program.ranges.items()},
        "training": program.training,
        **({"name": program.name} if program.name else {}),
        **({"numbers": True} if program.numbers else {}),
        "places": table.places,
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        _member(archive, "program.json", json.dumps(whole).encode())
        for i, data in enumerate(table.payload):
            _member(archive, f"tensors/{i}", data)
        own = {id(t): name for name, t in program.tensors.items()}
        for name, method in (methods or {}).items():
            _member(archive, f"methods/{name}", to_bytes(method, shared=own))
            taken = set(own.values())
            own |= {id(t): n for n, t in method.tensors.items() if n not in taken}
        for name, content in (extra or {}).items():
            data = content.encode() if isinstance(content, str) else bytes(content)
            _member(archive, f"extra/{name}", data)
    return out.getvalue()


def _member(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)


def _raw(t: Tensor) -> bytes:
    t = t.detach().contiguous()
    if t.dtype == clew.bfloat16:
        t = t.view(clew.int16)
    return t.numpy().tobytes()


def _packed(tree: Any) -> Any:
    """An argument as JSON."""
    if isinstance(tree, Value):
        return {"v": tree.id}
    if tree is None or isinstance(tree, (bool, str)):
        return tree
    if isinstance(tree, int):
        return tree if abs(tree) < 2**53 else {"i": str(tree)}
    if isinstance(tree, float):
        return {"f": repr(tree)}
    if isinstance(tree, complex):
        return {"c": [repr(tree.real), repr(tree.imag)]}
    if isinstance(tree, _C.dtype):
        return {"d": tree.name}
    if isinstance(tree, _C.device):
        return {"on": str(tree)}
    if tree is Ellipsis:
        return {"e": 1}
    if isinstance(tree, slice):
        return {"s": [_packed(p) for p in (tree.start, tree.stop, tree.step)]}
    if isinstance(tree, list):
        return [_packed(t) for t in tree]
    if isinstance(tree, (tuple, _C.Size)):
        return {"t": [_packed(t) for t in tree]}
    for name, known in _FORMATS.items():
        if tree is known:
            return {"m": name}
    if tree is clew.strided:
        return {"l": "strided"}
    raise ExportError(f"export.save: an argument is a {type(tree).__name__}, which no file holds")


# ---- reading ----


def from_bytes(data: bytes) -> tuple[Program, dict[str, bytes], dict[str, Program]]:
    """The program of a file's bytes, its further members, and the programs of further methods."""
    try:
        program, extra, methods = _Reader(data, {}).program()
        found: dict[str, Program] = {}
        shared = dict(program.tensors)
        for name, content in methods.items():
            if not name.isidentifier() or name[0] == "_":
                raise ValueError(f"a method is called {name!r}")
            found[name] = _Reader(content, shared).program()[0]
            shared = {**found[name].tensors, **shared}
        return program, extra, found
    except ExportError:
        raise
    except (
        KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError, RuntimeError,
        OverflowError, zipfile.BadZipFile, NotImplementedError, EOFError, OSError, MemoryError,
    ) as e:  # fmt: skip
        raise ExportError(
            f"export.load: the file is damaged, or no exported program: {type(e).__name__}: {e}"
        ) from e


class _Reader:
    def __init__(self, data: bytes, shared: dict[str, Any]) -> None:
        self.shared = shared
        self.values: dict[int, Value] = {}
        self.members: dict[str, bytes] = {}
        self.budget = 4 * len(data) + 1024
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            if foreign := made_by_pytorch(names):
                raise ExportError(f"export.load: {foreign}")
            if "program.json" not in names and any(n.endswith("/data.pkl") for n in names):
                raise ExportError(
                    "export.load: the file was made by save(), which keeps no program; read it "
                    "with clew.load(path)"
                )
            total = 0
            for info in archive.infolist():
                total += info.file_size
                if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
                    raise ValueError("a member is compressed or encrypted")
                if info.file_size != info.compress_size or total > len(data):
                    raise ValueError("a member is longer than the file")
                if info.filename in self.members:
                    raise ValueError(f"two members are called {info.filename!r}")
                self.members[info.filename] = archive.read(info)
        self.whole = json.loads(self.members["program.json"].decode())
        if not isinstance(self.whole, dict) or self.whole.get("format") != _FORMAT:
            raise ValueError("program.json is no program")
        if self.whole.get("version") != _VERSION:
            raise ExportError(
                f"export.load: the file has version {self.whole.get('version')!r}; this clew reads "
                f"{_VERSION}"
            )

    @staticmethod
    def state(p: Program, whole: Any, tensor: Any) -> None:
        """All parameters and buffers, those that no call reads among them."""
        for kind, name, index in whole.get("state", []):
            t = tensor(kind, name, index)
            if kind == "constant" or (kind, name) in p.state or p.tensors.get(name, t) is not t:
                raise ValueError(f"the state has a tensor {name!r} that is another's")
            p.tensors[name] = t
            p.state.append((kind, name))
        p.transient = {str(n) for n in whole.get("transient", [])}
        if not p.transient <= {n for kind, n in p.state if kind == "buffer"}:
            raise ValueError("a buffer of the state is missing")

    def program(self) -> tuple[Program, dict[str, bytes], dict[str, bytes]]:
        whole = self.whole
        p = Program()
        tensors = [self.tensor(i, t) for i, t in enumerate(whole["tensors"])]
        scope: set[int] = set()
        p.inputs = [self.value(v, scope, ("input", i)) for i, v in enumerate(whole["inputs"])]

        def tensor(kind: str, name: str, index: int) -> Any:
            if kind not in ("param", "buffer", "constant") or not isinstance(name, str):
                raise ValueError("a tensor is neither parameter, buffer nor constant")
            if not all(part and part.isprintable() for part in name.split(".")):
                raise ValueError(f"a tensor is named {name!r}")
            t = tensors[self.index(index, len(tensors))]
            if kind == "param" and not isinstance(t, Parameter):
                t = tensors[index] = Parameter(t, requires_grad=t.requires_grad)
            return t

        for about, kind, name, index in whole["kept"]:
            v = self.value(about, scope, (kind, name))
            t = tensor(kind, name, index)
            if v.dtype != t.dtype or tuple(v.sizes) != tuple(t.shape):
                raise ValueError(f"the tensor {name!r} is not as it is declared")
            if name in p.tensors:
                raise ValueError(f"two tensors are named {name!r}")
            p.kept.append(v)
            p.tensors[name] = t
        self.state(p, whole, tensor)
        p.body = self.block(whole["body"], scope, 0)
        p.in_tree, p.out_tree = _tree.checked(whole["in"]), _tree.checked(whole["out"])
        if self.count(p.in_tree) != len(p.inputs) or self.count(p.out_tree) != len(p.body.results):
            raise ValueError("the inputs or results are not as many as the tree says")
        if p.in_tree[0] != "tuple" or [s[0] for s in p.in_tree[1]] != ["tuple", "dict"]:
            raise ValueError("the tree of arguments is malformed")
        p.input_names = [str(n) for n in whole["names"]]
        p.dims = [{int(d): str(n) for d, n in table.items()} for table in whole["dims"]]
        places = [(i, d) for i, table in enumerate(p.dims) for d in table]
        if any(i >= len(p.inputs) or not 0 <= d < len(p.inputs[i].sizes) for i, d in places):
            raise ValueError("a size that varies is of no input")
        p.ranges = {str(n): (int(r[0]), r[1] if r[1] is None else int(r[1]))
                    for n, r in whole["ranges"].items()}  # fmt: skip
        p.training = bool(whole["training"])
        p.name = str(whole.get("name", ""))
        p.numbers = whole.get("numbers") is True
        name_values(p)
        extra, methods = (
            {k[len(place) :]: v for k, v in self.members.items() if k.startswith(place)}
            for place in ("extra/", "methods/")
        )
        return p, extra, methods

    def count(self, spec: Any) -> int:
        if spec[0] == "leaf":
            return 1
        if spec[0] == "constant":
            return 0
        parts = {"dict": 2, "named": 3}.get(spec[0], 1)
        return sum(map(self.count, spec[parts]))

    def index(self, i: Any, count: int) -> int:
        if type(i) is not int or not 0 <= i < count:
            raise ValueError(f"there is no tensor {i!r}")
        return i

    def tensor(self, index: int, about: Any) -> Tensor:
        if len(about) == 1:
            outer: Tensor = self.shared[about[0]]
            return outer
        name, shape, grad = about
        dtype = _DTYPES[name]
        if not all(type(n) is int and 0 <= n < 2**48 for n in shape) or len(shape) > 64:
            raise ValueError("a tensor has an impossible shape")
        data = self.members[f"tensors/{index}"]
        if math.prod(shape) * dtype.itemsize != len(data):
            raise ValueError(f"tensor {index} has {len(data)} bytes, which its shape does not need")
        kind = np.dtype("int16" if dtype == clew.bfloat16 else name).newbyteorder("<")
        array = np.frombuffer(data, kind).reshape(shape).copy()
        if dtype == clew.bool and array.size and array.view(np.uint8).max() > 1:
            raise ValueError("a bool is neither 0 nor 1")
        t = clew.from_numpy(array)
        if dtype == clew.bfloat16:
            t = t.view(clew.bfloat16)
        return t.requires_grad_() if grad is True and dtype.is_floating_point else t

    def value(self, about: Any, scope: set[int], source: Any = None) -> Value:
        number, kind, dtype, sizes, name = about
        if type(number) is not int or not 0 <= number < 2**40 or number in self.values:
            raise ValueError(f"a value has the number {number!r}")
        if kind not in ("tensor", "int", "float", "bool") or not isinstance(name, str):
            raise ValueError(f"a value is a {kind!r}")
        if not all(n is None or (type(n) is int and n >= 0) for n in sizes):
            raise ValueError("a value has an impossible size")
        v = Value(number, kind, _DTYPES[dtype] if kind == "tensor" else None, tuple(sizes), source)
        v.name = name if name.isprintable() else ""
        self.values[number] = v
        scope.add(number)
        return v

    def block(self, about: Any, outer: set[int], depth: int) -> Block:
        if depth > 80:
            raise ValueError("blocks are nested too deeply")
        scope = set(outer)
        b = Block()
        b.params = [self.value(p, scope, ("block",)) for p in about["params"]]
        b.nodes = [self.node(n, scope, depth) for n in about["nodes"]]
        b.results = self.unpacked(about["results"], scope, 0)
        if not isinstance(b.results, list):
            raise ValueError("a block's results are no list")
        return b

    def node(self, about: Any, scope: set[int], depth: int) -> Node:
        op = about["op"]
        args = self.unpacked(about["args"], scope, 0)
        kwargs = {k: self.unpacked(v, scope, 0) for k, v in about["kwargs"].items()}
        if not isinstance(op, str) or not isinstance(args, tuple):
            raise ValueError("a call is malformed")
        if any(not k.isidentifier() or keyword.iskeyword(k) for k in kwargs):
            raise ValueError(f"{op} has an impossible argument")
        blocks = [self.block(b, scope, depth + 1) for b in about["blocks"]]
        outputs = [self.value(o, scope) for o in about["outputs"]]
        places = self.whole["places"]
        file, line, text, module = places[self.index(about["place"], len(places))]
        place = Place(str(file), int(line), str(text), str(module))
        shares, no_grad, several = (bool(f) for f in about["flags"])
        node = Node(op, args, kwargs, outputs, blocks, place, shares, no_grad, several)
        self.check(node)
        return node

    def check(self, node: Node) -> None:
        op = node.op
        if op == "if":
            same = len(node.blocks) == 2 and all(
                len(b.results) == len(node.outputs) and not b.params for b in node.blocks
            )
            if not same or len(node.args) != 1:
                raise ValueError("an `if` is malformed")
        elif op == "loop":
            if len(node.args) != 3 or len(node.blocks) != 1 or not isinstance(node.args[2], tuple):
                raise ValueError("a loop is malformed")
            b = node.blocks[0]
            trip, cond, inits = node.args
            if len(b.results) != 3 or not all(isinstance(r, list) for r in b.results[1:]):
                raise ValueError("a loop is malformed")
            _, ends, scans = b.results
            if not len(b.params) == len(inits) + 1 == len(ends) + 1:
                raise ValueError("a loop is malformed")
            if len(node.outputs) != len(ends) + len(scans) or (trip is None and cond is None):
                raise ValueError("a loop is malformed")
        elif op == "guard":
            if len(node.args) != 2 or node.outputs:
                raise ValueError("a check is malformed")
            node.decides = True  # for all that the file says
        elif "::" in op and function_of(op) is None:
            raise ExportError(
                f"export.load: the program calls the operation {op}, which this process has not "
                "registered; import the module that does (library.custom_op) before loading"
            )
        elif function_of(op) is None:
            raise ExportError(f"export.load: the program calls {op!r}, which clew does not have")
        elif node.blocks or (len(node.outputs) > 1 and not node.several):
            raise ValueError(f"{op} is malformed")

    def unpacked(self, tree: Any, scope: set[int], depth: int) -> Any:
        """An argument from JSON."""
        if depth > 20:
            raise ValueError("an argument is nested too deeply")
        if tree is None or isinstance(tree, (bool, str)) or type(tree) is int:
            return tree
        if isinstance(tree, list):
            return [self.unpacked(t, scope, depth + 1) for t in tree]
        if not isinstance(tree, dict) or len(tree) != 1:
            raise ValueError("an argument is malformed")
        ((kind, content),) = tree.items()
        if kind == "v":
            if type(content) is not int or content not in scope:
                raise ValueError(f"a call uses value {content!r}, which does not exist there")
            return self.values[content]
        if kind == "t":
            return tuple(self.unpacked(t, scope, depth + 1) for t in content)
        if kind == "s":
            start, stop, step = (self.unpacked(t, scope, depth + 1) for t in content)
            return slice(start, stop, step)
        if kind == "i" and isinstance(content, str) and len(content) < 30:
            return int(content)
        if kind == "f" and isinstance(content, str):
            return float(content)
        if kind == "c":
            return complex(float(content[0]), float(content[1]))
        if kind == "d":
            return _DTYPES[content]
        if kind == "on":
            return clew.device(str(content))
        if kind == "e":
            return Ellipsis
        if kind == "m":
            return _FORMATS[content]
        if kind == "l":
            return clew.strided
        raise ValueError(f"an argument is a {kind!r}")
