"""Runs a graph step by step; subclasses change what a step does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import clew
from clew.fx.graph import Graph
from clew.fx.graph_module import GraphModule
from clew.fx.node import Node, map_arg
from clew.fx.proxy import Proxy, TracerBase

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs the steps of a module's graph.

    Args:
        module: a GraphModule, or the module of `graph`.
        garbage_collect_values: let go of results after their last use.
        graph: the steps; the module's own if None.

    Example:
        >>> from clew.fx import Interpreter
        >>> Interpreter(clew.fx.symbolic_trace(lambda x: x + 1)).run(clew.ones(1))
        tensor([2.])
    """

    def __init__(
        self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Iterator[Any] = iter(())
        last: dict[Node, Node] = {}
        for node in self.graph.nodes:
            for arg in node.all_input_nodes:
                last[arg] = node
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        for value, user in last.items():
            self.user_to_last_uses.setdefault(user, []).append(value)

    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """Runs all steps; gives what the graph returns.

        Args:
            args: the inputs.
            initial_env: results that are known already.
            enable_io_processing: accepted; inputs and outputs are as the graph has them.
        """
        self.env = dict(initial_env or {})
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback and hasattr(error, "add_note"):
                    error.add_note(f"While executing {node.format_node()}")
                raise
            if self.garbage_collect_values:
                for dead in self.user_to_last_uses.get(node, ()):
                    self.env.pop(dead, None)
            if node.op == "output":
                return self.env[node]
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Runs all steps; empties the list of inputs, so that they may be freed.

        Args:
            args_list: the inputs; emptied.

        Returns:
            What the graph returns.
        """
        args = tuple(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """Runs one step, by the method that its `op` names.

        Args:
            n: the step.

        Returns:
            Its result.
        """
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next input; for a parameter such as `*args` a list of all that are left.

        Args:
            target: the parameter's name.
            args: its default, if it has one.
            kwargs: empty.

        Raises:
            RuntimeError: if there is none, and no default.
        """
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Interpreter: expected an argument for parameter {target}, but none was given"
            ) from None

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The attribute of the module that a step reads.

        Args:
            target: its path.
            args, kwargs: empty.
        """
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a function.

        Args:
            target: the function.
            args, kwargs: its arguments, as values.
        """
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a method of the first argument.

        Args:
            target: the method's name.
            args, kwargs: the arguments, as values, the object first.
        """
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a submodule.

        Args:
            target: its path.
            args, kwargs: its arguments, as values.
        """
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the graph returns.

        Args:
            target: "output".
            args: a tuple with the result.
            kwargs: empty.
        """
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """What lies at a path of the module.

        Args:
            target: the path, such as "layer.weight".

        Raises:
            RuntimeError: if there is nothing.
        """
        found = self.module
        for i, name in enumerate(target.split(".")):
            if not hasattr(found, name):
                path = ".".join(target.split(".")[: i + 1])
                raise RuntimeError(f"Interpreter: the graph refers to {path}, which does not exist")
            found = getattr(found, name)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a step, as values.

        Args:
            n: the step.

        Returns:
            The arguments, and the named ones.
        """
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """The arguments with values in the places of steps.

        Args:
            args: steps and other things, in containers.
            n: the step whose arguments they are, for messages.

        Raises:
            RuntimeError: if a step has not run.
        """

        def load(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(f"Interpreter: {n} uses {node}, which was not run")
            return self.env[node]

        return map_arg(args, load)


class _Recorder(TracerBase):
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.tensor_attrs: dict[Any, str] = {}

    def is_leaf_module(self, m: Any, name: str) -> bool:
        return True


class Transformer(Interpreter):
    """Writes a graph anew, step by step: overridden steps are recorded as they are run.

    Args:
        module: the module whose graph is written anew.

    Example:
        >>> from clew.fx import Transformer
        >>> class Sigmoids(Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         target = clew.sigmoid if target is clew.relu else target
        ...         return super().call_function(target, args, kwargs)
        >>> traced = clew.fx.symbolic_trace(lambda x: clew.relu(x))
        >>> Sigmoids(traced).transform()(clew.zeros(1))
        tensor([0.5000])
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = _Recorder(self.new_graph)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """An input of the new graph.

        Args:
            target: the parameter's name.
            args: its default, if it has one.
            kwargs: empty.
        """
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """An attribute that the new graph reads.

        Args:
            target: its path.
            args, kwargs: empty.
        """
        return self.tracer.create_proxy("get_attr", target, (), {})

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a submodule in the new graph.

        Args:
            target: its path.
            args, kwargs: its arguments, which may be Proxies.
        """
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function in the new graph.

        Args:
            target: the function.
            args, kwargs: its arguments, which may be Proxies.
        """
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module with the new graph."""
        with clew.enable_grad():
            result = super().run(enable_io_processing=False)
        if result is not None:
            self.new_graph.output(self.tracer.create_arg(result))
        return GraphModule(self.module, self.new_graph)
