"""Records what a module's forward does, on values that are not known."""

from __future__ import annotations

import builtins
import collections
import functools
import inspect
import math
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import clew
from clew._C import Tensor
from clew._ops.einsum import einsum
from clew.fx.graph import Graph
from clew.fx.graph_module import GraphModule
from clew.fx.node import _side_effectful_functions, map_aggregate
from clew.fx.proxy import Proxy, TracerBase

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]

# (globals of a module, name) of each function that wrap() named.
_wrapped: dict[tuple[int, str], dict[str, Any]] = {}
_tracing = 0


class PHBase:
    """Stands for an argument that stays unknown in `concrete_args`."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


def is_fx_tracing() -> bool:
    """Whether a program is being recorded right now.

    >>> clew.fx._symbolic_trace.is_fx_tracing()
    False
    """
    return _tracing > 0


def wrap(fn_or_name: Any) -> Any:
    """Names a function of the calling module whose calls are recorded and not looked into.

    Args:
        fn_or_name: the function or its name, at the module's top level; a decorator, too.

    Example:
        >>> @clew.fx.wrap
        ... def rounded(x):
        ...     return x.round() if x.sum() > 0 else x
        >>> clew.fx.symbolic_trace(lambda x: rounded(x)).graph.find_nodes(op="call_function")
        [rounded]
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("wrap: expected a function of the module's top level, or its name")
    frame = sys._getframe(1)
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


class ProxyableClassMeta(type):
    """A metaclass: where an object of its classes is made from unknown values, that is a step.

    Example:
        >>> class Pair(metaclass=clew.fx.ProxyableClassMeta):
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        >>> graph = clew.fx.symbolic_trace(lambda x: Pair(x, 1).a).graph
        >>> [str(n.target) == str(Pair) for n in graph.find_nodes(op="call_function")]
        [True, False]
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance: Any = cls.__new__(cls)  # type: ignore[call-overload]
        if not is_fx_tracing():
            instance.__init__(*args, **kwargs)
            return instance
        found = _proxies((args, kwargs))
        if not found:
            instance.__init__(*args, **kwargs)
            return instance
        return found[0].tracer.create_proxy("call_function", cls, args, kwargs)


def _proxies(values: Any) -> list[Proxy]:
    found: list[Proxy] = []

    def note(value: Any) -> Any:
        if isinstance(value, Proxy):
            found.append(value)
        return value

    map_aggregate(values, note)
    return found


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = _proxies((args, kwargs))
        if not found:
            return function(*args, **kwargs)
        if function is einsum and len(args) == 2 and isinstance(args[1], list | tuple):
            args = (args[0], *args[1])  # passes over graphs read operands off the arguments
        return found[0].tracer.create_proxy("call_function", function, args, kwargs)

    return call


@functools.cache
def _python_functions() -> dict[Any, Any]:
    """The library's functions that are written in Python, each with a form that records."""
    found: dict[Any, Any] = {}
    homes = [clew, clew.nn.functional, clew.linalg, clew.fft, clew.special]
    for home in homes:
        for name in dir(home):
            if name.startswith("_"):
                continue
            value = getattr(home, name, None)
            if isinstance(value, types.FunctionType) and value.__module__.startswith("clew"):
                found.setdefault(value, _recording(value))
    for name in ("utils", "fx", "compile", "no_grad", "is_tensor", "vmap", "compiler"):
        found.pop(getattr(clew, name, None), None)
    return found


