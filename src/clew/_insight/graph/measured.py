"""What was measured of a step: gradients' sizes on the edges of its graph, modules' activations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from clew import _C
from clew._C import Tensor, ones_like
from clew._insight.graph.zeros import nodes_behind

if TYPE_CHECKING:
    from clew._insight.graph.graph import Graph

__all__ = ["Activation", "Activations", "measure", "watch_gradients"]

# Beyond this many operations a graph's gradients are not measured: each costs a call in Python.
LIMIT = 20_000


class Activation(NamedTuple):
    """What a module gave in one step: numbers over all elements of all its calls.

    Args:
        calls: how often it ran.
        mean: of the finite elements.
        std: their standard deviation.
        low: the smallest.
        high: the largest.
        zeros: the share of elements that are 0.
        bad: how many are NaN or infinite.
    """

    calls: int
    mean: float
    std: float
    low: float
    high: float
    zeros: float
    bad: int

    @property
    def rms(self) -> float:
        """The typical size."""
        return float(np.hypot(self.mean, self.std))


class _Sums:
    def __init__(self) -> None:
        self.calls = self.count = self.zeros = self.bad = 0
        self.total = self.squares = 0.0
        self.low, self.high = np.inf, -np.inf

    def add(self, v: Any) -> None:
        self.calls += 1
        finite = np.isfinite(v)
        self.bad += int(v.size - finite.sum())
        v = v[finite].astype(np.float64)
        self.count += v.size
        if v.size:
            self.zeros += int((v == 0).sum())
            self.total += float(v.sum())
            self.squares += float(np.square(v).sum())
            self.low, self.high = min(self.low, float(v.min())), max(self.high, float(v.max()))

    def result(self) -> Activation:
        if not self.count:
            return Activation(self.calls, 0.0, 0.0, 0.0, 0.0, 0.0, self.bad)
        mean = self.total / self.count
        std = max(self.squares / self.count - mean * mean, 0.0) ** 0.5
        share = self.zeros / self.count
        return Activation(self.calls, mean, std, self.low, self.high, share, self.bad)


class Activations:
    """Gathers what modules give, by their path and class, until `take` is called."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], _Sums] = {}

    def hook(self, module: Any, args: Any, output: Any) -> None:
        """A forward hook for all modules."""
        from clew.utils._pytree import tree_leaves

        here = _C._here()
        path = "" if here is None or here[2] is None else here[2]
        tensors = [t for t in tree_leaves(output) if isinstance(t, Tensor)]
        given = next((t for t in tensors if t.is_floating_point()), None)
        if given is not None:
            sums = self._sums.setdefault((path, type(module).__name__), _Sums())
            sums.add(elements(given))

    def take(self) -> dict[tuple[str, str], Activation]:
        """What was gathered; it begins anew."""
        found = {key: sums.result() for key, sums in self._sums.items()}
        self._sums = {}
        return found


def elements(t: Tensor) -> Any:
    """A tensor's elements as an array, of its own memory where it can be; to be read only. Unlike
    detach() and item() it leaves no trace in what messages tell of the program. Of a sparse one, as
    gradients of embeddings are, those that it has."""
    from clew._tensor.text import widen

    if t.is_sparse:
        t = t.coalesce().values()
    array = t._array_view()
    return widen(array, True) if t.dtype.name == "bfloat16" else array


def size_of(t: Tensor, shape: tuple[int, ...] | None = None) -> float:
    """The norm of all elements; NaN or infinite where one is. A gradient of a value that was
    broadcast comes at the size of the result: it is added up to the value's own shape."""
    v = np.asarray(elements(t))
    if shape is not None and v.shape != shape and not t.is_sparse:
        v = v.sum(axis=tuple(range(v.ndim - len(shape))), dtype=v.dtype)
        wide = tuple(d for d, n in enumerate(shape) if n == 1 and v.shape[d] != 1)
        v = v.sum(axis=wide, keepdims=True) if wide else v
    v = np.abs(v.reshape(-1)).astype(np.float64)
    return float(np.sqrt(np.square(v).sum()))


def watch_gradients(graph: Graph, roots: list[Tensor]) -> list[Any]:
    """Hooks that note in `graph.gradients` what the next backward sends along each edge.

    Returns: handles of the hooks; none for a graph that is too large.
    """
    by_sequence = {node.sequence: node.index for node in graph if node.op != "leaf"}
    if len(by_sequence) > LIMIT:
        return []
    handles = []

    def watch(node: Any, at: int) -> None:
        inputs = graph.nodes[at].inputs
        shapes = [e and graph.nodes[e[0]].outputs[e[1]][0] for e in inputs]
        is_root = [number for index, number in graph.roots if index == at]

        def look(given: Any, got: Any) -> None:
            for i, edge in enumerate(inputs):
                if edge is not None and i < len(given):
                    size = 0.0 if given[i] is None else size_of(given[i], shapes[i])
                    graph.gradients[at, i] = size
            for number in is_root:
                if number < len(got) and got[number] is not None:
                    graph.root_gradients[at, number] = size_of(got[number])

        handles.append(node.register_hook(look))

    for node, at in nodes_behind(roots, by_sequence):
        watch(node, at)
    return handles


def measure(graph: Graph) -> None:
    """One more backward pass that fills `graph.gradients`; `Graph.measure` describes it."""
    roots = [ref() for ref in graph._root_tensors]
    alive = [root for root in roots if root is not None]
    if len(alive) < len(roots):
        raise RuntimeError("measure: the results whose graph this is are gone; keep the loss")
    if graph.has_run():
        raise RuntimeError(
            "measure: backward has let go of the graph; measure before backward, or call "
            "backward(retain_graph=True)"
        )
    leaves = [leaf for ref in graph._tensors.values() if (leaf := ref()) is not None]
    if not leaves:
        raise RuntimeError("measure: no leaf of the graph is alive that a gradient could go to")
    handles = watch_gradients(graph, alive)
    if not handles:
        raise RuntimeError(f"measure: more than {LIMIT:,} operations are too many to look at each")
    try:
        ones = tuple(ones_like(root) for root in alive)
        _C._run_backward(tuple(alive), ones, True, False, tuple(leaves))
    finally:
        for handle in handles:
            handle.remove()
