"""ONNX files as modules: the graph is read once, its operators are clew's, and it trains."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew.nn import Module, Parameter
from clew.onnx import _operators_nn as _operators_nn  # they register what they can read
from clew.onnx import _operators_shape as _operators_shape
from clew.onnx._errors import OnnxExporterError
from clew.onnx._operators import OPERATORS, dtype_of
from clew.onnx._package import PARAMETERS, STATE, need_onnx

__all__ = ["PARAMETERS", "OnnxModule", "load", "module_of"]


def load(f: Any) -> OnnxModule:
    """Reads an ONNX file as a module.

    In a file that clew wrote, parameters and buffers are those of the model. In others,
    initializers of floating dtypes become parameters, so that the module can be trained further;
    others become buffers.

    Args:
        f: a path or a binary file.

    Returns:
        a module that takes the file's inputs in order, and returns its output, or a tuple of them.

    Raises:
        ExportError: the file is damaged, keeps weights elsewhere, or has an operator that clew
            lacks, which is named.
        ImportError: the onnx package is not installed.

    Example:
        >>> import clew
        >>> _ = clew.onnx.export(clew.nn.ReLU(), clew.ones(2), "relu.onnx")
        >>> clew.onnx.load("relu.onnx")(clew.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    need_onnx()
    if hasattr(f, "read"):
        data = f.read()
    else:
        with open(os.fspath(f), "rb") as file:
            data = file.read()
    import onnx
    from google.protobuf.message import DecodeError

    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, ValueError, TypeError, RecursionError) as e:
        raise OnnxExporterError(f"onnx.load: the file is damaged, or no ONNX file: {e}") from e
    return module_of(model)


def module_of(model: Any) -> OnnxModule:
    """A module of a model that the onnx package has read."""
    try:
        return OnnxModule(model)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError,
            RecursionError, MemoryError, OverflowError) as e:  # fmt: skip
        if isinstance(e, OnnxExporterError):
            raise
        raise OnnxExporterError(f"onnx.load: the file is damaged: {type(e).__name__}: {e}") from e


class _Graph:
    """A graph whose operators are looked up and whose attributes are plain."""

    def __init__(self, proto: Any, opset: int, outer: frozenset[str], depth: int = 0) -> None:
        if depth > 40:
            raise OnnxExporterError("onnx.load: graphs are nested too deeply")
        self.inputs = [i.name for i in proto.input]
        self.outputs = [o.name for o in proto.output]
        self._declared = list(proto.output)
        self.constants = {t.name: _tensor(t) for t in proto.initializer}
        if len(proto.sparse_initializer):
            raise OnnxExporterError("onnx.load: sparse initializers are not supported")
        known = outer | set(self.inputs) | set(self.constants) | {""}
        self.nodes: list[tuple[Any, str, list[str], list[str], dict[str, Any]]] = []
        for node in proto.node:
            if node.domain not in ("", "ai.onnx"):
                raise OnnxExporterError(
                    f"onnx.load: the file uses {node.op_type} of the domain {node.domain!r}, which "
                    f"clew does not have"
                )
            function = OPERATORS.get(node.op_type)
            if function is None:
                raise OnnxExporterError(
                    f"onnx.load: the file uses the operator {node.op_type}, which clew does not "
                    f"have"
                )
            for name in node.input:
                if name not in known:
                    raise OnnxExporterError(
                        f"onnx.load: {node.op_type} reads {name!r}, which nothing has made"
                    )
            _check_call(node, opset)
            attributes = {a.name: self._attribute(a, opset, known, depth) for a in node.attribute}
            attributes["_opset"] = opset
            attributes["_outputs"] = len(node.output)
            self.nodes.append(
                (function, node.op_type, list(node.input), list(node.output), attributes)
            )
            known |= set(node.output)
        for name in self.outputs:
            if name not in known or not name:
                raise OnnxExporterError(f"onnx.load: nothing makes the output {name!r}")

    def _attribute(self, a: Any, opset: int, known: frozenset[str] | set[str], depth: int) -> Any:
        import onnx

        kinds = onnx.AttributeProto
        if a.type == kinds.GRAPH:
            return _Graph(a.g, opset, frozenset(known), depth + 1)
        if a.type == kinds.TENSOR:
            return _tensor(a.t)
        if a.type == kinds.STRING:
            return a.s.decode()
        if a.type == kinds.STRINGS:
            return [s.decode() for s in a.strings]
        if a.type == kinds.INT:
            return int(a.i)
        if a.type == kinds.INTS:
            return [int(i) for i in a.ints]
        if a.type == kinds.FLOAT:
            return float(a.f)
        if a.type == kinds.FLOATS:
            return [float(x) for x in a.floats]
        raise OnnxExporterError(f"onnx.load: the attribute {a.name!r} has a type that is not read")

    def no_rows(self, output: int) -> Tensor:
        """What a loop gathers of an output in no round."""
        proto = self._declared[output]
        sizes = [n if isinstance(n, int) else 0 for n in _declared(proto) or ()]
        kind = proto.type.tensor_type.elem_type
        return clew.zeros(0, *sizes, dtype=dtype_of(kind) if kind else clew.float32)

    def run(self, env: dict[str, Any]) -> list[Any]:
        """Runs the graph on values by name."""
        env.update(self.constants)
        env[""] = None
        for function, kind, inputs, outputs, attributes in self.nodes:
            try:
                made = function(attributes, env, *[env[n] for n in inputs])
            except OnnxExporterError:
                raise
            except Exception as e:
                raise OnnxExporterError(
                    f"onnx.load: {kind}, which makes {', '.join(map(repr, outputs))} of "
                    f"{', '.join(map(repr, inputs)) or 'nothing'}, fails: {type(e).__name__}: {e}"
                ) from e
            if not isinstance(made, (tuple, list)):
                made = (made,)
            if len(made) < len(outputs):
                raise OnnxExporterError(
                    f"onnx.load: {kind} gives {len(made)} outputs; the file asks for {len(outputs)}"
                )
            for name, value in zip(outputs, made):
                env[name] = value
        return [env[n] for n in self.outputs]


