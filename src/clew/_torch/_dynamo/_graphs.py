"""`compile(backend=function)`: the graph of a function's operations, which the backend is given.

A graph is recorded by running the function once on tensors that have sizes and no elements; what it
does besides calling operations happens then, and not again. It holds for the sizes, dtypes and
other arguments that it was recorded with, and for the modules' training modes: for others another
one is recorded. A function whose way elements decide has no such graph, and raises; PyTorch would
cut it in several.
"""

from __future__ import annotations

import functools
import inspect
import operator
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import clew
from clew import Tensor, fx, nn
from clew._base import function_modes, overriding
from clew._base.function_modes import PartsMode
from clew._program.compiled import OptimizedModule
from clew._tensor.structured import Structured
from clew.autograd.function import Function
from clew.utils import _pytree

__all__ = ["backends", "with_backend"]

# Backends by name, as programs register them.
backends: dict[str, Callable[..., Any]] = {}

_READS = frozenset(
    "__bool__ __int__ __float__ __index__ __complex__ __contains__ item tolist numpy equal "
    "allclose is_nonzero nonzero unique unique_consecutive argwhere masked_select bincount".split()
)
_NEVER = frozenset("backward register_hook retain_grad data_ptr share_memory_ __dlpack__".split())
_SWAPPED = {"__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__rfloordiv__", "__rpow__"}
_SWAPPED |= {"__rmod__", "__rmatmul__", "__rand__", "__ror__", "__rxor__"}
_MADE = (
    "zeros ones full empty arange linspace logspace eye rand randn randint randperm tensor "
    "as_tensor scalar_tensor tril_indices triu_indices"
).split()


def _refuse(why: str) -> NotImplementedError:
    return NotImplementedError(
        f"compile: {why}; leave backend out, and the function runs as it is written"
    )


def _operation(func: Any) -> tuple[str, Any, bool]:
    """How a call is written as a step: (kind, target, whether its operands change places)."""
    name = func.__name__
    if function_modes._before_modes.get(name) is not func and not hasattr(func, "__objclass__"):
        return "call_function", func, False
    if name.startswith("__"):
        plain = name.strip("_")
        if name in _SWAPPED:
            return "call_function", getattr(operator, plain[1:]), True
        if hasattr(operator, plain):
            return "call_function", getattr(operator, plain), False
    return "call_method", name, False


