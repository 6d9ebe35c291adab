"""One run of a model as a graph that TorchScript's questions can be put to: what `fvcore` and other
tools that count operations read.

The graph has the calls of that run in order, with the sizes of that run: branches that were taken,
loops unrolled. It cannot be run; `jit.trace` makes programs that can.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import clew
from clew import _C
from clew._base.function_modes import PartsMode
from clew.utils._pytree import tree_leaves

__all__ = ["TraceGraph", "TraceNode", "TraceType", "TraceValue", "trace_graph", "tracing_state"]

# Functions written in Python that are one operation in TorchScript.
_WHOLE = frozenset(
    (
        "batch_norm binary_cross_entropy binary_cross_entropy_with_logits cosine_similarity "
        "cross_entropy dropout einsum embedding grid_sample group_norm huber_loss instance_norm "
        "interpolate kl_div layer_norm linear max_pool1d max_pool2d max_pool3d mse_loss nll_loss "
        "pairwise_distance pixel_shuffle scaled_dot_product_attention smooth_l1_loss"
    ).split()
)
# Names that TorchScript has for operations.
_NAMES = {
    "__getitem__": "index", "__setitem__": "index_put_", "__radd__": "add", "__rsub__": "rsub",
    "__rmul__": "mul", "__rmatmul__": "matmul", "__truediv__": "div", "__rtruediv__": "div",
    "__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_", "__itruediv__": "div_",
    "__floordiv__": "floor_divide", "__mod__": "remainder",
    "cross_entropy": "cross_entropy_loss", "grid_sample": "grid_sampler",
    "_grid_sample": "grid_sampler", "nll_loss": "nll_loss_nd", "vector_norm": "linalg_vector_norm",
    "float": "to", "double": "to", "half": "to", "long": "to", "int": "to", "type": "to",
}  # fmt: skip
_CONVOLUTIONS = frozenset(
    f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)
)  # fmt: skip
# The operation's order of arguments, where the function has another.
_ORDERS = {
    "batch_norm": "input weight bias running_mean running_var training momentum eps",
    "instance_norm": "input weight bias running_mean running_var use_input_stats momentum eps",
    "embedding": "weight input padding_idx scale_grad_by_freq sparse",
}
_UPSAMPLINGS = {"linear": "linear1d", "bilinear": "bilinear2d", "bicubic": "bicubic2d",
                "trilinear": "trilinear3d"}  # fmt: skip


class TraceType:
    """The type of a value: of a tensor with its sizes and strides.

    Args:
        value: a tensor, a number, a text, a list or None.
    """

    def __init__(self, value: Any) -> None:
        self._of = value
        tensor = isinstance(value, _C.Tensor)
        self._sizes = list(value.shape) if tensor else None
        dense = tensor and value.layout is clew.strided
        self._strides = list(value.stride()) if dense else None
        self._dtype = value.dtype if tensor else None

    def kind(self) -> str:
        """`TensorType`, `IntType`, `ListType` and the like."""
        if self._sizes is not None:
            return "TensorType"
        name = "None" if self._of is None else type(self._of).__name__.capitalize()
        known = ("Bool", "Int", "Float", "Complex", "List", "Tuple", "Dict", "None")
        return ("String" if name == "Str" else name if name in known else "Any") + "Type"

    def sizes(self) -> list[int] | None:
        """Of a tensor; else None."""
        return self._sizes

    def strides(self) -> list[int] | None:
        """Of a tensor; else None."""
        return self._strides

    def dim(self) -> int | None:
        """Of a tensor: how many dims it has; else None."""
        return None if self._sizes is None else len(self._sizes)

    def dtype(self) -> Any:
        """Of a tensor; else None."""
        return self._dtype

    def scalarType(self) -> str | None:
        """`Float`, `Long` and the like, of a tensor; else None."""
        if self._dtype is None:
            return None
        return clew.empty(0, dtype=self._dtype).type().rpartition(".")[2].removesuffix("Tensor")

    def __str__(self) -> str:
        if self._sizes is None:
            return self.kind().removesuffix("Type")
        return f"{self.scalarType()}({', '.join(map(str, self._sizes))})"

    __repr__ = __str__


class TraceValue:
    """A tensor of the run, or a constant among the arguments."""

    def __init__(self, number: int, value: Any, node: TraceNode | None) -> None:
        self._number, self._type, self._node = number, TraceType(value), node
        self._constant = None if isinstance(value, _C.Tensor) else value

    def debugName(self) -> str:
        """Its name in the listing: its number."""
        return str(self._number)

    def unique(self) -> int:
        """Its number."""
        return self._number

    def type(self) -> TraceType:
        """Its type."""
        return self._type

    def isCompleteTensor(self) -> bool:
        """Whether it is a tensor, all of whose sizes are known."""
        return self._type.sizes() is not None

    def toIValue(self) -> Any:
        """What a constant is; None of a tensor."""
        return self._constant

    def node(self) -> TraceNode | None:
        """The call that makes it; None of an input of the graph."""
        return self._node

    def __repr__(self) -> str:
        return f"{self.debugName()} : {self._type}"


class TraceNode:
    """A call, a list that is made for one, or a constant."""

    def __init__(self, kind: str, given: list[TraceValue], scope: str) -> None:
        self._kind, self._given, self._scope = kind, given, scope
        self._made: list[TraceValue] = []

    def kind(self) -> str:
        """`aten::relu`, `prim::Constant`, `prim::ListConstruct`."""
        return self._kind

    def inputs(self) -> Iterator[TraceValue]:
        """The values that it takes."""
        return iter(self._given)

    def inputsSize(self) -> int:
        """How many there are."""
        return len(self._given)

    def outputs(self) -> Iterator[TraceValue]:
        """The values that it gives."""
        return iter(self._made)

    def outputsSize(self) -> int:
        """How many there are."""
        return len(self._made)

    def output(self) -> TraceValue:
        """The value that it gives."""
        (one,) = self._made
        return one

    def scopeName(self) -> str:
        """What was pushed with `push_scope` when the call was made, outermost first."""
        return self._scope

    def __repr__(self) -> str:
        made = ", ".join(f"%{v!r}" for v in self._made)
        given = ", ".join(f"%{v.debugName()}" for v in self._given)
        scope = f", scope: {self._scope}" if self._scope else ""
        return f"{made} = {self._kind}({given}){scope}"


class TraceGraph:
    """The calls of a run in order."""

    def __init__(self) -> None:
        self._inputs: list[TraceValue] = []
        self._outputs: list[TraceValue] = []
        self._nodes: list[TraceNode] = []

    def nodes(self) -> Iterator[TraceNode]:
        """The calls, each behind the constants and lists that it takes."""
        return iter(self._nodes)

    def inputs(self) -> Iterator[TraceValue]:
        """The tensors among the arguments, then parameters and buffers, then tensors that were
        found elsewhere."""
        return iter(self._inputs)

    def outputs(self) -> Iterator[TraceValue]:
        """The tensors that the model gives back."""
        return iter(self._outputs)

    def __str__(self) -> str:
        given = ", ".join(f"%{v!r}" for v in self._inputs)
        ends = ", ".join(f"%{v.debugName()}" for v in self._outputs)
        lines = [f"  {n!r}" for n in self._nodes]
        return "\n".join([f"graph({given}):", *lines, f"  return ({ends})", ""])


class _Recorder(PartsMode):
    """Writes the graph while the model runs."""

    _sees_whole = _WHOLE
    _sees_makers = True

    def __init__(self) -> None:
        self.graph = TraceGraph()
        self._known: dict[int, tuple[TraceValue, Any]] = {}
        self._scopes: list[str] = []
        self._count = 0

    def push_scope(self, name: str) -> None:
        """The calls that follow are made in a scope."""
        self._scopes.append(name)

    def pop_scope(self) -> None:
        """The innermost scope ends."""
        self._scopes.pop()

    def current_scope(self) -> str:
        """The scopes, outermost first."""
        return "/".join(self._scopes)

    def new(self, value: Any, node: TraceNode | None) -> TraceValue:
        made = TraceValue(self._count, value, node)
        self._count += 1
        if isinstance(value, _C.Tensor):
            self._known[id(value)] = made, value  # kept: another would get its id
        return made

    def add(self, kind: str, given: list[TraceValue], *results: Any) -> list[TraceValue]:
        node = TraceNode(kind, given, self.current_scope())
        node._made = [self.new(r, node) for r in results]
        self.graph._nodes.append(node)
        return node._made

    def given(self, x: Any) -> TraceValue:
        """An argument of a call."""
        if isinstance(x, _C.Tensor):
            if id(x) not in self._known:
                self.graph._inputs.append(self.new(x, None))
            return self._known[id(x)][0]
        if isinstance(x, (list, tuple)):
            return self.add("prim::ListConstruct", [self.given(y) for y in x], list(x))[0]
        return self.add("prim::Constant", [], x)[0]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func.__name__ == "__setitem__":
            made: Any = args[0]
        else:
            made = tuple(result) if isinstance(result, tuple) else result  # of whatever class
        found = [t for t in tree_leaves(made) if isinstance(t, _C.Tensor)]
        if found:
            name, arguments = _as_operation(func, args, kwargs)
            self.add(f"aten::{name}", [self.given(a) for a in arguments], *found)
        return result


def _as_operation(func: Any, args: Any, kwargs: Any) -> tuple[str, list[Any]]:
    """The operation's name in TorchScript and all of its arguments in order."""
    name = func.__name__
    if name == "__get__":  # an attribute such as x.T
        name = getattr(func.__self__, "__name__", name)
    try:
        bound = inspect.signature(func).bind(*args, **kwargs)
        bound.apply_defaults()
        named = dict(bound.arguments)
    except (TypeError, ValueError):  # a form that the signature does not tell
        named = {str(i): a for i, a in enumerate(args)} | kwargs
    for k, rest in list(named.items()):
        if k in ("out", "inplace"):
            del named[k]
        elif k in ("args", "kwargs"):
            del named[k]
            named |= {f"{k}{i}": a for i, a in enumerate(rest)} if k == "args" else rest
    if name in _CONVOLUTIONS:
        several = name[-2:-1]
        first = [named["input"], named["weight"], named.get("bias")]
        pairs = {k: _each(named.get(k, 0), int(several)) for k in ("stride", "padding", "dilation")}
        if isinstance(pairs["padding"], str):
            return "_convolution_mode", [*first, *pairs.values(), named["groups"]]
        transposed = "transpose" in name
        rest = [transposed, _each(named.get("output_padding", 0), int(several)), named["groups"]]
        return "_convolution", [*first, *pairs.values(), *rest, False, False, True, True]
    if name == "interpolate":
        x, mode = named["input"], named["mode"]
        kind = _UPSAMPLINGS.get(mode, f"{mode.replace('-', '_')}{x.dim() - 2}d")
        return f"upsample_{kind}", list(named.values())
    if name == "einsum":
        equation, *operands = args
        flat = (
            operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else None
        )
        return name, [equation, list(operands if flat is None else flat), None]
    if name == "__getitem__":
        at = args[1]
        if isinstance(at, int) and not isinstance(at, bool):
            return "select", [args[0], 0, at]
        if at is None:
            return "unsqueeze", [args[0], 0]
        if not _has_index(at):
            return "slice", [args[0], *_bounds(at)]
    if name in _ORDERS and all(k in named for k in _ORDERS[name].split()):
        named = {k: named[k] for k in _ORDERS[name].split()}
    if name in ("batch_norm", "instance_norm", "layer_norm", "group_norm"):
        named["cudnn_enabled"] = True
    if name == "_rnn":
        name = ("lstm", "gru", "rnn_tanh", "rnn_relu")[named["cell"]]
    if "kernel_size" in named and name == "unfold":
        name = "im2col"
    return _NAMES.get(name, name.strip("_") + ("_" if _writes(name) else "")), list(named.values())


