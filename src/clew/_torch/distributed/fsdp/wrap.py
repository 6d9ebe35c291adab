"""Which modules of a model `FullyShardedDataParallel` spreads by themselves."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from clew import nn

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Every module."""
    return True


def lambda_auto_wrap_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Any], bool]
) -> bool:
    """Those modules that a function says.

    Args:
        module: a module.
        recurse: the question is whether to look into it.
        nonwrapped_numel: how many elements no inner module has taken.
        lambda_fn: the function.
    """
    return recurse or bool(lambda_fn(module))


def _module_wrap_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, module_classes: Iterable[type]
) -> bool:
    """Those of given classes."""
    return recurse or isinstance(module, tuple(module_classes))


def transformer_auto_wrap_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Iterable[type]
) -> bool:
    """The layers of a transformer.

    Args:
        module: a module.
        recurse: the question is whether to look into it.
        nonwrapped_numel: how many elements no inner module has taken.
        transformer_layer_cls: the layers' classes.
    """
    return _module_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls)


def _or_policy(module: Any, recurse: bool, nonwrapped_numel: int, policies: Iterable[Any]) -> bool:
    """Those that one of several policies says."""
    return any(
        p(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for p in policies
    )


class ModuleWrapPolicy:
    """Those of given classes.

    Args:
        module_classes: the classes.
    """

    def __init__(self, module_classes: Iterable[type]) -> None:
        self._module_classes = set(module_classes)

    def __call__(self, module: Any, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return _module_wrap_policy(module, recurse, 0, self._module_classes)

    def __repr__(self) -> str:
        return f"ModuleWrapPolicy({self._module_classes})"


class CustomPolicy:
    """Those that a function says, with options of their own.

    Args:
        lambda_fn: gives False, True, or a dict of FullyShardedDataParallel's arguments.
    """

    def __init__(self, lambda_fn: Callable[[Any], Any]) -> None:
        self._lambda_fn = lambda_fn

    def __call__(self, module: Any, recurse: bool, *args: Any, **kwargs: Any) -> Any:
        return True if recurse else self._lambda_fn(module)


_LEAVES = {nn.MultiheadAttention}
_LISTS = {nn.ModuleList, nn.ModuleDict}


def size_based_auto_wrap_policy(
    module: Any,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: Any = None,
    exclude_wrap_modules: Any = None,
) -> bool:
    """Those that have enough elements beyond what inner ones took.

    Args:
        module: a module.
        recurse: the question is whether to look into it.
        nonwrapped_numel: how many elements no inner module has taken.
        min_num_params: how many are enough.
        force_leaf_modules: classes that are not looked into; MultiheadAttention if None.
        exclude_wrap_modules: classes that are not spread by themselves; ModuleList and ModuleDict
            if None.
    """
    leaves = _LEAVES if force_leaf_modules is None else force_leaf_modules
    excluded = _LISTS if exclude_wrap_modules is None else exclude_wrap_modules
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, tuple(leaves))
    return large and not isinstance(module, tuple(excluded))


vars(size_based_auto_wrap_policy).update(FORCE_LEAF_MODULES=_LEAVES, EXCLUDE_WRAP_MODULES=_LISTS)


_enabled: list[tuple[Any, dict[str, Any]]] = []


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """A block in which `wrap` does something.

    Args:
        wrapper_cls: what modules are put into.
        wrapper_kwargs: its arguments.
    """
    _enabled.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _enabled.pop()


def wrap(module: Any, **wrap_overrides: Any) -> Any:
    """The module, inside of `enable_wrap` put into the class that it names.

    Args:
        module: the module.
        wrap_overrides: arguments instead of `enable_wrap`'s.
    """
    if not _enabled:
        return module
    kind, options = _enabled[-1]
    return kind(module, **{**options, **wrap_overrides})


def _wrap(module: Any, wrapper_cls: Any, **kwargs: Any) -> Any:
    return wrapper_cls(module, **kwargs)


def wrap_children(module: Any, policy: Any, put: Callable[..., Any], left: set[int]) -> int:
    """Puts those modules within a module that a policy says into a wrapper.

    Args:
        module: the module, which stays as it is.
        policy: says which; called with module, recurse and nonwrapped_numel.
        put: makes the wrapper of a module and options.
        left: ids of modules that are left alone.

    Returns:
        how many elements of parameters they have.
    """
    taken = 0
    for name, child in module.named_children():
        if id(child) in left or hasattr(child, "_fsdp_wrapped_module"):
            continue
        size = sum(p.numel() for p in child.parameters())
        ask = functools.partial(policy, module=child)
        if not ask(recurse=True, nonwrapped_numel=size):
            continue
        inner = wrap_children(child, policy, put, left)
        answer = ask(recurse=False, nonwrapped_numel=size - inner)
        if answer:
            setattr(module, name, put(child, **(answer if isinstance(answer, dict) else {})))
            inner = size
        taken += inner
    return taken
