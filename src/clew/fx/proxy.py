"""Values that record what is done with them."""

from __future__ import annotations

import builtins
import enum
import operator
from collections.abc import Callable, Iterator
from typing import Any

from clew import _C
from clew._C import Tensor
from clew.fx.graph import Graph
from clew.fx.node import Node, map_aggregate

__all__ = ["Attribute", "GraphAppendingTracer", "Proxy", "TraceError", "TracerBase"]


class TraceError(ValueError):
    """The program does something with an unknown value that recording cannot follow."""


class TracerBase:
    """What turns values into steps; `Tracer` and `GraphAppendingTracer` are made of it.

    Example:
        >>> from clew.fx.proxy import TracerBase
        >>> issubclass(clew.fx.Tracer, TracerBase)
        True
    """

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False

    def create_node(
        self,
        kind: str,
        target: Any,
        args: Any,
        kwargs: Any,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Makes the step itself; a subclass may change what is recorded.

        Args:
            kind: the kind of step.
            target: what is called or read.
            args: the arguments.
            kwargs: the named arguments.
            name: its name, made different from those of other steps.
            type_expr: the type of the result.

        Returns:
            The Node.
        """
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """A value that stands for a step's result.

        Args:
            node: the step.
        """
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: Any,
        kwargs: Any,
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Any:
        """Makes a step of arguments that may hold Proxies, and the value that stands for it.

        Args:
            kind: the kind of step.
            target: what is called or read.
            args: the arguments.
            kwargs: the named arguments.
            name: its name, made different from those of other steps.
            type_expr: the type of the result.
            proxy_factory_fn: makes the value of the Node; `proxy` if None.

        Returns:
            The value, mostly a Proxy.
        """
        given, named = self.create_arg(tuple(args)), self.create_arg(dict(kwargs))
        node = self.create_node(kind, target, given, named, name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a: Any) -> Any:
        """An argument as a step holds it: Proxies become Nodes.

        Args:
            a: the argument: Proxies, tensors, numbers and the like, in containers.

        Raises:
            NotImplementedError: for other types, which cannot be recorded.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, (tuple, list)):
            items = [self.create_arg(v) for v in a]
            if isinstance(a, tuple) and hasattr(a, "_fields"):
                return type(a)(*items)
            return tuple(items) if isinstance(a, tuple) else items
        if isinstance(a, dict):
            if any(isinstance(k, Proxy) for k in a):
                raise RuntimeError("create_arg: keys of dicts must be known while tracing")
            return {k: self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(*(self.create_arg(v) for v in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*(self.create_arg(v) for v in (a.start, a.stop, a.step)))
        plain = (str, int, float, bool, complex, bytes, _C.dtype, _C.device, Tensor, enum.Enum)
        if a is None or a is ... or isinstance(a, plain) or callable(a):
            return a
        if type(a).__module__.startswith("clew"):
            return a
        raise NotImplementedError(f"create_arg: an argument of type {type(a)} cannot be recorded")

    def to_bool(self, obj: Proxy) -> bool:
        """Raises TraceError: a condition on an unknown value; a subclass may give True or False.

        Args:
            obj: the value.
        """
        raise TraceError(
            "symbolically traced variables cannot be used as inputs to control flow: the value of "
            f"{obj.node} is not known while tracing"
        )

    def iter(self, obj: Any) -> Iterator[Any]:
        """The parts of an unknown value, where the program says how many it wants: `a, b = x`.

        Args:
            obj: the value.

        Raises:
            TraceError: elsewhere.
        """
        import dis
        import sys

        frame = sys._getframe(2)
        code = list(dis.get_instructions(frame.f_code))
        at = next((i for i, x in enumerate(code) if x.offset == frame.f_lasti), None)
        if at is not None and code[at].opname == "UNPACK_SEQUENCE":
            return (obj[i] for i in range(code[at].argval))
        raise TraceError(
            "Proxy object cannot be iterated: how many items it has is not known while tracing"
        )

    def keys(self, obj: Proxy) -> Any:
        """The keys of an unknown dict, for `**`.

        Args:
            obj: the value.
        """
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Appends steps to a graph that is there.

    Args:
        graph: the graph.

    Example:
        >>> from clew.fx.proxy import GraphAppendingTracer
        >>> graph = clew.fx.Graph()
        >>> tracer = GraphAppendingTracer(graph)
        >>> x = clew.fx.Proxy(graph.placeholder("x"), tracer)
        >>> _ = x + 1
        >>> [n.name for n in graph.nodes]
        ['x', 'add']
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """Stands for a value that is not known; every operation on it becomes a step.

    Args:
        node: the step whose result it is.
        tracer: what records; appends to the step's graph if None.

    Example:
        >>> from clew.fx import Proxy
        >>> graph = clew.fx.Graph()
        >>> x = Proxy(graph.placeholder("x"))
        >>> (clew.relu(x) + 1).node
        add
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        if k.startswith("__") and k.endswith("__"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default: the length is not known; call "
            "clew.fx.wrap('len') at the top of the module to record the call"
        )

    def __index__(self) -> int:
        raise TraceError(
            f"the value of {self.node} is not known while tracing; it cannot be an int"
        )

    __int__ = __float__ = __index__

    def keys(self) -> Any:
        """The keys of the dict it stands for."""
        return self.tracer.keys(self)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tracer.create_proxy("call_function", operator.setitem, (self, key, value), {})

    def __contains__(self, item: Any) -> bool:
        raise TraceError(f"what {self.node} contains is not known while tracing")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        found: list[Proxy] = []

        def note(value: Any) -> Any:
            if isinstance(value, Proxy):
                found.append(value)
            return value

        map_aggregate((tuple(args), dict(kwargs)), note)
        tracer = found[0].tracer
        name = getattr(func, "__name__", "")
        if name.startswith("__") and name.endswith("__"):  # an operator of a tensor
            short = name[2:-2]
            known = getattr(operator, short, None) or getattr(operator, f"{short}_", None)
            if known is not None:
                return tracer.create_proxy("call_function", known, args, kwargs)
            reflected = getattr(operator, short[1:], None) if short.startswith("r") else None
            if reflected is not None:
                return tracer.create_proxy("call_function", reflected, args[::-1], kwargs)
        if getattr(Tensor, name, None) is func:
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", func, args, kwargs)


class Attribute(Proxy):
    """An attribute of an unknown value; a step of its own unless it is called.

    Args:
        root: the value.
        attr: the attribute's name.

    Example:
        >>> from clew.fx.proxy import Attribute
        >>> graph = clew.fx.Graph()
        >>> shape = clew.fx.Proxy(graph.placeholder("x")).shape
        >>> isinstance(shape, Attribute), shape.node
        (True, getattr_1)
    """

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The step that reads the attribute."""
        if self._node is None:
            self._node = self.tracer.create_proxy(
                "call_function", builtins.getattr, (self.root, self.attr), {}
            ).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _operator(function: Callable[..., Any]) -> Any:
    def method(self: Proxy, *args: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (self, *args), {})

    return method


def _reflected(function: Callable[..., Any]) -> Any:
    def method(self: Proxy, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (other, self), {})

    return method


# Without methods in place, as in PyTorch: Python makes `x += y` of `x + y`.
for _name in "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift".split():
    _short = _name.rstrip("_")
    _function = getattr(operator, _name)
    setattr(Proxy, f"__{_short}__", _operator(_function))
    setattr(Proxy, f"__r{_short}__", _reflected(_function))
for _name in "lt le eq ne gt ge neg pos invert getitem abs".split():
    setattr(Proxy, f"__{_name}__", _operator(getattr(operator, _name)))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