def _writes(name: str) -> bool:
    """Whether it is the name of an operation in place."""
    return name.endswith("_") and not name.endswith("__")


def _each(x: Any, n: int) -> Any:
    """One number for each dim."""
    return [x] * n if isinstance(x, int) else x if isinstance(x, str) else list(x)


def _bounds(at: Any) -> list[Any]:
    """Of slices and numbers: start, stop and step for each dim, in order."""
    parts = at if isinstance(at, tuple) else (at,)
    return [
        [p.start, p.stop, p.step] if isinstance(p, slice) else "..." if p is Ellipsis else p
        for p in parts
    ]


def _has_index(at: Any) -> bool:
    """Whether a tensor or a list is among the places."""
    parts = at if isinstance(at, tuple) else (at,)
    return any(isinstance(p, (_C.Tensor, list, bool)) for p in parts)


_running: list[_Recorder] = []


def tracing_state() -> _Recorder | None:
    """What records now: it has push_scope and pop_scope. None where nothing does."""
    return _running[-1] if _running else None


def trace_graph(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[TraceGraph, Any]:
    """Runs a module or a function, and gives the graph of that run and what came out.

    Args:
        f: what is called.
        args: its arguments.
        kwargs: its named arguments.
    """
    recorder = _Recorder()
    state = [*f.parameters(), *f.buffers()] if isinstance(f, clew.nn.Module) else []
    for t in (*tree_leaves((args, kwargs)), *state):
        if isinstance(t, _C.Tensor):
            recorder.graph._inputs.append(recorder.new(t, None))
    _running.append(recorder)
    try:
        with recorder:
            out = f(*args, **kwargs)
    finally:
        _running.remove(recorder)
    recorder.graph._outputs = [
        recorder.given(t) for t in tree_leaves(out) if isinstance(t, _C.Tensor)
    ]
    return recorder.graph, out