class _Recorder(PartsMode):
    """Runs calls on tensors without elements, and writes them down."""

    def __init__(self, found: dict[int, Callable[[], Any]]) -> None:
        self.graph = fx.Graph()
        self.found = found  # by identity: where tensors that are no arguments come from
        self.nodes: dict[int, fx.Node] = {}
        self.twins: dict[int, Tensor] = {}
        self.kept: list[Any] = []  # so that no identity is used twice
        self.inputs: list[Callable[[], Any]] = []
        self.examples: list[Tensor] = []
        self.steps = 0
        self.recording_grad = clew.is_grad_enabled()
        self.autocast = clew.is_autocast_enabled()

    def is_on(self) -> bool:
        """Whether it is asked: not within an operation."""
        return bool(overriding._state.modes) and overriding._state.modes[-1] is self

    def add_input(self, tensor: Tensor, source: Callable[[], Any], name: str) -> Tensor:
        """The tensor without elements that stands for one of the program's."""
        if isinstance(tensor, Structured) or tensor.is_meta:
            raise _refuse(f"{type(tensor).__name__} on {tensor.device} cannot be an input")
        twin = clew.empty_strided(
            tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta"
        ).requires_grad_(tensor.requires_grad)
        self.twins[id(tensor)] = twin
        self.know(twin, self._before_steps(name))
        self.kept.append(tensor)
        self.inputs.append(source)
        self.examples.append(tensor)
        return twin

    def _before_steps(self, name: str) -> fx.Node:
        name = name if name.isidentifier() else f"p_{name}"
        first = next((n for n in self.graph.nodes if n.op != "placeholder"), None)
        if first is None:
            return self.graph.placeholder(name)
        with self.graph.inserting_before(first):
            return self.graph.placeholder(name)

    def know(self, tensor: Tensor, node: fx.Node) -> None:
        self.nodes[id(tensor)] = node
        self.kept.append(tensor)

    def twin(self, tensor: Tensor) -> Tensor:
        if id(tensor) in self.nodes:
            return tensor
        if id(tensor) in self.twins:
            return self.twins[id(tensor)]
        source = self.found.get(id(tensor))
        if source is None:
            raise _refuse(
                f"a tensor of shape {list(tensor.shape)} is no argument, not of a module, not a "
                "variable of the function, and not made by an operation that is recorded"
            )
        return self.add_input(tensor, source, getattr(source, "name", "captured"))

    def _mapped(self, value: Any, tensor: Callable[[Tensor], Any]) -> Any:
        if isinstance(value, Tensor):
            return tensor(value)
        if isinstance(value, (list, tuple)) and not isinstance(value, clew.Size):
            parts = [self._mapped(v, tensor) for v in value]
            return value._make(parts) if hasattr(value, "_make") else type(value)(parts)
        if isinstance(value, dict):
            return {k: self._mapped(v, tensor) for k, v in value.items()}
        if isinstance(value, slice):
            return slice(*(self._mapped(v, tensor) for v in (value.start, value.stop, value.step)))
        if isinstance(value, clew.device) and value.type == "meta":
            return clew.device("cpu")  # a twin's, which the program asked for
        return value

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.__name__
        if name in _NEVER:
            raise _refuse(f"{name} within the function is not recorded")
        args, kwargs = (self._mapped(v, self.twin) for v in (tuple(args), dict(kwargs or {})))
        if name in _READS:
            raise _refuse(f"{name} reads elements, and what follows depends on them")
        return self.record(func, args, kwargs, func)

    def record(self, func: Any, args: Any, kwargs: Any, run: Callable[..., Any]) -> Any:
        """Calls a function on twins, and adds the step."""
        if clew.is_autocast_enabled() != self.autocast:
            raise _refuse("autocast regions within the function are not recorded")
        before = [self._mapped(v, lambda t: self.nodes[id(t)]) for v in (args, kwargs)]
        made = run(*args, **kwargs)
        parts = made if isinstance(made, (list, tuple)) else [made]
        tensors = [p for p in parts if isinstance(p, Tensor)]
        if not tensors and name_of(func) not in ("__setitem__",):
            return made  # of sizes and the like
        if clew.is_grad_enabled() != self.recording_grad:
            self.recording_grad = clew.is_grad_enabled()
            self.graph.call_function(clew.set_grad_enabled, (self.recording_grad,))
        kind, target, swapped = _operation(func)
        given = before[0][::-1] if swapped else before[0]
        node = self.graph.create_node(kind, target, given, before[1])
        self.steps += 1
        if made is None:
            return None
        if isinstance(made, Tensor):
            if not (args and made is args[0]):  # else written in place
                made = self._result(made)
            self.know(made, node)
            return made
        if tensors and len(tensors) != len(parts):
            raise _refuse(f"{name_of(func)} gives tensors and other things")
        results = [self._result(p) for p in parts]
        for i, result in enumerate(results):
            self.know(result, self.graph.call_function(operator.getitem, (node, i)))
        if isinstance(made, (list, tuple)):
            return made._make(results) if hasattr(made, "_make") else type(made)(results)
        return made

    def _result(self, tensor: Tensor) -> Tensor:
        if tensor.is_meta:
            return tensor
        made = clew.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
        return made.requires_grad_(tensor.requires_grad)


def name_of(func: Any) -> str:
    return str(getattr(func, "__name__", func))


def _recorded(recorder: _Recorder, step: Any, own: Any, args: Any, kwargs: Any) -> Any:
    """What ``own`` gives, recorded as a call of ``step`` while the recorder is on."""
    if not recorder.is_on():
        return own(*args, **kwargs)
    args, kwargs = (recorder._mapped(v, recorder.twin) for v in (args, kwargs))
    overriding._state.modes.remove(recorder)
    try:
        return recorder.record(step, args, kwargs, own)
    finally:
        overriding._state.modes.append(recorder)


