"""How a program adds operations: a library, a schema, kernels, rules; for clew.library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew._ops.schema import Schema as _Schema
from clew._registered import _Operation, _registry


def _full_name(name: Any) -> str:
    known = getattr(name, "_qualname", None)  # of an operation, or a function that is one
    if known is not None:
        return known
    if not isinstance(name, str) or name.count("::") != 1:
        raise ValueError(f"library: an operation is named 'namespace::name'; got {name!r}")
    return name.partition(".")[0] if "." in name else name


def _find(name: Any) -> _Operation:
    full = _full_name(name)
    if full not in _registry:
        raise RuntimeError(f"library: there is no operation {full}; define it first")
    return _registry[full]


def _define(full: str, schema: _Schema | None) -> _Operation:
    if full in _registry and _registry[full]._given_schema is not None and schema is not None:
        if _registry[full]._given_schema.text == schema.text:  # type: ignore[union-attr]
            return _registry[full]
        raise RuntimeError(f"library: {full} is defined already")
    operation = _registry[full] = _Operation(full, schema)
    return operation


class Library:
    """The operations of a namespace that one part of a program adds.

    Args:
        ns: the namespace.
        kind: DEF for a namespace of one's own, FRAGMENT to add to one, IMPL to implement only.
        dispatch_key: what its kernels are for, where `impl` is not told; see there.

    Example:
        >>> from clew.library import Library
        >>> lib = Library("doc_lib", "DEF")
        >>> lib.define("twice(Tensor x) -> Tensor")
        'twice'
        >>> lib.impl("twice", lambda x: 2 * x)
        >>> clew.ops.doc_lib.twice(clew.ones(1))
        tensor([2.])
    """

    __module__ = "clew.library"

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Library: kind must be IMPL, DEF or FRAGMENT; got {kind!r}")
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._defined: list[str] = []

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Adds an operation to the namespace.

        Args:
            schema: its name, parameters and results, such as "twice(Tensor x) -> Tensor".
            alias_analysis: not used.
            tags: kept with the operation.

        Returns:
            The operation's name, without the namespace.
        """
        read = _Schema(schema, self.ns)
        full = f"{self.ns}::{read.name}"
        _define(full, read).tags = tags
        self._defined.append(full)
        return read.name

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Gives an operation its kernel.

        Args:
            op_name: the operation.
            fn: the kernel.
            dispatch_key: "CPU" or "CompositeImplicitAutograd"; "Autograd" for a function that also
                sees to the gradient; "AutocastCPU" for one that is called in autocast regions,
                and calls the operation outside of them; "Meta" for shapes. Kernels of other
                devices are kept nowhere. Without one, the library's.
            with_keyset: not supported.
            allow_override: a second kernel for a key replaces the first; where False, it raises.
        """
        if with_keyset:
            raise NotImplementedError("Library.impl: with_keyset is not supported")
        full = op_name if isinstance(op_name, str) else _full_name(op_name)
        full = full if "::" in full else f"{self.ns}::{full.partition('.')[0]}"
        _implement(full, fn, dispatch_key or self.dispatch_key, allow_override)

    def fallback(self, fn: Callable[..., Any], dispatch_key: str = "", **kwargs: Any) -> None:
        """Raises: there is no kernel for all operations."""
        raise NotImplementedError("Library.fallback: there is no kernel for all operations")

    def _destroy(self) -> None:
        for full in self._defined:
            _registry.pop(full, None)
        self._defined.clear()


# Where an operation keeps the kernels of dispatch keys; others' are never called.
_ATTRIBUTES = {
    **dict.fromkeys(
        ("", "CPU", "default", "CompositeImplicitAutograd", "CompositeExplicitAutograd"), "_kernel"
    ),
    **dict.fromkeys(("Autograd", "AutogradCPU"), "_autograd"),
    "AutocastCPU": "_in_autocast",
    "Meta": "_fake",
}


def _implement(full: str, fn: Callable[..., Any], key: str, allow_override: bool = True) -> None:
    operation = _registry.get(full)
    if operation is None:
        space, _, short = full.partition("::")
        if space == "aten":
            raise NotImplementedError(
                f"library: aten::{short} is clew's own; its kernel cannot be replaced"
            )
        operation = _define(full, None)
    if fn is fallthrough_kernel:
        return
    attribute = _ATTRIBUTES.get(key)
    known = (
        operation._elsewhere.get(key.upper()) if attribute is None else vars(operation)[attribute]
    )
    if known is not None and not allow_override:
        raise RuntimeError(f"library: {full} already has a kernel for {key or 'CPU'}")
    if attribute is None:
        operation._elsewhere[key.upper()] = fn
    else:
        setattr(operation, attribute, fn)


def define(qualname: str, schema: Any = None, *, lib: Any = None, tags: Any = ()) -> Any:
    """Adds an operation by its schema; `impl` gives it a kernel.

    Args:
        qualname: "namespace::name".
        schema: its parameters and results, such as "(Tensor x) -> Tensor".
        lib: not used: the operation stays as long as the process.
        tags: kept with the operation.

    Returns:
        None; `clew.ops.<namespace>.<name>` is the operation.

    Raises:
        RuntimeError: if the operation exists with another schema.

    Example:
        >>> from clew.library import define, impl
        >>> define("doc_define::twice", "(Tensor x) -> Tensor")
        >>> impl("doc_define::twice", "cpu", lambda x: 2 * x)
        >>> clew.ops.doc_define.twice(clew.ones(1))
        tensor([2.])
    """
    full = _full_name(qualname)
    space, _, short = full.partition("::")
    _define(full, _Schema(short + schema, space)).tags = tags


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """Gives an operation its kernel for kinds of devices; a decorator without `func`.

    Args:
        qualname: "namespace::name"; in the older form `impl(lib, name, dispatch_key="")` the
            library, with the name and the key after it.
        types: "cpu", "default" or a sequence; kernels of other devices are kept nowhere.
        func: the kernel.
        lib: not used.

    Returns:
        None, or without `func` a decorator that returns its function.

    Example:
        >>> from clew.library import define, impl
        >>> define("doc_impl::twice", "(Tensor x) -> Tensor")
        >>> @impl("doc_impl::twice", "cpu")
        ... def twice(x):
        ...     return 2 * x
        >>> clew.ops.doc_impl.twice(clew.ones(1))
        tensor([2.])
    """
    if isinstance(qualname, Library):

        def add(fn: Callable[..., Any]) -> Callable[..., Any]:
            qualname.impl(types, fn, func or "")
            return fn

        return add
    kinds = [types] if isinstance(types, str) else list(types)

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        for kind in kinds:
            key = {"default": "", "cpu": "CPU"}.get(kind, kind)
            _implement(_full_name(qualname), fn, key)
        return fn

    return register if func is None else (register(func), None)[1]


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Gives an operation its kernel for kinds of devices; a decorator without `func`.

    Args:
        op: the operation, or its name "namespace::name".
        device_types: as of `impl`; None for all.
        func: the kernel.
        lib: not used.

    Returns:
        None, or without `func` a decorator that returns its function.

    Example:
        >>> from clew.library import define, register_kernel
        >>> define("doc_kernel::twice", "(Tensor x) -> Tensor")
        >>> register_kernel("doc_kernel::twice", "cpu", lambda x: 2 * x)
        >>> clew.ops.doc_kernel.twice(clew.ones(1))
        tensor([2.])
    """
    kinds = ["default"] if device_types is None else device_types
    return impl(_full_name(op), kinds, func, lib=lib)


