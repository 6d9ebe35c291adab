"""Operations that a program added: how one is called, differentiated and run under vmap."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import clew
from clew import _C
from clew._base import overriding as _overriding
from clew._base import settling as _settling
from clew._C import Tensor
from clew._ops.schema import Schema as _Schema
from clew.utils import _pytree

_registry: dict[str, _Operation] = {}


class _Operation:
    """One operation; also each of its overloads."""

    is_view = False

    def __init__(self, qualname: str, schema: _Schema | None) -> None:
        self._qualname = qualname
        self.namespace, _, self._short = qualname.partition("::")
        self.__name__ = self._short
        self._given_schema = schema
        self._kernel: Callable[..., Any] | None = None
        self._elsewhere: dict[str, Callable[..., Any]] = {}  # kernels for other devices
        self._fake: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self._autograd: Callable[..., Any] | None = None
        self._vmap: Callable[..., Any] | None = None
        self._autocast: Any = None
        self._in_autocast: Callable[..., Any] | None = None
        self._function: Any = None
        self._strict = (
            False  # by custom_op: its kernel has no gradient, nor anything else, by itself
        )
        self.tags: Any = ()

    @property
    def _schema(self) -> _Schema:
        if self._given_schema is None:
            raise RuntimeError(f"library: {self._qualname} has no schema")
        return self._given_schema

    @property
    def default(self) -> _Operation:
        """The operation itself: overloads are told by their arguments."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        known = self.__dict__.get("_given_schema")
        if known is not None and name == known.overload_name:
            return self
        raise AttributeError(f"{self._qualname} has no overload {name!r}")

    def name(self) -> str:
        """The name with its namespace."""
        return self._qualname

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return ["default"]

    @property
    def overloadpacket(self) -> _Operation:
        """The operation itself."""
        return self

    _overloadpacket = overloadpacket
    _overloadname = "default"

    def __str__(self) -> str:
        return f"{self.namespace}.{self._short}.default"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._short}', overload='default')>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _overriding.sees_operations():
            return _overriding._ask_mode(self, args, kwargs)
        overriding = [v for v in _leaves(args, kwargs) if type(v) not in _PLAIN and _takes_over(v)]
        if overriding:
            if _overriding.has_torch_function(overriding):
                return _overriding.handle_torch_function(self, overriding, *args, **kwargs)
        return self._dispatch(args, kwargs)

    def _dispatch(self, args: Any, kwargs: Any) -> Any:
        """The call where no function mode and no class has taken it over."""
        if self._given_schema is not None:
            args, kwargs = self._given_schema.bind(args, kwargs)
        dispatch = sys.modules.get("clew._torch.utils._python_dispatch")
        if dispatch is not None:  # else there are no modes and no such classes
            answer = dispatch.ask(self, args, kwargs)
            if answer is not NotImplemented:
                return answer
        if self._in_autocast is not None and clew.is_autocast_enabled("cpu"):
            return self._in_autocast(*args, **kwargs)
        if self._autocast is not None and clew.is_autocast_enabled("cpu"):
            dtype = self._autocast

            def cast(t: Any) -> Any:
                floating = isinstance(t, Tensor) and t.is_floating_point()
                return t.to(dtype) if floating and t.dtype is not clew.float64 else t

            args, kwargs = _pytree.tree_map(cast, (args, kwargs))
            with clew.autocast("cpu", enabled=False):
                return self._call(args, kwargs)
        return self._call(args, kwargs)

    def _call(self, args: Any, kwargs: Any) -> Any:
        if self._autograd is not None:
            return self._autograd(*args, **kwargs)
        tensors = [v for v in _leaves(args, kwargs) if isinstance(v, Tensor)]
        if self._backward is None and self._vmap is None:
            if self._strict and not self._schema.mutates and _C.is_grad_enabled():
                if any(t.requires_grad for t in tensors):
                    return self._as_function()(args, kwargs)
            # A kernel made of operations has their gradients and batch rules. One that looks at
            # values raises for a batched tensor, and then runs sample by sample.
            if not any(_C._levels(t) for t in tensors):
                return self._run(*args, **kwargs)
            try:
                return self._run(*args, **kwargs)
            except (RuntimeError, TypeError, ValueError):
                pass
        return self._as_function()(args, kwargs)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        tensors = [v for v in _leaves(args, kwargs) if isinstance(v, Tensor)]
        if self._fake is not None and any(t.is_meta for t in tensors):
            return self._fake(*args, **kwargs)
        if self._kernel is None:
            raise NotImplementedError(
                f"{self._qualname} has no implementation for the CPU; register one with "
                "library.impl or library.register_kernel"
            )
        if self._strict and any(t.is_meta for t in tensors):
            if not self._schema._results:
                return None
            raise NotImplementedError(
                f"{self._qualname} has no rule for tensors without data; register one with "
                "library.register_fake"
            )
        result = self._kernel(*args, **kwargs)
        if self._given_schema is None:
            return result
        result = self._given_schema.check_result(result)
        if self._strict:
            self._check_memory(result, tensors)
        return result

    def _check_memory(self, result: Any, given: list[Tensor]) -> None:
        """Raises where a result shares the memory of an argument, or of another result."""
        leaves = [t for t in _leaves((result,), {}) if isinstance(t, Tensor)]
        _settling.settle(*given, *leaves)
        keys = {t._storage_key() for t in given if t.numel()}
        for t in leaves:
            if t.numel():
                if t._storage_key() in keys:
                    raise RuntimeError(
                        f"{self._qualname}: a result shares the memory of an argument or of "
                        "another result; return a copy: .clone()"
                    )
                keys.add(t._storage_key())

    def _gradients(self, ctx: Any, *grads: Any) -> Any:
        if self._backward is None:
            raise RuntimeError(
                f"{self._qualname} has no gradient rule; register one with "
                "library.register_autograd"
            )
        return self._backward(ctx, *grads)

    def _as_function(self) -> Callable[[Any, Any], Any]:
        if self._function is None:
            self._function = _function_of(self)
        return self._function


