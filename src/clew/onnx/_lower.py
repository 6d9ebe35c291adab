"""Writes a program as an ONNX graph.

Values of the program become names of the graph. Writes become new names: a value that is a view
knows what it is a view of, a write goes up to the tensor at the root by scattering, and views are
made again from there when they are read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import clew
from clew import Tensor
from clew.export._ir import Block, Node, Program, Value, writes
from clew.onnx._bind import Bound, bind
from clew.onnx._errors import OnnxExporterError
from clew.onnx._package import PARAMETERS, STATE
from clew.onnx._state import carried_state

__all__ = ["LOWERS", "Builder", "lowers"]

LOWERS: dict[str, Callable[[Any, Any], Any]] = {}
ELEMENT_TYPES = {
    "bool": TensorProto.BOOL, "uint8": TensorProto.UINT8, "int8": TensorProto.INT8,
    "int16": TensorProto.INT16, "int32": TensorProto.INT32, "int64": TensorProto.INT64,
    "uint16": TensorProto.UINT16, "uint32": TensorProto.UINT32, "uint64": TensorProto.UINT64,
    "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16,
    "float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE,
    "complex64": TensorProto.COMPLEX64, "complex128": TensorProto.COMPLEX128,
}  # fmt: skip
_KINDS = {"int": "int64", "float": "float64", "bool": "bool"}
# Views whose elements stand in the same order as those that they look at.
_SAME_ORDER = {
    *("reshape", "ops.reshape", "ops.view", "view", "flatten", "unsqueeze", "squeeze", "unflatten"),
    *("ravel", "ops.view_as", "ops.reshape_as", "Tensor.contiguous", "Tensor.squeeze_"),
}
_SAME = {"Tensor.detach", "alias", "Tensor.to", "Tensor.float", "positive", "resolve_conj"}


def lowers(*names: str) -> Callable[[Any], Any]:
    """A decorator: the function writes these operations."""

    def register(function: Any) -> Any:
        for name in names:
            LOWERS[name] = function
        return function

    return register


class Call(Bound):
    """Arguments of a call by name, with its node as ``node`` and its first output as ``out``."""

    def get_dtype(self, key: str) -> Any:
        """The dtype of an argument."""
        return self[key].dtype


class Builder:
    """Writes one graph.

    Args:
        program: what is written.
        opset: the version of the operators.
    """

    def __init__(self, program: Program, opset: int) -> None:
        self.program, self.opset = program, opset
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.constants: list[Any] = []
        self.names: dict[int, str] = {}
        self.override: dict[int, str] = {}
        self.guards: list[str] = []
        self.state: dict[str, str] = {}  # inputs that a run changes, and the outputs that say so
        self._count = 0
        self._constants: dict[Any, str] = {}
        self._taken: set[str] = set()
        # Views: the value that each looks at, and the call that made it.
        self.parent: dict[int, tuple[Value, Node, int]] = {}
        self.stamp: dict[int, int] = {}  # of a root: writes so far; of a view: when it was made
        for node in program.walk():
            if node.shares and node.args and isinstance(node.args[0], Value):
                for k, o in enumerate(node.outputs):
                    self.parent[o.id] = (node.args[0], node, k)

    # ---- names and constants ----

    def fresh(self, base: str = "t") -> str:
        """A name that is not taken."""
        name = base
        while not name or name in self._taken:
            self._count += 1
            name = f"{base}_{self._count}"
        self._taken.add(name)
        return name

    def op(self, kind: str, *inputs: str, n: int = 1, name: str = "", **attributes: Any) -> Any:
        """Adds an operator; returns the name of its output, or a list of n names."""
        outputs = [self.fresh(name or kind.lower()) for _ in range(n)]
        attributes = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(kind, list(inputs), outputs, **attributes))
        return outputs[0] if n == 1 else outputs

    def const(self, value: Any, dtype: Any = None) -> str:
        """A constant."""
        array = np.asarray(value, dtype=dtype)
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size < 64 else None
        if key is not None and key in self._constants:
            return self._constants[key]
        name = self.fresh("constant")
        tensor = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape))
        # A call, and no initializer: those are what a reader may train.
        self.constants.append(helper.make_node("Constant", [], [name], value=tensor))
        if key is not None:
            self._constants[key] = name
        return name

    def ints(self, *values: int) -> str:
        """A vector of int64."""
        return self.const(np.array(values, np.int64))

    def element(self, dtype: Any) -> int:
        """ONNX's number of a dtype."""
        return ELEMENT_TYPES[dtype if isinstance(dtype, str) else dtype.name]

    def cast(self, name: str, dtype: Any) -> str:
        """Another dtype."""
        result: str = self.op("Cast", name, to=self.element(dtype))
        return result

    def scalar(self, number: Any, dtype: Any) -> str:
        """A number as a tensor without dims, of a dtype."""
        if isinstance(number, Value):
            name = self.name(number)
            have = _KINDS.get(number.kind) or number.dtype.name
            want = dtype if isinstance(dtype, str) else dtype.name
            return name if have == want else self.cast(name, dtype)
        kind = dtype if isinstance(dtype, str) else dtype.name
        if kind == "bfloat16":
            return self.cast(self.const(float(number), np.float32), kind)
        return self.const(number, np.dtype(kind))

    def of(self, x: Any, dtype: Any) -> str:
        """A tensor or a number, as a dtype."""
        if isinstance(x, Value) and x.kind == "tensor":
            name = self.name(x)
            return name if x.dtype == dtype else self.cast(name, dtype)
        return self.scalar(x, dtype)

    def vector(self, sizes: Any) -> str:
        """Sizes, some of which are known when the program runs, as a vector of int64."""
        if not isinstance(sizes, (tuple, list)):
            sizes = (sizes,)
        if not any(isinstance(n, Value) for n in sizes):
            return self.ints(*map(int, sizes))
        parts = [
            self.op("Unsqueeze", self.name(n), self.ints(0))
            if isinstance(n, Value)
            else self.ints(int(n))
            for n in sizes
        ]
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def shape(self, name: str) -> str:
        """The shape of a tensor."""
        result: str = self.op("Shape", name)
        return result

    def dim_of(self, v: Value, dim: int) -> str:
        """One size, a number without dims."""
        n = v.sizes[dim]
        if n is not None and not self.override:
            return self.const(n, np.int64)
        shape = self.op("Shape", self.name(v), start=dim, end=dim + 1 or None)
        result: str = self.op("Squeeze", shape, self.ints(0))
        return result

    # ---- values, views and writes ----

    def root(self, v: Value) -> Value:
        """What a view at last looks at."""
        while v.id in self.parent:
            v = self.parent[v.id][0]
        return v

    def name(self, v: Value) -> str:
        """The graph's name for what a value is now."""
        if v.id in self.override:
            return self.override[v.id]
        if v.id in self.parent and v.id in self.names:
            root = self.root(v)
            if self.stamp.get(root.id, 0) > self.stamp.get(v.id, 0):
                parent, node, k = self.parent[v.id]
                self.name(parent)
                self.names[v.id] = self.again(node, self.name(parent))[k]
                self.stamp[v.id] = self.stamp[root.id]
        if v.id not in self.names:
            raise OnnxExporterError(f"internal error: {v!r} has no name; please report it")
        return self.names[v.id]

    def again(self, node: Node, source: str) -> list[str]:
        """A view's call, on another tensor."""
        first = node.args[0]
        before = dict(self.override)
        self.override[first.id] = source
        try:
            return self.outputs_of(node)
        finally:
            self.override = before

    def bind_value(self, v: Value, name: str) -> None:
        """A value has a name."""
        self.names[v.id] = name
        self.stamp[v.id] = self.stamp.get(self.root(v).id, 0)

    def write(self, v: Value, name: str) -> None:
        """A value has been written; so have those that share its memory."""
        root = self.root(v)
        chain = [v]
        while chain[-1].id in self.parent:
            chain.append(self.parent[chain[-1].id][0])
        current = name
        updates = {v.id: name}
        for child in chain[:-1]:
            parent, node, k = self.parent[child.id]
            current = self.put_back(parent, node, k, current)
            updates[parent.id] = current
        time = self.stamp.get(root.id, 0) + 1
        self.stamp[root.id] = time
        for number, new in updates.items():
            self.names[number] = new
            self.stamp[number] = time

    def put_back(self, parent: Value, node: Node, k: int, part: str) -> str:
        """The parent with a view of it replaced."""
        whole = self.name(parent)
        if node.op in _SAME:
            return part
        if node.op in _SAME_ORDER:
            result: str = self.op("Reshape", part, self.shape(whole), allowzero=1)
            return result
        positions = self.again(node, self.positions(whole))[k]
        return self.scatter(whole, positions, part)

    def positions(self, whole: str) -> str:
        """A tensor of the same shape that holds the number of each of its elements."""
        shape = self.shape(whole)
        count = self.op("Size", whole)
        line = self.op("Range", self.const(0, np.int64), count, self.const(1, np.int64))
        result: str = self.op("Reshape", line, shape, allowzero=1)
        return result

    def scatter(self, whole: str, positions: str, part: str) -> str:
        """``whole`` with elements replaced, by their numbers."""
        flat = self.ints(-1)
        line = self.op(
            "ScatterElements",
            self.op("Reshape", whole, flat),
            self.op("Reshape", positions, flat),
            self.op("Reshape", part, flat),
            axis=0,
        )
        result: str = self.op("Reshape", line, self.shape(whole), allowzero=1)
        return result

    # ---- calls ----

    def block(self, block: Block) -> None:
        """Writes a block's calls into the current graph."""
        for node in block.nodes:
            try:
                self.node(node)
            except OnnxExporterError as e:
                if "\n" in str(e):
                    raise
                raise OnnxExporterError(f"{e}\n  at {node.place}") from None
            except (TypeError, ValueError, AttributeError, KeyError, IndexError) as e:
                # A rule that takes constants met a number that is known when the program runs.
                raise OnnxExporterError(
                    f"onnx.export: {node.op}() cannot be written with arguments that vary, or with "
                    f"these ({type(e).__name__}: {e})\n  at {node.place}"
                ) from e

    def node(self, node: Node) -> None:
        """Writes one call."""
        if node.op == "if":
            self.branch(node)
        elif node.op == "loop":
            self.loop(node)
        elif node.op == "guard":
            if node.decides:
                raise OnnxExporterError(
                    f"onnx.export: a number of data or a size decides in Python at {node.place}, "
                    f"as the example has it; an ONNX file cannot check that later inputs decide "
                    f"alike\n  Write `if` and `elif`, index a list or a ModuleList, take an "
                    f"element of a tensor, or use clew.where()"
                )
            self.guards.append(str(node.place))
        elif writes(node):
            self.written(node)
        else:
            for v, name in zip(node.outputs, self.outputs_of(node)):
                self.bind_value(v, name)

    def outputs_of(self, node: Node) -> list[str]:
        """Names of the outputs of a call that does not write."""
        found = LOWERS.get(node.op)
        if found is None:
            raise OnnxExporterError(f"onnx.export: ONNX has no way to write {node.op}()")
        call: Any = Call()
        if not node.op.startswith(("Tensor.", "py.")):
            bound = bind(node)
            if bound is not None:
                call.update(bound)
        dict.__setattr__(call, "node", node)
        dict.__setattr__(call, "out", node.outputs[0] if node.outputs else None)
        names = found(self, call)
        return [names] if isinstance(names, str) else list(names)

    def written(self, node: Node) -> None:
        """Writes a call that changes its first argument."""
        target = node.args[0]
        if node.op.endswith("batch_norm"):
            raise OnnxExporterError(
                "onnx.export: batch_norm in training mode changes its statistics, which an ONNX "
                "file cannot; call model.eval() first"
            )
        if node.kwargs.get("out") is not None:
            raise OnnxExporterError(f"onnx.export: {node.op}(out=...); leave out= out")
        if node.op == "setitem":
            whole, index, value = node.args
            get = Node("getitem", (whole, index), outputs=[])
            positions = self.again(get, self.positions(self.name(whole)))[0]
            part = self.op("Expand", self.of(value, whole.dtype), self.shape(positions))
            self.write(whole, self.scatter(self.name(whole), positions, part))
            return
        before = self.name(target)
        base = node.op[:-1]
        if base in ("Tensor.copy", "Tensor.fill", "Tensor.zero"):
            value = node.args[1] if len(node.args) > 1 else 0
            made = self.op("Expand", self.of(value, target.dtype), self.shape(before))
        elif base in ("Tensor.squeeze", "Tensor.unsqueeze", "Tensor.t", "Tensor.transpose"):
            raise OnnxExporterError(f"onnx.export: {node.op}() changes a tensor's shape in place")
        else:
            result = Value(-1, "tensor", target.dtype, target.sizes)
            plain = Node(base, node.args, node.kwargs, [result], place=node.place)
            made = self.outputs_of(plain)[0]
        self.write(target, made)

    # ---- branches and loops ----

    def inner(self, work: Callable[[], tuple[list[Any], list[Any]]], name: str) -> Any:
        """A graph inside this one: ``work`` writes it and returns its inputs and outputs."""
        nodes, self.nodes = self.nodes, []
        names, stamp = dict(self.names), dict(self.stamp)
        try:
            inputs, outputs = work()
            return helper.make_graph(self.nodes, name, inputs, outputs)
        finally:
            self.nodes, self.names, self.stamp = nodes, names, stamp

    def info(self, name: str, v: Value) -> Any:
        """A name with its type."""
        if v.kind != "tensor":
            return helper.make_tensor_value_info(name, self.element(_KINDS[v.kind]), [])
        return helper.make_tensor_value_info(name, self.element(v.dtype), list(v.sizes))

    def result(self, x: Any, like: Value) -> Any:
        """An output of an inner graph."""
        source = self.name(x) if isinstance(x, Value) else self.scalar(x, _KINDS[like.kind])
        name = self.op("Identity", source)
        return self.info(name, like)

    def touched(self, block: Block, found: dict[int, Value], own: set[int]) -> None:
        """Tensors outside of a block that it writes."""
        own |= {p.id for p in block.params}
        for node in block.nodes:
            own |= {o.id for o in node.outputs}
            if writes(node):
                root = self.root(node.args[0])
                if root.id not in own:
                    found[root.id] = root
            for b in node.blocks:
                self.touched(b, found, own)

    def branch(self, node: Node) -> None:
        """If."""
        found: dict[int, Value] = {}
        for b in node.blocks:
            self.touched(b, found, set())
        roots = list(found.values())

        def side(block: Block) -> Any:
            def work() -> tuple[list[Any], list[Any]]:
                self.block(block)
                outputs = [self.result(r, o) for r, o in zip(block.results, node.outputs)]
                return [], outputs + [self.result(r, r) for r in roots]

            return work

        graphs = [self.inner(side(b), n) for b, n in zip(node.blocks, ("then", "else"))]
        condition = self.condition(node.args[0])
        count = len(node.outputs) + len(roots)
        if not count:
            return
        names = self.op(
            "If", condition, n=count, then_branch=graphs[0], else_branch=graphs[1]
        )  # fmt: skip
        names = [names] if count == 1 else names
        for v, name in zip(node.outputs, names):
            self.bind_value(v, name)
        for v, name in zip(roots, names[len(node.outputs) :]):
            self.write(v, name)

    def condition(self, c: Any) -> str:
        """A bool."""
        if not isinstance(c, Value):
            return self.const(bool(c), np.bool_)
        return self.scalar(c, "bool")

    def loop(self, node: Node) -> None:
        """Loop."""
        trip, cond, inits = node.args
        body = node.blocks[0]
        found: dict[int, Value] = {}
        self.touched(body, found, set())
        roots = list(found.values())
        counter, *params = body.params
        starts = [
            self.name(x) if isinstance(x, Value) else self.scalar(x, _KINDS[p.kind])
            for p, x in zip(params, inits)
        ] + [self.name(r) for r in roots]

        def work() -> tuple[list[Any], list[Any]]:
            inputs = []
            number, goes_on = self.fresh("round"), self.fresh("goes_on")
            inputs.append(helper.make_tensor_value_info(number, TensorProto.INT64, []))
            inputs.append(helper.make_tensor_value_info(goes_on, TensorProto.BOOL, []))
            self.bind_value(counter, number)
            for p in params:
                name = self.fresh("carried")
                self.bind_value(p, name)
                inputs.append(self.info(name, p))
            for r in roots:
                name = self.fresh("written")
                self.write(r, name)
                inputs.append(self.info(name, r))
            self.block(body)
            last = self.condition(True if body.results[0] is None else body.results[0])
            last = self.op("Identity", last)
            outputs = [helper.make_tensor_value_info(last, TensorProto.BOOL, [])]
            outputs += [self.result(e, p) for e, p in zip(body.results[1], params)]
            outputs += [self.result(r, r) for r in roots]
            outputs += [self.result(s, s) for s in body.results[2]]
            return inputs, outputs

        graph = self.inner(work, "body")
        bound = "" if trip is None else self.scalar(trip, "int64")
        start = "" if cond is None else self.condition(cond)
        count = len(node.outputs) + len(roots)
        if not count:
            return
        names = self.op("Loop", bound, start, *starts, n=count, body=graph)
        names = [names] if count == 1 else names
        k = len(params)
        for v, name in zip(node.outputs[:k], names):
            self.bind_value(v, name)
        for v, name in zip(roots, names[k:]):
            self.write(v, name)
        for v, name in zip(node.outputs[k:], names[k + len(roots) :]):
            self.bind_value(v, name)

    # ---- the model ----

    def model(
        self, input_names: Any, output_names: Any, doc: str, initializers: bool = True
    ) -> Any:
        """The whole file."""
        program = self.program
        inputs = []
        names = list(input_names or [])
        for k, v in enumerate(program.inputs):
            name = self.fresh(names[k] if k < len(names) else v.name or f"input_{k}")
            self.bind_value(v, name)
            labels = program.dims[k] if k < len(program.dims) else {}
            dims = [labels.get(d, n if n is not None else None) for d, n in enumerate(v.sizes)]
            inputs.append(helper.make_tensor_value_info(name, self.element(v.dtype), dims))
        used = {id(t): "" for t in program.tensors.values()}
        for v in program.kept:
            assert v.source is not None
            tensor = program.tensors[v.source[1]]
            if used[id(tensor)]:
                self.bind_value(v, used[id(tensor)])
                continue
            name = self.fresh(v.source[1])
            used[id(tensor)] = name
            self.bind_value(v, name)
            self.initializers.append(tensor_proto(tensor, name))
        state = carried_state(program)
        first = {v.id: self.name(v) for v in state}
        for v in state:  # an input that need not be given
            inputs.append(self.info(first[v.id], v))
        self._taken |= set(output_names or [])
        self.block(program.body)
        self._taken -= set(output_names or [])
        outputs = []
        given = list(output_names or [])
        for k, r in enumerate(program.body.results):
            kind = r.kind if isinstance(r, Value) else type(r).__name__
            source = self.name(r) if isinstance(r, Value) else self.scalar(r, _KINDS[kind])
            base = given[k] if k < len(given) else (
                r.name if isinstance(r, Value) and r.name.isidentifier() else f"output_{k}"
            )  # fmt: skip
            name = self.fresh(base)
            self.nodes.append(helper.make_node("Identity", [source], [name]))
            like = r if isinstance(r, Value) else Value(-1, kind)
            outputs.append(self.info(name, like))
        for k, v in enumerate(state, len(outputs)):
            name = self.fresh(given[k] if k < len(given) else f"{first[v.id]}_after")
            self.nodes.append(helper.make_node("Identity", [self.name(v)], [name]))
            outputs.append(self.info(name, v))
            self.state[first[v.id]] = name
        needed = self._needed()
        graph = helper.make_graph(
            [n for n in self.constants if n.output[0] in needed] + self.nodes, "program", inputs,
            outputs, [t for t in self.initializers if t.name in needed], doc_string=doc,
        )  # fmt: skip
        model = helper.make_model(
            graph, producer_name="clew", producer_version=clew.__version__,
            opset_imports=[helper.make_opsetid("", self.opset)],
            ir_version=min(onnx.IR_VERSION, 10),
        )  # fmt: skip
        trained = [
            used[id(program.tensors[v.source[1]])]
            for v in program.kept
            if v.source is not None and v.source[0] == "param"
        ]
        about = {PARAMETERS: json.dumps(sorted(set(trained)))}
        if self.state:
            about[STATE] = json.dumps(self.state)
        helper.set_model_props(model, about)
        return model

    def _needed(self) -> set[str]:
        """Names that something uses."""
        used: set[str] = set()

        def visit(nodes: Any) -> None:
            for n in nodes:
                used.update(n.input)
                for a in n.attribute:
                    if a.type == onnx.AttributeProto.GRAPH:
                        visit(a.g.node)

        visit(self.nodes)
        return used


def tensor_proto(tensor: Tensor, name: str) -> Any:
    """A tensor for the file."""
    t = tensor.detach().contiguous()
    if t.dtype == clew.bfloat16:
        raw = t.view(clew.int16).numpy().tobytes()
        return helper.make_tensor(name, TensorProto.BFLOAT16, list(t.shape), raw, raw=True)
    return numpy_helper.from_array(t.numpy(), name)


def promoted(a: Any, b: Any) -> Any:
    """The dtype in which two operands meet."""
    return clew.result_type(_like(a), _like(b))


def _like(x: Any) -> Any:
    if isinstance(x, Value):
        if x.kind == "tensor":
            return clew.empty((1,) * len(x.sizes), dtype=x.dtype, device="meta")
        return {"int": 1, "float": 1.0, "bool": True}[x.kind]
    return x