def register_fake(
    op: Any,
    func: Any = None,
    /,
    *,
    lib: Any = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Gives an operation its rule for tensors without data; a decorator without `func`.

    The rule gets "meta" tensors and returns tensors of the right shapes and dtypes. PyTorch's older
    name is `impl_abstract`.

    Args:
        op: the operation, or its name "namespace::name".
        func: the rule.
        lib: not used.
        allow_override: a second rule replaces the first; where False, it raises.

    Returns:
        `func`, or without it a decorator that returns its function.

    Raises:
        RuntimeError: if there is no such operation, or it has a rule and allow_override is False.

    Example:
        >>> from clew.library import custom_op, register_fake
        >>> @custom_op("doc_fake::twice", mutates_args=())
        ... def twice(x: clew.Tensor) -> clew.Tensor:
        ...     return clew.from_numpy(2 * x.detach().numpy())
        >>> @register_fake("doc_fake::twice")  # also called impl_abstract
        ... def _(x):
        ...     return clew.empty_like(x)
        >>> twice(clew.empty(3, device="meta")).shape
        clew.Size([3])
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        operation = _find(op)
        if operation._fake is not None and not allow_override:
            raise RuntimeError(f"register_fake: {operation._qualname} already has such a rule")
        operation._fake = fn
        return fn

    return register if func is None else register(func)


impl_abstract = register_fake


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Any = None
) -> None:
    """Gives an operation its gradient rule.

    Args:
        op: the operation, or its name "namespace::name".
        backward: backward(ctx, *gradients), which returns a gradient for each input, or one alone.
        setup_context: setup_context(ctx, inputs, output), which keeps what `backward` needs; with
            named arguments setup_context(ctx, inputs, named, output).
        lib: not used.

    Raises:
        RuntimeError: if there is no such operation.

    Example:
        >>> from clew.library import custom_op, register_autograd
        >>> @custom_op("doc_autograd::square", mutates_args=())
        ... def square(x: clew.Tensor) -> clew.Tensor:
        ...     return clew.from_numpy(x.detach().numpy() ** 2)
        >>> def keep(ctx, inputs, output):
        ...     ctx.save_for_backward(*inputs)
        >>> def backward(ctx, grad):
        ...     return 2 * ctx.saved_tensors[0] * grad
        >>> register_autograd("doc_autograd::square", backward, setup_context=keep)
        >>> x = clew.tensor([3.0], requires_grad=True)
        >>> square(x).backward()
        >>> x.grad
        tensor([6.])
    """
    operation = _find(op)
    operation._backward, operation._setup, operation._function = backward, setup_context, None


