"""A module whose forward is written from a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import weakref
from typing import Any

import clew
from clew.fx.graph import Graph, PythonCode

__all__ = ["GraphModule", "reduce_graph_module"]

_count = itertools.count()


def _compiled(code: PythonCode) -> Any:
    """The function; its source can be read in tracebacks, as long as its code is there."""
    name = f"<eval_with_key>.{next(_count)}"
    linecache.cache[name] = (len(code.src), None, code.src.splitlines(True), name)
    space = dict(code.globals)
    exec(compile(code.src, name, "exec"), space)
    forward = space["forward"]
    weakref.finalize(forward.__code__, linecache.cache.pop, name, None).atexit = False
    return forward


def _assign(path: str, source: Any, target: Any) -> None:
    """Puts what lies at a path of one module to the same path of another."""
    *parents, last = path.split(".")
    for name in parents:
        source = getattr(source, name)
        inner = getattr(target, name, None)
        if inner is None:
            inner = clew.nn.Module()
            setattr(target, name, inner)
        target = inner
    value = getattr(source, last)
    if isinstance(value, clew.Tensor) and not isinstance(value, clew.nn.Parameter):
        if last not in target._buffers:
            persistent = last not in getattr(source, "_non_persistent_buffers_set", ())
            if hasattr(target, last):
                delattr(target, last)
            target.register_buffer(last, value, persistent=persistent)
            return
    setattr(target, last, value)


class GraphModule(clew.nn.Module):
    """A module made of a graph: `code` is the source of its forward.

    Each has a class of its own, so that changing the graph and calling `recompile` changes one
    module only.

    Args:
        root: the module that the graph's modules and attributes are in, or a dict of them by path.
        graph: the steps.
        class_name: what the class is called.

    Example:
        >>> from clew.fx import GraphModule
        >>> traced: GraphModule = clew.fx.symbolic_trace(nn.Sequential(nn.ReLU()))
        >>> print(traced.code.strip())
        def forward(self, input):
            input_1 = input
            _0 = getattr(self, "0")(input_1);  input_1 = None
            return _0
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        base = next(c for c in cls.__mro__ if not c.__dict__.get("_of_one_graph", False))
        own = type(base.__name__, (base,), {"_of_one_graph": True, "__module__": cls.__module__})
        # PyTorch's name of such a class, by which accelerate tells that forward is the class's.
        own.__qualname__ = "GraphModule.__new__.<locals>.GraphModuleImpl"
        return super().__new__(own)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, clew.nn.Module):
            if hasattr(root, "training"):
                self.training = root.training
            # What the graph names comes along, and nothing else.
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    _assign(node.target, root, self)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(
                        f"GraphModule: {node} refers to {node.target!r}, which root does not have"
                    )
            for path in sorted((n.target for n in graph.nodes if n.target in root), key=len):
                *parents, last = path.split(".")
                at = self
                for name in parents:
                    if not hasattr(at, name):
                        setattr(at, name, clew.nn.Module())
                    at = getattr(at, name)
                setattr(at, last, root[path])
        else:
            raise RuntimeError(f"GraphModule: root must be a module or a dict; got {type(root)}")
        self.meta: dict[str, Any] = {}
        self._tracer_cls = graph._tracer_cls
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The steps; assigning others, or calling `recompile` after a change, rewrites forward."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise AssertionError(f"GraphModule.graph: expected a Graph; got {type(graph)}")
        object.__setattr__(self, "_graph", graph)
        graph.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of forward."""
        return self._code

    def recompile(self) -> PythonCode:
        """Writes forward anew from the graph."""
        code = self._graph.python_code("self")
        object.__setattr__(self, "_code", code.src)
        type(self).forward = _compiled(code)
        return code

    def add_submodule(self, target: str, m: Any) -> bool:
        """Puts a module at a path, and makes the modules on the way.

        Args:
            target: the path, such as "block.norm".
            m: the module.

        Returns:
            Whether it was possible: False where something that is no module lies on the way.
        """
        *parents, last = target.split(".")
        at: Any = self
        for name in parents:
            inner = getattr(at, name, None)
            if inner is None:
                inner = clew.nn.Module()
                setattr(at, name, inner)
            if not isinstance(inner, clew.nn.Module):
                return False
            at = inner
        at.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Takes out the module at a path.

        Args:
            target: the path, such as "block.norm".

        Returns:
            Whether there was one.
        """
        *parents, last = target.split(".")
        at: Any = self
        for name in parents:
            at = getattr(at, name, None)
            if not isinstance(at, clew.nn.Module):
                return False
        if not isinstance(getattr(at, last, None), clew.nn.Module):
            return False
        delattr(at, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Takes out the modules that no step calls or reads from."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
                if node.op == "call_module":
                    inner = self.get_submodule(node.target)
                    used.update(f"{node.target}.{n}" for n, _ in inner.named_modules() if n)
        for name, _ in list(self.named_modules()):
            if name and name not in used:
                self.delete_submodule(name)

    def print_readable(self, print_output: bool = True, **kwargs: Any) -> str:
        """The source as text, printed too.

        Args:
            print_output: print it.
            kwargs: accepted; the source is the same.
        """
        body = self._code.strip().replace("\n", "\n    ")
        text = f"class {type(self).__name__}(clew.nn.Module):\n    {body}\n"
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        hint = "# `print_readable()` shows the source"
        return f"{super().__str__()}\n\n{self._code}\n\n{hint}"

    def _plain(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("_graph", None)
        state.pop("_code", None)
        return state

    def __reduce__(self) -> Any:
        graph = copy.deepcopy(self.graph)
        graph.owning_module = None
        state = self._plain()
        if "<locals>" in getattr(self._tracer_cls, "__qualname__", ""):
            # Nobody can import such a class; what it recorded does not need it.
            state["_tracer_cls"] = graph._tracer_cls = None
        return reduce_graph_module, (state, graph, type(self).__name__)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        state = copy.deepcopy(self._plain(), memo)
        made = reduce_graph_module(state, copy.deepcopy(self.graph), type(self).__name__)
        memo[id(self)] = made
        return made

    def __copy__(self) -> GraphModule:
        return reduce_graph_module(
            copy.copy(self._plain()), copy.deepcopy(self.graph), type(self).__name__
        )


def reduce_graph_module(state: dict[str, Any], graph: Graph, name: str = "GraphModule") -> Any:
    """Makes a GraphModule of a state and a graph; pickles call it.

    Args:
        state: the attributes.
        graph: the steps.
        name: what the class is called.

    Returns:
        A GraphModule.

    Example:
        >>> from clew.fx.graph_module import reduce_graph_module
        >>> traced = clew.fx.symbolic_trace(nn.Sequential(nn.ReLU()))
        >>> reduce_graph_module(*traced.__reduce__()[1])(clew.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    made = GraphModule({}, Graph(), name)
    made.__dict__.update(state)
    made.graph = graph
    return made


# Inner names that libraries which subclass GraphModule import.
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    _assign(target, from_module, to_module)


class _CodeOnlyModule(clew.nn.Module):
    """A module of a state alone, whose forward is given later."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body
