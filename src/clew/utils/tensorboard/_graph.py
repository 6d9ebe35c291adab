"""A model's graph as TensorBoard's message: what one run recorded, by modules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import clew
from clew import Tensor

__all__ = ["graph"]


def graph(model: Any, inputs: Any) -> tuple[Any, Any]:
    """What a run of the model in evaluation mode recorded, as (GraphDef, RunMetadata).

    Only what gradients flow through is recorded: from parameters and from inputs of numbers.

    Args:
        model: a module.
        inputs: a tensor, or a tuple of arguments.
    """
    from tensorboard.compat.proto.config_pb2 import RunMetadata
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats, StepStats
    from tensorboard.compat.proto.versions_pb2 import VersionDef

    given = inputs if isinstance(inputs, tuple | list) else (inputs,)
    args = [_leaf(x) for x in given]
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        with clew.enable_grad():
            outputs = list(_tensors(model(*args)))
    finally:
        for module, training in modes:
            module.training = training
    recorded = clew.graph(*[t for t in outputs if t.requires_grad])
    device = DeviceStepStats(device="/device:CPU:0")
    return (
        GraphDef(node=list(_nodes(model, recorded)), versions=VersionDef(producer=22)),
        RunMetadata(step_stats=StepStats(dev_stats=[device])),
    )


def _leaf(x: Any) -> Any:
    if not isinstance(x, Tensor):
        return x
    return x.detach().requires_grad_(x.is_floating_point() or x.is_complex())


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _tensors(one)


def _nodes(model: Any, recorded: Any) -> Iterator[Any]:
    """A message for each node; its name is the path of its module and its operation."""
    names = dict(model.named_modules())
    root = type(model).__name__

    def scope(path: str) -> str:
        parts, so_far = [root], ""
        for piece in path.split(".") if path else ():
            so_far = f"{so_far}.{piece}" if so_far else piece
            module = names.get(so_far)
            parts.append(piece if module is None else f"{type(module).__name__}[{piece}]")
        return "/".join(parts)

    called = {}
    for node in recorded.nodes:
        if node.op != "leaf":
            called[node.index] = f"{scope(node.module or '')}/{node.op}_{node.index}"
        elif node.label is None:
            called[node.index] = f"input/input_{node.index}"
        else:
            path, _, name = node.label.rpartition(".")
            called[node.index] = f"{scope(path)}/{name}"
    for node in recorded.nodes:
        kind = "IO Node" if called[node.index].startswith("input/") else node.op
        made = [called[source[0]] for source in node.inputs if source is not None]
        yield _message(called[node.index], kind, made, [shape for shape, _ in node.outputs])
    for i, (index, output) in enumerate(recorded.roots):
        shapes = [recorded.nodes[index].outputs[output][0]]
        yield _message(f"output/output.{i + 1}", "IO Node", [called[index]], shapes)


def _message(name: str, op: str, inputs: list[str], shapes: list[Any]) -> Any:
    from tensorboard.compat.proto.attr_value_pb2 import AttrValue
    from tensorboard.compat.proto.node_def_pb2 import NodeDef
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

    sizes = [TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in s]) for s in shapes]
    attributes = {"_output_shapes": AttrValue(list=AttrValue.ListValue(shape=sizes))}
    return NodeDef(name=name, op=op, input=inputs, attr=attributes)