class Tracer(TracerBase):
    """Records a module; subclass it to say what is looked into.

    Args:
        autowrap_modules: modules whose functions are recorded as calls when their arguments are
            unknown.
        autowrap_functions: such functions.
        param_shapes_constant: accepted; parameters' shapes are read from the parameters.

    Example:
        >>> from clew.fx import Tracer
        >>> graph = Tracer().trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
        >>> [n.op for n in graph.nodes]
        ['placeholder', 'call_module', 'call_module', 'output']
    """

    def __init__(
        self,
        autowrap_modules: tuple[Any, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self._autowrap = [
            v
            for m in autowrap_modules
            for n, v in vars(m).items()
            if not n.startswith("_") and callable(v)
        ]
        self._autowrap += autowrap_functions
        # What a `trace` that a subclass writes itself reads.
        self._autowrap_search: list[Any] = list(autowrap_modules)
        self._autowrap_function_ids = {id(function) for function in self._autowrap}
        self._constants: dict[int, str] = {}
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Any, str] | None = None
        self.root: Any = None
        self.module_stack: collections.OrderedDict[str, Any] = collections.OrderedDict()
        self.scope: Any = None

    # ---- what a subclass may decide ----

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Whether a module's call is one step; True of the library's own but Sequential.

        Args:
            m: the module.
            module_qualified_name: its place in the root.
        """
        home = type(m).__module__
        ours = home.startswith(("clew.nn", "torch.nn", "clew.ao", "torch.ao"))
        return ours and not isinstance(m, clew.nn.Sequential)

    def path_of_module(self, mod: Any) -> str:
        """The place of a module in the root.

        Args:
            mod: the module.

        Raises:
            NameError: if the root does not contain it.
        """
        for name, part in self.root.named_modules(remove_duplicate=False):
            if part is mod:
                return name
        raise NameError(f"module {type(mod).__name__} is not installed as a submodule of the root")

    def call_module(
        self, m: Any, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A module's call: one step of a leaf, else what its forward does.

        Args:
            m: the module.
            forward: its forward.
            args, kwargs: the arguments.
        """
        path = self.path_of_module(m)
        self.module_stack[path] = (path, type(m))
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            self.module_stack.pop(path, None)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What a program gets when it reads from a module: of a parameter, the step that reads it.

        Args:
            attr: the attribute's name.
            attr_val: its value.
            parameter_proxy_cache: the parameters' steps so far, by path; filled.

        Returns:
            A Proxy for a parameter of the root; else `attr_val`.
        """
        if isinstance(attr_val, clew.nn.Parameter):
            for name, p in self.root.named_parameters():
                if p is attr_val:
                    if name not in parameter_proxy_cache:
                        parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {})
                    return parameter_proxy_cache[name]
        return attr_val

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: Any = None
    ) -> tuple[Any, list[Any]]:
        """Makes an input for each parameter of what is traced.

        Args:
            root_fn: the function, or the class's forward.
            is_module: whether it is a module's forward, which takes `self` first.
            concrete_args: values of parameters that are known, by name or as a tuple in order.

        Returns:
            The function that is recorded, and its arguments.
        """
        function = inspect.unwrap(root_fn)
        code = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames[:count])
        args: list[Any] = []
        if is_module:
            if not names:
                raise RuntimeError("trace: forward must take self")
            names.pop(0)
            args.append(self.root)
        signature = inspect.signature(function)
        concrete = concrete_args or {}
        if isinstance(concrete, tuple):
            concrete = dict(zip(names, concrete))

        fixed = 0

        def given_value(name: str, value: Any) -> Any:
            """The value, after an input of its own that must be equal to it."""
            nonlocal fixed
            if isinstance(value, (tuple, list, dict)):
                return value
            fixed += 1
            default = signature.parameters[name].default
            given = () if default is inspect.Parameter.empty else (default,)
            place = self.create_proxy("placeholder", f"{name}_{fixed}", given, {})
            if value is None or isinstance(value, (bool, int, float, str)):
                text = f"{name} has been specialized to have value {value} but got another value"
                self.create_proxy("call_function", _assert_is, (place, value, text), {})
            else:
                warnings.warn(
                    f"trace: nothing checks that {name} is what the program was recorded with",
                    stacklevel=2,
                )
            return value

        def place(name: str) -> Any:
            if name in concrete and concrete[name] is not PH:
                if isinstance(concrete[name], (tuple, list, dict)) and _holds_ph(concrete[name]):
                    raise NotImplementedError(
                        f"trace: concrete_args[{name!r}] holds unknown values inside a container; "
                        "give the whole argument or none of it"
                    )
                return given_value(name, concrete[name])
            default = signature.parameters[name.lstrip("*")].default
            given = () if default is inspect.Parameter.empty else (default,)
            annotation = getattr(function, "__annotations__", {}).get(name)
            kind = annotation if isinstance(annotation, type) else None
            return self.create_proxy("placeholder", name, given, {}, type_expr=kind)

        split = code.co_argcount - (1 if is_module else 0)
        args += [place(n) for n in names[:split]]
        named = {n: place(n) for n in names[split:]}
        at = count
        rest: Any = ()
        extra: Any = {}
        if code.co_flags & inspect.CO_VARARGS:
            rest = self.create_proxy("placeholder", f"*{code.co_varnames[at]}", (), {})
            at += 1
        if code.co_flags & inspect.CO_VARKEYWORDS:
            extra = self.create_proxy("placeholder", f"**{code.co_varnames[at]}", (), {})
        if isinstance(rest, Proxy) or isinstance(extra, Proxy) or named:
            return _with_rest(function, rest, extra, named), args
        return root_fn, args

    # ---- recording ----

    def create_arg(self, a: Any) -> Any:
        """An argument as a step holds it: parameters, buffers and other tensors become attributes.

        Args:
            a: the argument: Proxies, tensors, numbers and the like, in containers.
        """
        if isinstance(a, Tensor):
            if isinstance(a, clew.nn.Parameter):
                for name, p in self.root.named_parameters():
                    if p is a:
                        return self.create_node("get_attr", name, (), {})
                raise NameError("trace: a parameter does not belong to the module that is traced")
            for name, b in self.root.named_buffers():
                if b is a:
                    return self.create_node("get_attr", name, (), {})
            name = self._constants.get(id(a))
            if name is None:
                name = self._attribute_of(a) or self._keep(a)
                self._constants[id(a)] = name
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, clew.nn.Module) and a is not self.root:
            try:
                return self.create_node("get_attr", self.path_of_module(a), (), {})
            except NameError:
                return super().create_arg(a)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            items = tuple(self.create_arg(v) for v in a)
            return self.create_node("call_function", type(a), items, {})
        return super().create_arg(a)

    def _attribute_of(self, tensor: Tensor) -> str | None:
        for prefix, module in self.root.named_modules():
            for name, value in vars(module).items():
                if value is tensor:
                    return f"{prefix}.{name}" if prefix else name
        return None

    def _keep(self, tensor: Tensor) -> str:
        count = 0
        while hasattr(self.root, f"_tensor_constant{count}"):
            count += 1
        name = f"_tensor_constant{count}"
        setattr(self.root, name, tensor)
        return name

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The steps of a module or function.

        Args:
            root: a module or a function.
            concrete_args: values of arguments that are known; the others are inputs.
        """
        global _tracing
        self._constants = {}
        if isinstance(root, clew.nn.Module):
            self.root, function, is_module = root, type(root).forward, True
            name = getattr(self, "traced_func_name", "forward")
            if name != "forward":
                function = getattr(type(root), name)
        else:
            self.root, function, is_module = clew.nn.Module(), root, False
        self.graph = Graph(
            owning_module=self.root, tracer_cls=getattr(type(self), "__fx_tracer_cls__", type(self))
        )
        _tracing += 1
        try:
            call, args = self.create_args_for_root(function, is_module, concrete_args)
            with _patched(self, call, args):
                result = call(*args)
            self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=None)
        finally:
            _tracing -= 1
        _settle_parameters(self.graph)
        return self.graph