def _check_call(node: Any, opset: int) -> None:
    """Whether an operator's inputs, outputs and attributes are as many as its version says."""
    import onnx

    try:
        schema = onnx.defs.get_schema(node.op_type, opset, "")
    except onnx.defs.SchemaError:
        if opset > onnx.defs.onnx_opset_version():
            return  # newer than the onnx package knows
        raise OnnxExporterError(
            f"onnx.load: there is no operator {node.op_type} in version {opset}, which the file "
            f"says that it uses"
        ) from None
    for what, count, low, high in (
        ("inputs", len(node.input), schema.min_input, schema.max_input),
        ("outputs", len(node.output), schema.min_output, schema.max_output),
    ):
        if not low <= count <= high:
            raise OnnxExporterError(
                f"onnx.load: {node.op_type} has {count} {what}; version {opset} takes {low} to "
                f"{high}"
            )
    given = {a.name: int(a.type) for a in node.attribute}
    for name, wanted in schema.attributes.items():
        if wanted.required and name not in given:
            raise OnnxExporterError(f"onnx.load: {node.op_type} lacks the attribute {name!r}")
        kind: Any = wanted.type
        if name in given and given[name] != int(kind.value):
            raise OnnxExporterError(
                f"onnx.load: the attribute {name!r} of {node.op_type} has another type than it must"
            )


def _tensor(proto: Any) -> Tensor:
    """A tensor of the file."""
    import onnx
    from onnx import numpy_helper

    if proto.data_location == onnx.TensorProto.EXTERNAL or proto.external_data:
        raise OnnxExporterError(
            f"onnx.load: the tensor {proto.name!r} lies in another file, which is not read"
        )
    if any(d < 0 for d in proto.dims):
        raise OnnxExporterError(f"onnx.load: the tensor {proto.name!r} has a negative size")
    dtype = dtype_of(proto.data_type)
    if dtype == clew.bfloat16:
        raw = np.frombuffer(proto.raw_data, "<i2").reshape(tuple(proto.dims)).copy()
        return clew.from_numpy(raw).view(clew.bfloat16)
    return clew.tensor(np.array(numpy_helper.to_array(proto), order="C"))


def _declared(proto: Any) -> list[int | str | None] | None:
    """The sizes of an input: numbers, names of those that vary, or None."""
    if not proto.type.tensor_type.HasField("shape"):
        return None
    found: list[int | str | None] = []
    for d in proto.type.tensor_type.shape.dim:
        kind = d.WhichOneof("value")
        found.append(
            d.dim_value if kind == "dim_value" and d.dim_value >= 0 else d.dim_param or None
        )
    return found


def _trained(model: Any) -> set[str] | None:
    """The initializers that are parameters, where the file tells."""
    for entry in model.metadata_props:
        if entry.key == PARAMETERS:
            names = json.loads(entry.value)
            if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
                raise OnnxExporterError("onnx.load: the file's list of parameters is damaged")
            return set(names)
    return None


def _state(model: Any, own: dict[str, str], outputs: list[str]) -> dict[str, str]:
    """The tensors of the file that a run changes, each with the output that holds its new value."""
    for entry in model.metadata_props:
        if entry.key == STATE:
            found = json.loads(entry.value)
            if not isinstance(found, dict) or not all(
                n in own and o in outputs for n, o in found.items()
            ):
                raise OnnxExporterError("onnx.load: the file's list of buffers is damaged")
            return found
    return {}


