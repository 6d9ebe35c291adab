"""ONNX files as modules: the graph is read once, its operators are clew's, and it trains."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew.nn import Module, Parameter
from clew.onnx._errors import OnnxExporterError
from clew.onnx._operators import OPERATORS, dtype_of

__all__ = ["PARAMETERS", "OnnxModule", "load", "module_of"]

# Metadata of a file that clew wrote: which of its initializers are parameters.
PARAMETERS = "clew.parameters"


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
    """
    from clew.onnx._export import need_onnx

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
        self.constants = {t.name: _tensor(t) for t in proto.initializer}
        if len(proto.sparse_initializer):
            raise OnnxExporterError("onnx.load: sparse initializers are not supported")
        known = outer | set(self.inputs) | set(self.constants) | {""}
        self.nodes: list[tuple[Any, list[str], list[str], dict[str, Any]]] = []
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
            attributes = {a.name: self._attribute(a, opset, known, depth) for a in node.attribute}
            attributes["_opset"] = opset
            attributes["_outputs"] = len(node.output)
            self.nodes.append((function, list(node.input), list(node.output), attributes))
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

    def run(self, env: dict[str, Any]) -> list[Any]:
        """Runs the graph on values by name."""
        env.update(self.constants)
        env[""] = None
        for function, inputs, outputs, attributes in self.nodes:
            made = function(attributes, env, *[env[n] for n in inputs])
            if not isinstance(made, (tuple, list)):
                made = (made,)
            for name, value in zip(outputs, made):
                env[name] = value
        return [env[n] for n in self.outputs]


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


def _trained(model: Any) -> set[str] | None:
    """The initializers that are parameters, where the file tells."""
    for entry in model.metadata_props:
        if entry.key == PARAMETERS:
            names = json.loads(entry.value)
            if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
                raise OnnxExporterError("onnx.load: the file's list of parameters is damaged")
            return set(names)
    return None


class OnnxModule(Module):
    """A module that runs an ONNX graph."""

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
        self.output_names = list(graph.outputs)

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
        results = self._graph.run(env)
        return results[0] if len(results) == 1 else tuple(results)