def _assert_is(given: Any, value: Any, message: str) -> None:
    """Raises where an input is not what a program was recorded with."""
    assert given is value or given == value, message


_side_effectful_functions.add(_assert_is)


def _holds_ph(value: Any) -> bool:
    found: list[Any] = []
    map_aggregate(value, lambda v: found.append(v) if v is PH else None)
    return bool(found)


def _with_rest(function: Any, rest: Any, extra: Any, named: Any) -> Any:
    """The function with its * and ** parameters bound to unknown values as a whole."""
    flags = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    plain = types.FunctionType(
        code.replace(co_flags=code.co_flags & ~flags, co_argcount=count, co_kwonlyargcount=0),
        function.__globals__,
        function.__name__,
        None,
        function.__closure__,
    )

    def call(*args: Any) -> Any:
        tail = [*named.values()]
        if code.co_flags & inspect.CO_VARARGS:
            tail.append(rest)
        if code.co_flags & inspect.CO_VARKEYWORDS:
            tail.append(extra)
        return plain(*args, *tail)

    call.__globals_of__ = function.__globals__  # type: ignore[attr-defined]
    return call


def _settle_parameters(graph: Graph) -> None:
    """Moves each parameter to its first use; takes out those that nothing uses."""
    order = {node: i for i, node in enumerate(graph.nodes)}
    for node in [n for n in graph.nodes if n.meta.pop("offered", False)]:
        if node.users:
            min(node.users, key=order.__getitem__).prepend(node)
        else:
            graph.erase_node(node)


