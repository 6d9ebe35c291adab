"""Names of leaves: those that were given, or those of the models that were called."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from clew import _C

if TYPE_CHECKING:
    from clew import Tensor, nn
    from clew._insight.graph.data import GraphNode

_BATCH_NORMS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")
# Operation -> (which operand is the weight, before the bias; the layers that have it so).
_PARAMETERS: dict[str, tuple[int, tuple[str, ...]]] = {
    "conv": (1, ("Conv1d", "Conv2d", "Conv3d")),
    "embedding": (0, ("Embedding",)),
    "linear": (1, ("Linear",)),
    "native_batch_norm": (1, _BATCH_NORMS),
    "native_norm": (1, ("LayerNorm", "GroupNorm", "RMSNorm")),
}


class Names:
    """Which name a leaf has, and which tensor a name means; keeps no tensor alive.

    Args:
        params: tensors by name.
        model: its parameters and buffers get their names.
    """

    def __init__(self, params: Mapping[str, Tensor] | None, model: nn.Module | None) -> None:
        models = [model] if model is not None else []
        if params is None and model is None:
            models = _C._called_roots()
        self.given = params is not None or model is not None
        self.tables: list[tuple[str, dict[str, Any]]] = []
        if params is not None:
            self.tables.append(("", dict(params)))
        for each in models:
            table: dict[str, Tensor] = dict(each.named_parameters())
            table |= {n: t for n, t in each.named_buffers() if t.requires_grad}
            self.tables.append((type(each).__name__, table))
        self.tensors: dict[str, weakref.ref[Tensor]] = {}

    def choose(self, leaves: dict[int, Tensor]) -> dict[int, str]:
        """Labels of the leaves that have a name. Where several models know a leaf, the one that
        knows most leaves names it; where names collide, the model's class stands before them.
        """
        wanted = {id(tensor) for tensor in leaves.values()}
        found = {id(tensor): index for index, tensor in leaves.items()}
        known = {i: len(wanted & {id(t) for t in t[1].values()}) for i, t in enumerate(self.tables)}
        # A model that was called for another graph takes no name from this one's leaves.
        order = sorted(known, key=lambda i: -known[i])
        tables = [self.tables[i] for i in order if known[i] or self.given]
        labels: dict[int, str] = {}
        named: set[int] = set()
        for kind, table in tables:
            for name, tensor in table.items():
                if id(tensor) in named:
                    continue
                named.add(id(tensor))
                full, count = name, 1
                while full in self.tensors:
                    count += 1
                    full = f"{kind}.{name}" if count == 2 else f"{kind}#{count - 1}.{name}"
                self.tensors[full] = weakref.ref(tensor)
                if id(tensor) in found:
                    labels[found[id(tensor)]] = full
        self.tables = []  # holds the tensors themselves
        return dict(sorted(labels.items()))

    def add_called(
        self, nodes: list[GraphNode], leaves: dict[int, Tensor], roots: list[str | None]
    ) -> dict[int, str]:
        """Labels of leaves without one that layers used which are gone: from the call's path, and
        the place among the operands at which such a layer has its parameters.

        Args:
            nodes: all nodes.
            leaves: the leaves that have no label.
            roots: of each node the class of the outermost module around it.
        """
        labels: dict[int, str] = {}
        for node in nodes:
            first, kinds = _PARAMETERS.get(node.op, (0, ()))
            if node.module is None or node.module_type not in kinds:
                continue
            for edge, own in zip(node.inputs[first:], ("weight", "bias")):
                if edge is None or edge[0] not in leaves or edge[0] in labels:
                    continue
                name = full = f"{node.module}.{own}" if node.module else own
                count = 1
                while full in self.tensors:
                    count += 1
                    root = roots[node.index] if count == 2 else f"{roots[node.index]}#{count - 1}"
                    full = f"{root}.{name}"
                labels[edge[0]] = full
                self.tensors[full] = weakref.ref(leaves[edge[0]])
        return labels

    def name_of(self, tensor: Tensor) -> str | None:
        """The name of a tensor, if it has one."""
        return next((name for name, ref in self.tensors.items() if ref() is tensor), None)