def register_vmap(op: Any, func: Any = None, /, *, lib: Any = None) -> Any:
    """Gives an operation its rule for batches; a decorator without `func`.

    Args:
        op: the operation, or its name "namespace::name".
        func: func(info, in_dims, *args), which returns (results, out_dims); `info.batch_size` is
            the batch's size, `in_dims` says where it lies in each argument.
        lib: not used.

    Returns:
        `func`, or without it a decorator that returns its function.

    Raises:
        RuntimeError: if there is no such operation.

    Example:
        >>> from clew.library import custom_op, register_vmap
        >>> @custom_op("doc_vmap::twice", mutates_args=())
        ... def twice(x: clew.Tensor) -> clew.Tensor:
        ...     return clew.from_numpy(2 * x.detach().numpy())
        >>> @register_vmap("doc_vmap::twice")
        ... def _(info, in_dims, x):
        ...     return twice(x), in_dims[0]
        >>> clew.vmap(twice)(clew.ones(2, 1))
        tensor([[2.],
                [2.]])
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        _find(op)._vmap = fn
        return fn

    return register if func is None else register(func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Makes an operation convert its floating-point inputs where autocast is on.

    Args:
        op: the operation, or its name "namespace::name".
        device_type: "cpu"; other devices do nothing here.
        cast_inputs: the dtype; float64 inputs stay as they are.
        lib: not used.

    Raises:
        RuntimeError: if there is no such operation.

    Example:
        >>> from clew.library import define, impl, register_autocast
        >>> define("doc_autocast::same", "(Tensor x) -> Tensor")
        >>> impl("doc_autocast::same", "cpu", lambda x: x.clone())
        >>> register_autocast("doc_autocast::same", "cpu", clew.bfloat16)
        >>> with clew.autocast("cpu"):
        ...     clew.ops.doc_autocast.same(clew.ones(1)).dtype
        clew.bfloat16
    """
    if device_type == "cpu":
        _find(op)._autocast = cast_inputs


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Any = None, /, **kwargs: Any
) -> Any:
    """Raises NotImplementedError: classes and modes cannot have rules for single operations here.

    It returns nothing.

    Args:
        op: the operation.
        torch_dispatch_class: the class or mode.
        func: the rule.
        kwargs: not used.

    Example:
        >>> from clew.library import register_torch_dispatch
        >>> register_torch_dispatch("doc::twice", clew.Tensor, lambda *args: None)
        Traceback (most recent call last):
        NotImplementedError: register_torch_dispatch: dispatch modes are not supported
    """
    raise NotImplementedError("register_torch_dispatch: dispatch modes are not supported")


def fallthrough_kernel(*args: Any, **kwargs: Any) -> Any:
    """Stands for "no kernel here" when it is given to `Library.impl`; calling it raises.

    Raises:
        NotImplementedError: always.

    Example:
        >>> from clew.library import Library, fallthrough_kernel, impl
        >>> lib = Library("doc_fallthrough", "DEF")
        >>> _ = lib.define("twice(Tensor x) -> Tensor")
        >>> lib.impl("twice", fallthrough_kernel, "Autograd")
        >>> impl("doc_fallthrough::twice", "cpu", lambda x: 2 * x)
        >>> clew.ops.doc_fallthrough.twice(clew.ones(1))
        tensor([2.])
    """
    raise NotImplementedError("fallthrough_kernel is a mark and cannot be called")


def get_kernel(op: Any, dispatch_key: Any) -> Any:
    """The kernel of an operation for a kind of devices.

    Args:
        op: the operation, or its name "namespace::name".
        dispatch_key: "CPU", or what else it was registered for.

    Raises:
        RuntimeError: if there is no such operation, or it has no such kernel.

    Example:
        >>> from clew.library import define, get_kernel, impl
        >>> define("doc_get_kernel::twice", "(Tensor x) -> Tensor")
        >>> impl("doc_get_kernel::twice", "cpu", lambda x: 2 * x)
        >>> get_kernel("doc_get_kernel::twice", "CPU")(clew.ones(1))
        tensor([2.])
    """
    operation, key = _find(op), str(dispatch_key).rpartition(".")[2].upper()
    ours = key in ("CPU", "COMPOSITEIMPLICITAUTOGRAD", "COMPOSITEEXPLICITAUTOGRAD")
    found = operation._kernel if ours else operation._elsewhere.get(key)
    if found is None:
        raise RuntimeError(f"library: no kernel for {dispatch_key} for {operation._qualname}")
    return found