@contextmanager
def _patched(tracer: Tracer, call: Any, args: list[Any]) -> Iterator[None]:
    """While a program runs: modules' calls, parameters and Python functions record."""
    undo: list[Callable[[], None]] = []
    kind = clew.nn.Module
    original_call = kind.__call__

    def module_call(self: Any, *given: Any, **named: Any) -> Any:
        def forward(*a: Any, **k: Any) -> Any:
            return original_call(self, *a, **k)

        with _offered(tracer, self):
            return tracer.call_module(self, forward, given, named)

    def set_in(space: dict[str, Any], name: str, value: Any) -> None:
        before = space[name]
        space[name] = value
        undo.append(lambda: space.__setitem__(name, before))

    recording = {**_python_functions()}
    for function in tracer._autowrap:
        try:
            recording.setdefault(function, _recording(function))
        except TypeError:
            continue
    spaces = [vars(clew), vars(clew.nn.functional), vars(clew.linalg), vars(clew.fft)]
    spaces += [vars(clew.special), vars(math)]
    torch = sys.modules.get("torch")
    if torch is not None:
        spaces.append(vars(torch))
    modules = tracer.root.modules()
    functions = [getattr(type(m), "forward", None) for m in modules]
    functions += [call, getattr(inspect.unwrap(call), "__wrapped__", None)]
    for function in functions:
        space = getattr(function, "__globals_of__", getattr(function, "__globals__", None))
        if space is not None and not any(space is s for s in spaces):
            if not str(space.get("__name__", "")).startswith("clew."):
                spaces.append(space)
    try:
        for space in spaces:
            for name, value in list(space.items()):
                if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
                    known = recording.get(value)
                    if known is not None:
                        set_in(space, name, known)
        for (_, name), space in _wrapped.items():
            value = space.get(name, getattr(builtins, name, None))
            if value is None:
                continue
            present = name in space
            before = space.get(name)
            space[name] = _recording(value)
            if present:
                undo.append(functools.partial(space.__setitem__, name, before))
            else:
                undo.append(functools.partial(space.pop, name))
        own = kind.__dict__.get("__call__")
        kind.__call__ = module_call  # type: ignore[method-assign]
        undo.append(
            (lambda: setattr(kind, "__call__", own)) if own else (lambda: delattr(kind, "__call__"))
        )
        with _offered(tracer, tracer.root):
            yield
    finally:
        for step in reversed(undo):
            step()


@contextmanager
def _offered(tracer: Tracer, module: Any) -> Iterator[None]:
    """While a module's forward runs, its parameters are steps that read them."""
    try:
        path = "" if module is tracer.root else tracer.path_of_module(module)
    except NameError:
        yield
        return
    if path and tracer.is_leaf_module(module, path):
        yield
        return
    names = [n for n, p in module._parameters.items() if p is not None]
    names = [n for n in names if n not in module.__dict__]
    for name in names:
        full = f"{path}.{name}" if path else name
        cache = tracer.__dict__.setdefault("_offers", {})
        proxy = cache.get((id(tracer.graph), full))
        if proxy is None:
            proxy = tracer.create_proxy("get_attr", full, (), {})
            proxy.node.meta["offered"] = True
            cache[id(tracer.graph), full] = proxy
        module.__dict__[name] = tracer.getattr(full, proxy, {})
    try:
        yield
    finally:
        for name in names:
            module.__dict__.pop(name, None)


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module that does the steps which root's forward was seen to do on unknown values.

    Args:
        root: a module or a function.
        concrete_args: values of arguments that are known.

    Example:
        >>> from clew.fx import symbolic_trace
        >>> traced = symbolic_trace(lambda x: (x + 1).relu())
        >>> traced(clew.tensor([-3.0, 3.0]))
        tensor([0., 4.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, clew.nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