def _making(recorder: _Recorder, function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _recorded(recorder, function, function, args, kwargs)

    return call


@contextmanager
def _recording(recorder: _Recorder) -> Iterator[None]:
    """While the function runs: operations, tensors that it makes, and its Functions record."""
    undo: list[Callable[[], None]] = []
    for name in _MADE:
        before = getattr(clew, name)
        undo.append(functools.partial(setattr, clew, name, before))
        setattr(clew, name, _making(recorder, before))
    apply = Function.__dict__["apply"]

    def applied(cls: Any, *args: Any, **kwargs: Any) -> Any:
        own = functools.partial(apply.__func__, cls)
        return _recorded(recorder, cls.apply, own, args, kwargs)

    Function.apply = classmethod(applied)  # type: ignore[assignment, method-assign]
    undo.append(functools.partial(setattr, Function, "apply", apply))
    for name, way in _TURNED.items():
        undo.append(functools.partial(setattr, Tensor, name, vars(Tensor)[name]))
        setattr(Tensor, name, property(way))
    state, aliases = clew.get_rng_state(), _torch_names()
    for name in aliases:
        _torch().__dict__.pop(name, None)
    try:
        with recorder:
            yield
    finally:
        for step in undo:
            step()
        for name in aliases:
            _torch().__dict__.pop(name, None)
        clew.set_rng_state(state)


# Properties, which modes do not see, as the operations that they are.
_TURNED: dict[str, Callable[[Any], Any]] = {
    "T": lambda x: x.permute(*reversed(range(x.dim()))),
    "mT": lambda x: x.transpose(-2, -1),
    "data": lambda x: x.detach(),
}


def _torch() -> Any:
    import sys

    return sys.modules.get("torch")


def _torch_names() -> list[str]:
    """Functions that the module `torch` keeps for itself once they were looked up."""
    return [] if _torch() is None else [n for n in _MADE if n in _torch().__dict__]


class _Of:
    """Where a tensor is found again: an attribute of a module, or a function's variable."""

    def __init__(self, name: str, get: Callable[[], Any]) -> None:
        self.name, self._get = name, get

    def __call__(self) -> Any:
        return self._get()


def _owner(module: nn.Module, table: str, name: str) -> Callable[[], Any]:
    held = weakref.ref(module)
    return lambda: getattr(held(), table)[name]


def _variables(function: Any) -> dict[str, Callable[[], Any]]:
    """A function's variables that are not its own: of the functions around it, and global ones."""
    function = inspect.unwrap(getattr(function, "__func__", function))
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    space = function.__globals__
    found: dict[str, Callable[[], Any]] = {
        name: functools.partial(space.__getitem__, name) for name in code.co_names if name in space
    }
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        found[name] = functools.partial(getattr, cell, "cell_contents")
    return found


class _Graphs:
    """A function that runs what a backend made of its graphs.

    Args:
        function: the function or module.
        backend: takes a GraphModule and example inputs, gives a function.
        options: named arguments for the backend.
    """

    def __init__(self, function: Any, backend: Any, options: dict[str, Any]) -> None:
        self.function, self.backend, self.options = function, backend, options
        self._made: dict[Any, list[Any]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, spec = _pytree.tree_flatten((args, kwargs))
        key = (
            str(spec),
            tuple(map(self._kind, leaves)),
            clew.is_grad_enabled(),
            clew.is_autocast_enabled(),
        )
        for one in self._made.setdefault(key, []):
            if one.fits():
                return one.run(leaves)
        made = _Compiled(self, leaves, spec)
        self._made[key].append(made)
        return made.run(leaves)

    @staticmethod
    def _kind(value: Any) -> Any:
        if isinstance(value, Tensor):
            return (
                type(value), tuple(value.shape), value.stride(), value.dtype, value.requires_grad,
                value.device,
            )  # fmt: skip
        try:
            hash(value)
        except TypeError:
            raise _refuse(f"an argument of {type(value).__name__} cannot be compared") from None
        return type(value), value


def _numbers(module: nn.Module) -> dict[str, Any]:
    return {k: v for k, v in vars(module).items() if isinstance(v, (bool, int, float, str))}


class _Compiled:
    """What a backend made of one graph, and for what it holds."""

    def __init__(self, owner: _Graphs, leaves: list[Any], spec: Any) -> None:
        function = owner.function
        modules, found = self._surroundings(function)
        recorder = _Recorder(found)
        given = []
        self.places: list[int] = []  # of the arguments that are tensors
        for i, value in enumerate(leaves):
            if isinstance(value, Tensor) and id(value) not in recorder.twins:
                recorder.add_input(value, lambda: None, self._name(leaves, i))
                self.places.append(i)
            given.append(recorder.twins[id(value)] if isinstance(value, Tensor) else value)
        args, kwargs = _pytree.tree_unflatten(given, spec)
        seen: list[nn.Module] = list(modules)
        watch = nn.modules.module.register_module_forward_pre_hook(
            lambda module, given: seen.append(module)
        )
        before = clew.is_grad_enabled()
        attributes = [(m, _numbers(m)) for m in modules]
        try:
            with _recording(recorder):
                result = function(*args, **kwargs)
        finally:
            watch.remove()
            clew.set_grad_enabled(before)
        for m, numbers in attributes:
            for name, value in vars(m).items():
                kept = isinstance(value, Tensor) and id(value) in recorder.nodes
                if kept or numbers.get(name, value) != _numbers(m).get(name, value):
                    raise _refuse(f"the function sets {type(m).__name__}.{name}")
        if recorder.recording_grad != before:
            recorder.graph.call_function(clew.set_grad_enabled, (before,))
        self.modes = [(weakref.ref(m), m.training) for m in {id(m): m for m in seen}.values()]
        outputs, self.spec = _pytree.tree_flatten(result)
        self.outputs: list[Any] = []  # the number of a graph's result, or what the function gave
        nodes = []
        for value in outputs:
            if isinstance(value, Tensor):
                nodes.append(recorder.nodes[id(recorder.twin(value))])
                self.outputs.append((True, len(nodes) - 1))
            else:
                self.outputs.append((False, value))
        recorder.graph.output(tuple(nodes))
        self.captured = recorder.inputs[len(self.places) :]
        held = recorder.examples[len(self.places) :]
        self.kinds = [owner._kind(t) for t in held]
        module = fx.GraphModule(nn.Module(), recorder.graph)
        self.call: Any = module.forward
        if recorder.steps:
            self.call = owner.backend(module, list(recorder.examples), **owner.options)
            if not callable(self.call):
                raise TypeError(
                    f"compile: the backend must return a function; got {type(self.call).__name__}"
                )

    @staticmethod
    def _name(leaves: list[Any], i: int) -> str:
        return "x" if sum(isinstance(v, Tensor) for v in leaves) == 1 else f"x_{i}"

    @staticmethod
    def _surroundings(function: Any) -> tuple[list[nn.Module], dict[int, Callable[[], Any]]]:
        """The modules that a function may call, and where tensors are that it may read."""
        roots = [function, getattr(function, "__self__", None)]
        sources: dict[int, Callable[[], Any]] = {}
        for name, get in _variables(getattr(function, "forward", function)).items():
            try:
                value = get()
            except ValueError:  # a variable that has no value yet
                continue
            if isinstance(value, Tensor):
                sources[id(value)] = _Of(name, get)
            roots.append(value)
        modules = [m for root in roots if isinstance(root, nn.Module) for m in root.modules()]
        names = {
            id(m): name
            for root in roots
            if isinstance(root, nn.Module)
            for name, m in root.named_modules()
        }
        for module in modules:
            for table in ("_parameters", "_buffers"):
                for name, value in getattr(module, table).items():
                    if value is not None and id(value) not in sources:
                        path = f"{names[id(module)]}_{name}".replace(".", "_").lstrip("_")
                        sources[id(value)] = _Of(path, _owner(module, table, name))
        return modules, sources

    def fits(self) -> bool:
        """Whether modules and what the function reads are as they were."""
        for held, training in self.modes:
            module = held()
            if module is None or module.training != training:
                return False
        return [_Graphs._kind(get()) for get in self.captured] == self.kinds

    def run(self, leaves: list[Any]) -> Any:
        found = self.call(*[leaves[i] for i in self.places], *[get() for get in self.captured])
        parts = list(found) if isinstance(found, (list, tuple)) else [found]
        values = [parts[value] if whole else value for whole, value in self.outputs]
        return _pytree.tree_unflatten(values, self.spec)


def with_backend(model: Any, backend: Any, mode: Any = None, options: Any = None) -> Any:
    """A function or module that runs what a backend makes of its graphs.

    Args:
        model: the function or module.
        backend: takes a GraphModule, whose inputs are all tensors that the function reads, and
            these tensors; gives a function that takes them and returns a tuple of tensors. Or the
            name that one was registered by.
        mode: what the backend gets by that name, unless it is None.
        options: what the backend gets by that name, unless there are none.
    """
    graphs = _Graphs(
        model,
        lookup_backend(backend),
        {
            **({} if mode in (None, "default") else {"mode": mode}),
            **({"options": options} if options else {}),
        },
    )
    if isinstance(model, nn.Module):
        made = OptimizedModule(model)
        made.__dict__["_call"] = graphs
        return made
    if not callable(model):
        raise TypeError(f"compile: expected a function or module; got {type(model).__name__}")

    @functools.wraps(model)
    def run(*args: Any, **kwargs: Any) -> Any:
        return graphs(*args, **kwargs)

    return run


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Any = ()) -> Any:
    """Gives a backend a name, by which `compile` finds it.

    Args:
        compiler_fn: the backend; None for a decorator.
        name: its name; the function's own if None.
        tags: accepted.
    """
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    known = name or compiler_fn.__name__
    if known in backends:
        raise AssertionError(f"register_backend: duplicate name: {known}")
    backends[known] = compiler_fn
    return compiler_fn


def lookup_backend(compiler_fn: Any) -> Any:
    """The backend of a name; a function itself."""
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn in ("eager", "aot_eager"):
        return _as_written
    if compiler_fn not in backends:
        raise NotImplementedError(
            f"compile: backend {compiler_fn!r} is neither one of clew's nor registered; registered "
            f"are {', '.join(sorted(backends)) or 'none'}"
        )
    return backends[compiler_fn]


def _as_written(gm: Any, example_inputs: Any, **options: Any) -> Any:
    """The graph itself."""
    return gm.forward
