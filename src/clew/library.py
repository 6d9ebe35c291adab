"""Operations that a program adds: called by name, differentiated, run under vmap.

An operation has a schema such as `scale(Tensor x, float by=1.0) -> Tensor`, a kernel, and perhaps a
gradient rule and a rule for batches. `clew.ops.<namespace>.<name>` calls it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from clew._ops.opcheck import OpCheckError as OpCheckError
from clew._ops.opcheck import get_ctx, opcheck
from clew._ops.schema import Schema as _Schema
from clew._ops.schema import infer_schema
from clew._registered import _registry
from clew._registering import (
    Library,
    _define,
    _full_name,
    define,
    fallthrough_kernel,
    get_kernel,
    impl,
    impl_abstract,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
    register_vmap,
)

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]


class CustomOpDef:
    """A function that is an operation; `custom_op` makes it.

    Args:
        namespace: the operation's namespace.
        name: its name in there.
        schema: its parameters and results, such as "(Tensor x) -> Tensor".
        fn: its kernel.

    Example:
        >>> from clew.library import CustomOpDef
        >>> twice = CustomOpDef("doc_def", "twice", "(Tensor x) -> Tensor", lambda x: 2 * x)
        >>> twice(clew.ones(1)), clew.ops.doc_def.twice(clew.ones(1))
        (tensor([2.]), tensor([2.]))
    """

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable[..., Any]) -> None:
        self._namespace, self._name = namespace, name
        self._qualname = f"{namespace}::{name}"
        self._init_fn = fn
        _registry.pop(self._qualname, None)
        self._opoverload = _define(self._qualname, _Schema(name + schema, namespace))
        self._opoverload._kernel = fn
        self._opoverload._strict = True
        functools.update_wrapper(self, fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """Another kernel for kinds of devices, as `register_kernel` gives it.

        Args:
            device_types: as of `impl`; None for all.
            fn: the kernel; without it this is a decorator.
        """
        return register_kernel(self._qualname, device_types, fn)

    def register_fake(self, fn: Any, /) -> Any:
        """The rule for tensors without data, as `register_fake` gives it.

        Args:
            fn: the rule.
        """
        return register_fake(self._qualname, fn)

    def register_autograd(self, backward: Any, /, *, setup_context: Any = None) -> None:
        """Gives the operation its gradient rule, like `register_autograd`.

        Args:
            backward: backward(ctx, *gradients).
            setup_context: setup_context(ctx, inputs, output).
        """
        register_autograd(self._qualname, backward, setup_context=setup_context)

    def register_vmap(self, func: Any = None) -> Any:
        """The rule for batches, as `register_vmap` gives it.

        Args:
            func: the rule; without it this is a decorator.
        """
        return register_vmap(self._qualname, func)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Makes the operation convert its inputs where autocast is on, like `register_autocast`.

        Args:
            device_type: "cpu"; other devices do nothing here.
            cast_inputs: the dtype.
        """
        register_autocast(self._qualname, device_type, cast_inputs)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Any:
        """Raises: there is one kernel."""
        raise NotImplementedError("set_kernel_enabled: there is one kernel only")
        yield


def custom_op(
    name: str,
    fn: Any = None,
    /,
    *,
    mutates_args: Any,
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Makes a function an operation; a decorator without fn.

    Args:
        name: "namespace::name".
        fn: the function, whose annotations say the schema.
        mutates_args: the names of the parameters that it writes to, or "unknown".
        device_types: the kind of devices, or several, that the function is for; None for all. One
            that is not for "cpu" waits for a kernel that is (`register_kernel`).
        schema: the schema, in place of annotations.
        tags: kept with the operation.

    Example:
        >>> from clew.library import custom_op
        >>> @custom_op("doc_op::half", mutates_args=())
        ... def half(x: clew.Tensor) -> clew.Tensor:
        ...     return clew.from_numpy(x.detach().numpy() / 2)
        >>> half.register_autograd(lambda ctx, grad: grad / 2)
        >>> x = clew.ones(1, requires_grad=True)
        >>> half(x).backward()
        >>> x.grad
        tensor([0.5000])
    """
    space, _, short = _full_name(name).partition("::")

    def make(function: Callable[..., Any]) -> CustomOpDef:
        text = schema or infer_schema(function, mutates_args=mutates_args)
        made = CustomOpDef(space, short, text, function)
        if tags is not None:
            made._opoverload.tags = tags
        kinds = [device_types] if isinstance(device_types, str) else device_types
        if kinds is not None and "cpu" not in kinds:
            made._opoverload._kernel = None
            made._opoverload._elsewhere = {kind.upper(): function for kind in kinds}
        return made

    return make if fn is None else make(fn)


def triton_op(name: str, fn: Any = None, /, *, mutates_args: Any, schema: Any = None) -> Any:
    """Makes a function an operation, as `custom_op` does; Triton's own kernels need a GPU.

    Args:
        name: "namespace::name".
        fn: the function; without it this is a decorator.
        mutates_args: the names of the parameters that it writes to, or "unknown".
        schema: the schema, in place of annotations.

    Returns:
        A CustomOpDef, or a decorator.

    Example:
        >>> from clew.library import triton_op
        >>> @triton_op("doc_triton::twice", mutates_args=())
        ... def twice(x: clew.Tensor) -> clew.Tensor:
        ...     return 2 * x
        >>> twice(clew.ones(1))
        tensor([2.])
    """
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Any, /) -> Any:
    """Raises NotImplementedError: kernels in Triton's language need a GPU.

    Example:
        >>> from clew.library import wrap_triton
        >>> wrap_triton(None)
        Traceback (most recent call last):
        NotImplementedError: wrap_triton: Triton's kernels need a GPU
    """
    raise NotImplementedError("wrap_triton: Triton's kernels need a GPU")
