"""One step of a traced program."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from clew._base import dtypes as _dtypes
from clew.fx.immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from clew.fx.graph import Graph

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Target = Any
Argument = Any
_legal_ops = frozenset(
    ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
)
_side_effectful_functions: set[Callable[..., Any]] = set()


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function whose calls are kept even where their results are unused; a decorator, too.

    Args:
        fn: the function.

    Returns:
        The function.

    >>> @clew.fx.has_side_effect
    ... def note(x):
    ...     return x
    >>> graph = clew.fx.Graph()
    >>> graph.call_function(note, (graph.placeholder("x"),)).is_impure()
    True
    """
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Applies fn to everything in nested tuples, lists, dicts and slices.

    Args:
        a: the container, or a single thing.
        fn: what to apply.

    Returns:
        A container of the results; lists and dicts in it do not change.

    >>> clew.fx.node.map_aggregate([1, (2, 3)], lambda v: v * 10)
    [10, (20, 30)]
    """
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list(map_aggregate(item, fn) for item in a)
    if isinstance(a, dict):
        return immutable_dict({k: map_aggregate(v, fn) for k, v in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(v, fn) for v in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Applies fn to the Nodes in nested tuples, lists, dicts and slices.

    Args:
        a: the container, or a single thing.
        fn: what to apply.

    Returns:
        A container with the results in the Nodes' places; lists and dicts in it do not change.

    >>> graph = clew.fx.Graph()
    >>> clew.fx.map_arg([graph.placeholder("x"), 2], lambda node: node.name)
    ['x', 2]
    """
    return map_aggregate(a, lambda value: fn(value) if isinstance(value, Node) else value)


def public_name(function: Any) -> str | None:
    """Where programs find a function of clew's, without the package's name; else None."""
    import clew

    name = getattr(function, "__name__", None)
    for home in ("", "nn.functional.", "linalg.", "fft.", "special."):
        owner = operator.attrgetter(home[:-1])(clew) if home else clew
        if isinstance(name, str) and getattr(owner, name, None) is function:
            return home + name
    return None


def _target_name(target: Any) -> str:
    if isinstance(target, str):
        return target
    known = public_name(target)
    if known is not None:
        return f"{_dtypes.home}.{known}"
    module = getattr(target, "__module__", None) or "builtins"
    short = getattr(target, "__name__", repr(target))
    name: str = getattr(target, "__qualname__", None) or short
    if module == "_operator":  # where Python keeps what programs import from operator
        module = "operator"
    return f"{module}.{name}"


