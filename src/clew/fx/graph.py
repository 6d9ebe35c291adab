"""A traced program: a list of steps, and the Python source that does the same."""

from __future__ import annotations

import copy
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from clew.fx._source import _INFIX, _PREFIX, _Names, _Writer
from clew.fx.node import Node, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]


class PythonCode(NamedTuple):
    """Source, and the global names that it needs."""

    src: str
    globals: dict[str, Any]


class CodeGen:
    """Changes a graph's inputs and outputs around its forward; subclasses say how.

    This one leaves them as they are.

    Example:
        >>> from clew.fx import CodeGen
        >>> CodeGen().process_inputs(1, 2), CodeGen().process_outputs(3)
        ((1, 2), 3)
    """

    def process_inputs(self, *args: Any) -> Any:
        """The arguments as the graph takes them.

        Args:
            args: as the caller gave them.
        """
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The result as the caller gets it.

        Args:
            outputs: as the graph returns it.
        """
        return outputs


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


class _InsertPoint:
    """Where new steps go; as a context manager only for a while."""

    def __init__(self, graph: Graph, place: Node) -> None:
        self.graph = graph
        self.before, graph._insert = graph._insert, place

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        self.graph._insert = self.before


class Graph:
    """The steps of a program, in order.

    Args:
        owning_module: the module that modules and attributes are looked up in.
        tracer_cls: the tracer that recorded it.
        tracer_extras: what the tracer wants to keep.

    Example:
        >>> from clew.fx import Graph
        >>> graph = Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(clew.relu, (x,))
        >>> _ = graph.output(y)
        >>> clew.fx.GraphModule(clew.nn.Module(), graph)(clew.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def __init__(
        self,
        owning_module: Any = None,
        tracer_cls: Any = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._names = _Names()
        self._root = Node(self, "", "root", "", (), {})
        self._insert = self._root  # new steps go in front of it
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._len = 0

    # ---- looking ----

    @property
    def nodes(self) -> _NodeList:
        """The steps in order; also backwards with reversed()."""
        return _NodeList(self)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The steps of a kind, and with a target if one is given.

        Args:
            op: the kind.
            target: the target.
            sort: accepted; they always come in order.
        """
        return [
            n
            for n in self.nodes
            if n.op == op and (target is None or n.target == target or n.target is target)
        ]

    def output_node(self) -> Node:
        """The step that returns."""
        return self.find_nodes(op="output")[0]

    def _position(self, node: Node) -> int:
        return next(i for i, n in enumerate(self.nodes) if n is node)

    # ---- making steps ----

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Makes a step at the present place, which is the end unless it was set.

        Args:
            op: the kind of step.
            target: what is called or read.
            args: the arguments.
            kwargs: the named arguments.
            name: its name, made different from those of other steps.
            type_expr: the type of the result.

        Returns:
            The step.
        """
        fresh = self._names.fresh(name if name is not None else self._target_to_str(target))
        node = Node(self, fresh, op, target, args or (), kwargs or {}, type_expr)
        self._insert.prepend(node)
        self._len += 1
        return node

    def _target_to_str(self, target: Any) -> str:
        if isinstance(target, str):
            short = target
            if short.startswith("__") and short.endswith("__"):
                short = short[2:-2]
        else:
            short = getattr(target, "__name__", type(target).__name__)
        return _snake(short)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Makes the step of an input.

        Args:
            name: the parameter's name.
            type_expr: its type.
            default_value: its default; none if `...`.

        Returns:
            The step.
        """
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Makes the step that reads a parameter, buffer or other attribute of the module.

        Args:
            qualified_name: its path, such as "layer.weight".
            type_expr: its type.

        Returns:
            The step.
        """
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """Makes the step that calls a submodule.

        Args:
            module_name: its path.
            args: the arguments.
            kwargs: the named arguments.
            type_expr: the type of the result.

        Returns:
            The step.
        """
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """Makes the step that calls a method of the first argument.

        Args:
            method_name: the method's name.
            args: the arguments, the object first.
            kwargs: the named arguments.
            type_expr: the type of the result.

        Returns:
            The step.
        """
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: Any = None,
        kwargs: Any = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Makes the step that calls a function.

        Args:
            the_function: the function.
            args: the arguments.
            kwargs: the named arguments.
            type_expr: the type of the result.
            name: the step's name, made different from others; the function's if None.

        Returns:
            The step.
        """
        return self.create_node(
            "call_function", the_function, args, kwargs, name=name, type_expr=type_expr
        )

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Makes the step that returns.

        Args:
            result: what is returned: steps and other values, in containers.
            type_expr: its type.

        Returns:
            The step.
        """
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Makes a step like one of another graph.

        Args:
            node: the other step.
            arg_transform: for a step of the other graph, the one of this graph.

        Returns:
            The new step.
        """
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Copies all steps of another graph here; gives what it returns.

        Args:
            g: the other graph.
            val_map: its steps and those of this graph; filled.
            return_output_node: give the step that returns as well.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def erase_node(self, to_erase: Node) -> None:
        """Takes a step out.

        Args:
            to_erase: the step.

        Raises:
            RuntimeError: if another step uses its result.
        """
        if to_erase.users:
            raise RuntimeError(
                f"erase_node: {to_erase} is used by {list(to_erase.users)}; replace its uses first"
            )
        if to_erase._erased:
            return
        to_erase._set((), {})
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Makes new steps go in front of one; as a context manager only within the block.

        Args:
            n: the step; in front of all if None.

        Returns:
            The context manager.
        """
        return _InsertPoint(self, self._root._next if n is None else n)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Makes new steps go behind one; as a context manager only within the block.

        Args:
            n: the step; to the front if None.

        Returns:
            The context manager.
        """
        return _InsertPoint(self, (self._root if n is None else n)._next)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Takes out steps whose results nothing uses.

        Args:
            is_impure_node: which steps are kept all the same; those of which `Node.is_impure` is
                True if None.

        Returns:
            Whether there were any.
        """
        impure = is_impure_node or (lambda n: n.is_impure())
        changed = False
        for node in reversed(list(self.nodes)):
            if not node.users and not impure(node) and node.op not in ("placeholder", "output"):
                self.erase_node(node)
                changed = True
        return changed

    def lint(self) -> None:
        """Raises where a step uses one that comes later, belongs elsewhere, or cannot be found."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            for arg in node.all_input_nodes:
                if arg.graph is not self:
                    raise RuntimeError(f"lint: {node} uses {arg}, a step of another graph")
                if arg not in seen:
                    raise RuntimeError(f"lint: {node} uses {arg} before it has been defined")
            if node.name in names:
                raise RuntimeError(f"lint: two steps are named {node.name}")
            names.add(node.name)
            seen.add(node)
            if self.owning_module is not None and node.op in ("call_module", "get_attr"):
                found = self.owning_module
                for part in node.target.split("."):
                    if not hasattr(found, part):
                        raise RuntimeError(
                            f"lint: {node} refers to {node.target}, which the module does not have"
                        )
                    found = getattr(found, part)

    def print_tabular(self) -> None:
        """Prints the steps as a table."""
        rows: list[tuple[str, ...]] = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(n.op, n.name, str(n.target), str(n.args), str(n.kwargs)) for n in self.nodes]
        least = [len(heading) + 2 for heading in rows[0]]  # as the package tabulate has it
        widths = [max(least[i], *(len(row[i]) for row in rows)) for i in range(5)]
        rows.insert(1, tuple("-" * w for w in widths))
        for row in rows:
            print("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip())

    def __str__(self) -> str:
        names: list[str] = []
        lines = [n.format_node(names) for n in self.nodes]
        return "graph():\n    " + "\n    ".join(str(line) for line in lines)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        steps: dict[Node, Node] = {}
        found = made.graph_copy(self, steps, return_output_node=True)
        if found is not None:
            end = made.output(found[0])
            end.meta = copy.copy(found[1].meta)
        return made

    def set_codegen(self, codegen: CodeGen) -> None:
        """Chooses what changes inputs and outputs.

        Args:
            codegen: a CodeGen.
        """
        self._codegen = codegen

    # ---- source ----

    def python_code(self, root_module: str = "self", **kwargs: Any) -> PythonCode:
        """The source of a function `forward`, and the globals that it needs.

        Args:
            root_module: what the module is called in it.
            kwargs: accepted; there is one way to write it.
        """
        return PythonCode(*_Writer(self, root_module).write())


class _NodeList:
    def __init__(self, graph: Graph, forward: bool = True) -> None:
        self.graph = graph
        self.forward = forward

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        at = root._next if self.forward else root._prev
        while at is not root:
            # A step that the loop's body takes out still knows the one after it.
            following = at._next if self.forward else at._prev
            if not at._erased:
                yield at
                following = at._next if self.forward else at._prev
            at = following

    def __reversed__(self) -> _NodeList:
        return _NodeList(self.graph, not self.forward)

    def __len__(self) -> int:
        return self.graph._len


# What a program calls for a magic method is this function.
magic_methods = {**{n.rstrip("_"): f for n, f in _INFIX.items()}, **_PREFIX}
inplace_methods = {
    n: getattr(operator, n)
    for n in ("iadd", "iand", "ifloordiv", "imod", "imul", "imatmul", "ipow", "isub", "itruediv")
}