class OnnxModule(Module):
    """A module that runs an ONNX graph. Buffers that a run changes, where clew wrote the file, are
    kept for the next run.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        versions = {o.domain: o.version for o in model.opset_import}
        opset = versions.get("", versions.get("ai.onnx", 0))
        if not 9 <= opset <= 26:
            raise OnnxExporterError(
                f"onnx.load: operators of version {opset} are not read; 9 to 26 are"
            )
        if len(model.functions):
            raise OnnxExporterError("onnx.load: functions of a file are not read")
        graph = _Graph(model.graph, opset, frozenset())
        self._graph = graph
        self._names: dict[str, str] = {}
        trained = _trained(model)
        for name, tensor in graph.constants.items():
            self._keep(name, tensor, trained is None or name in trained)
        graph.constants = {}
        self.input_names = [n for n in graph.inputs if n not in self._names]
        self._state = _state(model, self._names, graph.outputs)
        self.output_names = [n for n in graph.outputs if n not in self._state.values()]
        self._sizes = {i.name: _declared(i) for i in model.graph.input if i.name not in self._names}

    def _check(self, name: str, x: Any, named: dict[str, tuple[int, str]]) -> None:
        """Whether an input has the sizes that the file declares."""
        sizes = self._sizes.get(name)
        if sizes is None or not isinstance(x, Tensor):
            return
        if x.dim() != len(sizes):
            raise OnnxExporterError(
                f"onnx.load: the input {name!r} has {len(sizes)} dims in the file; got "
                f"{list(x.shape)}"
            )
        for d, (n, size) in enumerate(zip(x.shape, sizes)):
            if isinstance(size, int) and n != size:
                raise OnnxExporterError(
                    f"onnx.load: dim {d} of the input {name!r} is {size} in the file, and does not "
                    f"vary; got {n}. Export with it in dynamic_shapes."
                )
            if isinstance(size, str):
                known, where = named.setdefault(size, (n, f"dim {d} of {name!r}"))
                if known != n:
                    raise OnnxExporterError(
                        f"onnx.load: {size} is {known} in {where} and {n} in dim {d} of {name!r}"
                    )

    def _keep(self, name: str, tensor: Tensor, trained: bool) -> None:
        *path, last = name.split(".")
        if not last or not all(path) or any(hasattr(Module, p) for p in (*path, last)):
            path, last = [], "tensor_" + "".join(c if c.isalnum() else "_" for c in name)
        at: Module = self
        for part in path:
            if part not in at._modules:
                at.add_module(part, Module())
            at = at._modules[part]
        while last in at._parameters or last in at._buffers or hasattr(at, last):
            last += "_"
        if trained and tensor.is_floating_point():
            at.register_parameter(last, Parameter(tensor))
        else:
            at.register_buffer(last, tensor)
        self._names[name] = ".".join((*path, last))

    def _tensors(self) -> dict[str, Tensor]:
        every = dict(self.named_parameters()) | dict(self.named_buffers())
        return {name: every[own] for name, own in self._names.items()}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph.

        Args:
            args: its inputs, in order.
            kwargs: inputs by name.
        """
        env: dict[str, Any] = dict(self._tensors())
        if len(args) > len(self.input_names):
            raise TypeError(f"the ONNX graph takes {len(self.input_names)} inputs; got {len(args)}")
        env.update(zip(self.input_names, args))
        unknown = set(kwargs) - set(self.input_names)
        if unknown:
            raise TypeError(f"the ONNX graph has no inputs {sorted(unknown)}")
        env.update(kwargs)
        missing = [n for n in self.input_names if n not in env]
        if missing:
            raise TypeError(f"the ONNX graph needs the inputs {missing}")
        named: dict[str, tuple[int, str]] = {}
        for n in self.input_names:
            self._check(n, env[n], named)
        kept = {own: env[own] for own in self._state}
        env.update((own, t.clone()) for own, t in kept.items())
        made = dict(zip(self._graph.outputs, self._graph.run(env)))
        with clew.no_grad():
            for own, output in self._state.items():
                after = made[output]
                if after.shape != kept[own].shape or after.dtype != kept[own].dtype:
                    raise OnnxExporterError(
                        f"onnx.load: {own!r} is {kept[own].dtype.name}{list(kept[own].shape)}, and "
                        f"{after.dtype.name}{list(after.shape)} after a run"
                    )
                kept[own].copy_(after)
        results = [made[n] for n in self.output_names]
        return results[0] if len(results) == 1 else tuple(results)