class Node:
    """One step: an input, a call, an attribute that is read, or the output.

    `op` says which: placeholder, call_function, call_method, call_module, get_attr or output.
    `target` is the function, or the name of the method, module, attribute or parameter; `args` and
    `kwargs` hold values and other Nodes. Steps are made by the methods of a Graph.

    Args:
        graph: the graph that the step belongs to.
        name: its name, which no other step of the graph has.
        op: the kind of step.
        target: what is called or read.
        args: the arguments.
        kwargs: the named arguments.
        return_type: the type of the result, if it is known.

    Example:
        >>> from clew.fx import Node
        >>> graph = clew.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> node: Node = graph.call_function(clew.add, (x, 1))
        >>> node.op, node.args, list(x.users)
        ('call_function', (x, 1), [add])
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op not in _legal_ops:
            raise ValueError(f"Node: op must be one of {sorted(_legal_ops)}; got {op!r}")
        if op == "call_function" and not callable(target):
            raise ValueError(f"Node: the target of a call_function is called; got {target!r}")
        if op not in ("call_function", "root") and not isinstance(target, str):
            raise ValueError(f"Node: the target of a {op} is a str; got {target!r}")
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.meta: dict[str, Any] = {}
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._set(args, kwargs)

    def _set(self, args: Any, kwargs: Any) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def note(node: Node) -> Node:
            self._input_nodes[node] = None
            node.users[self] = None
            return node

        self._args = tuple(map_arg(tuple(args), note))
        self._kwargs = map_arg(dict(kwargs), note)

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments; assign to change them."""
        return self._args

    @args.setter
    def args(self, value: Any) -> None:
        self._set(value, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The named arguments; assign to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value: Any) -> None:
        self._set(self._args, value)

    @property
    def next(self) -> Node:
        """The step after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The step before this one."""
        return self._prev

    @property
    def all_input_nodes(self) -> list[Node]:
        """The steps whose results this one takes, each once."""
        return list(self._input_nodes)

    @property
    def stack_trace(self) -> str | None:
        """Where in the program the step was recorded, if that is known."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def prepend(self, x: Node) -> None:
        """Moves x to the place before this step.

        Args:
            x: another step of the graph.
        """
        if x.graph is not self.graph:
            raise ValueError("Node.prepend: both steps must be of one graph")
        if x is self:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Moves x to the place after this step.

        Args:
            x: another step of the graph.
        """
        self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replaces one argument.

        Args:
            idx: its place.
            arg: the new one.
        """
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Puts an argument in front of another.

        Args:
            idx: the place of the other.
            arg: the new one.
        """
        args = list(self.args)
        args.insert(idx, arg)
        self.args = tuple(args)

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replaces or adds one named argument.

        Args:
            key: its name.
            arg: the new one.
        """
        self.kwargs = {**self.kwargs, key: arg}

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Lets all steps that take this one's result take another's.

        Args:
            replace_with: the other step.
            delete_user_cb: which users are changed.
            propagate_meta: copy this step's meta to the other step.

        Returns:
            The users there were.
        """
        if propagate_meta:
            replace_with.meta.update(self.meta)
        users = list(self.users)
        for user in users:
            if delete_user_cb(user):
                user.replace_input_with(self, replace_with)
        return users

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Takes another step's result in place of one, in all arguments.

        Args:
            old_input: the step whose result was taken.
            new_input: the step whose result is taken now.
        """

        def other(node: Node) -> Node:
            return new_input if node is old_input else node

        self._set(map_arg(self._args, other), map_arg(self._kwargs, other))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the step is kept where its result is not used.

        Args:
            impure_random: accepted; random operations count as pure.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            name = getattr(self.target, "__name__", "")
            written = name.endswith("_") and not name.endswith("__")
            return self.target in _side_effectful_functions or written or name == "setitem"
        if self.op == "call_method":
            return self.target.endswith("_") and not self.target.endswith("__")
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is not None:
                return getattr(owner.get_submodule(self.target), "_is_impure", False)
        return False

    def normalized_arguments(self, root: Any, *args: Any, **kwargs: Any) -> Any:
        """The arguments all by name, where the callee's signature can be read.

        Args:
            root: the module that submodules are looked up in.
            args, kwargs: not used.

        Returns:
            An empty tuple and a dict of the arguments by name; None for methods, attributes, and
            where the signature cannot be read.
        """
        import inspect

        callee = self.target
        if self.op == "call_module":
            callee = type(root.get_submodule(self.target)).forward
            given: tuple[Any, ...] = (None, *self.args)
        elif self.op == "call_function":
            given = self.args
        else:
            return None
        try:
            bound = inspect.signature(callee).bind(*given, **self.kwargs)
        except (TypeError, ValueError):
            return None
        named = dict(bound.arguments)
        if self.op == "call_module":
            named.pop(next(iter(named)))
        return (), named

    def format_node(
        self, placeholder_names: Any = None, maybe_return_typename: Any = None, **kwargs: Any
    ) -> str | None:
        """The step as one line of text.

        Args:
            placeholder_names: a list to which an input's name is added.
            maybe_return_typename: not used.
            kwargs: not used.
        """
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(self.target)
            default = f"(default={self.args[0]})" if self.args else ""
            users = len(self.users)
            return (
                f"%{self.name} : [num_users={users}] = placeholder[target={self.target}]{default}"
            )
        if self.op == "get_attr":
            return f"%{self.name} : [num_users={len(self.users)}] = get_attr[target={self.target}]"
        if self.op == "output":
            return f"return {self.args[0]}"
        named = dict(self.kwargs)
        return (
            f"%{self.name} : [num_users={len(self.users)}] = {self.op}"
            f"[target={_target_name(self.target)}](args = {_shown(self.args)}, "
            f"kwargs = {_shown(named)})"
        )

    def _pretty_print_target(self, target: Any) -> str:
        return _target_name(target)

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    def __lt__(self, other: Any) -> bool:
        return self.graph._position(self) < self.graph._position(other)

    def __gt__(self, other: Any) -> bool:
        return other < self

    def __le__(self, other: Any) -> bool:
        return self is other or self < other

    def __ge__(self, other: Any) -> bool:
        return self is other or other < self


def _shown(a: Any) -> str:
    if isinstance(a, Node):
        return f"%{a.name}"
    if isinstance(a, tuple):
        inner = ", ".join(map(_shown, a))
        return f"({inner},)" if len(a) == 1 else f"({inner})"
    if isinstance(a, list):
        return f"[{', '.join(map(_shown, a))}]"
    if isinstance(a, dict):
        return "{" + ", ".join(f"{k}: {_shown(v)}" for k, v in a.items()) + "}"
    return str(a)