_PLAIN = frozenset({Tensor, int, float, bool, str, type(None)})


def _leaves(args: Any, kwargs: Any) -> list[Any]:
    """The arguments, and what is inside of lists and other containers among them."""
    flat = [*args, *kwargs.values()]
    if all(type(v) in _PLAIN for v in flat):
        return flat
    return _pytree.tree_leaves(flat)


def _takes_over(value: Any) -> bool:
    return hasattr(type(value), "__torch_function__")


def _function_of(operation: _Operation) -> Callable[[Any, Any], Any]:
    """The operation as a custom Function: its kernel, gradient and batch rule."""

    def call(args: Any, kwargs: Any) -> Any:
        if _has_lists(operation, args, kwargs):
            return _call_with_lists(operation, args, kwargs)
        names = list(kwargs)

        def forward(*given: Any) -> Any:
            positional = given[: len(args)]
            named = dict(zip(names, given[len(args) :]))
            return operation._run(*positional, **named)

        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            if operation._setup is None:
                return
            positional = inputs[: len(args)]
            if names:
                named = dict(zip(names, inputs[len(args) :]))
                operation._setup(ctx, positional, named, output)
            else:
                operation._setup(ctx, positional, output)

        def backward(ctx: Any, *grads: Any) -> Any:
            found = operation._gradients(ctx, *grads)
            found = found if isinstance(found, tuple) else (found,)
            return (*found, *([None] * len(names)))

        space: dict[str, Any] = {
            "forward": staticmethod(forward),
            "setup_context": staticmethod(setup_context),
            "backward": staticmethod(backward),
        }
        if operation._vmap is not None:

            def vmap(info: Any, in_dims: Any, *given: Any) -> Any:
                dims = tuple(in_dims)[: len(args)]
                named = dict(zip(names, given[len(args) :]))
                rule: Any = operation._vmap
                return rule(info, dims, *given[: len(args)], **named)

            space["vmap"] = staticmethod(vmap)
        else:
            # Each sample is a call of its own, which records itself.
            space["vmap"] = staticmethod(_loop_rule(lambda *given: kind.apply(*given)))
        kind: Any = type(operation._short, (clew.autograd.Function,), space)
        return kind.apply(*args, *kwargs.values())

    return call


def _has_lists(operation: _Operation, args: Any, kwargs: Any) -> bool:
    """Whether tensors come or go in lists, which custom Functions do not look into."""
    schema = operation._given_schema
    if schema is not None and schema._results == ["Tensor[]"]:
        return True
    given = (*args, *kwargs.values())
    return any(
        isinstance(a, (list, tuple)) and any(isinstance(t, Tensor) for t in a) for a in given
    )


class _Nested:
    """A Function's context whose answers are about the arguments as the operation has them."""

    def __init__(self, ctx: Any, needs_input_grad: tuple[Any, ...]) -> None:
        self.__dict__.update(_ctx=ctx, needs_input_grad=needs_input_grad)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)


def _call_with_lists(operation: _Operation, args: Any, kwargs: Any) -> Any:
    """Calls an operation as a custom Function of all tensors in its arguments."""
    flat, structure = _pytree.tree_flatten((list(args), kwargs))
    counts = [len(_pytree.tree_leaves(a)) for a in args]
    schema = operation._given_schema
    gives_list = schema is not None and schema._results == ["Tensor[]"]

    def nested(given: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        positional, named = structure.unflatten(list(given))
        return tuple(positional), named

    def forward(*given: Any) -> Any:
        positional, named = nested(given)
        found = operation._run(*positional, **named)
        return tuple(found) if gives_list else found

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        if operation._setup is not None:
            positional, named = nested(inputs)
            out = list(output) if gives_list else output
            operation._setup(ctx, positional, *([named] if named else []), out)

    def backward(ctx: Any, *grads: Any) -> Any:
        inner = _Nested(ctx, nested(ctx.needs_input_grad)[0])
        found = operation._gradients(inner, *([list(grads)] if gives_list else grads))
        found = found if isinstance(found, tuple) else (found,)
        spread: list[Any] = []
        for one, given, count in zip(found, args, counts):
            if not isinstance(given, (list, tuple)):
                spread.append(one)
            elif one is None:
                spread += [None] * count
            elif len(one) == count:
                spread += one
            else:
                raise RuntimeError(
                    f"{operation._qualname}: the gradient rule must give a gradient for each of "
                    f"the {count} tensors of a list; it gave {len(one)}"
                )
        return (*spread, *([None] * (len(flat) - len(spread))))

    def vmap(info: Any, in_dims: Any, *given: Any) -> Any:
        if operation._vmap is None:
            return _loop_rule(lambda *sample: kind.apply(*sample))(info, in_dims, *given)
        positional, named = nested(given)
        return operation._vmap(info, nested(in_dims)[0], *positional, **named)

    space: dict[str, Any] = {
        f.__name__: staticmethod(f) for f in (forward, setup_context, backward, vmap)
    }
    kind: Any = type(operation._short, (clew.autograd.Function,), space)
    found = kind.apply(*flat)
    return list(found) if gives_list else found


def _loop_rule(forward: Callable[..., Any]) -> Callable[..., Any]:
    def vmap(info: Any, in_dims: Any, *given: Any) -> Any:
        results = [
            forward(
                *(
                    v if dim is None or not isinstance(v, Tensor) else v.select(dim, i)
                    for v, dim in zip(given, in_dims)
                )
            )
            for i in range(info.batch_size)
        ]
        leaves, structure = _pytree.tree_flatten(results[0])
        columns = zip(*(_pytree.tree_leaves(r) for r in results))
        stacked = [clew.stack(list(column)) for column in columns]
        return structure.unflatten(stacked), structure.unflatten([0] * len(leaves))

    return vmap
