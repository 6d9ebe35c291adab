"""Handles that take a registered hook away again."""

from __future__ import annotations

import warnings
import weakref
from typing import Any, TypeVar

from clew._base.provenance import user_level

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

_F = TypeVar("_F")


class RemovableHandle:
    """Removes one hook from the table it was put into.

    Args:
        hooks_dict: the table (an ordered mapping from number to hook) that the hook goes into.
        extra_dict: a table, or a list of them, with the same keys, emptied together with it.

    Example:
        >>> from clew.utils.hooks import RemovableHandle
        >>> from collections import OrderedDict
        >>> table = OrderedDict()
        >>> handle = RemovableHandle(table)
        >>> table[handle.id] = print
        >>> handle.remove()
        >>> len(table)
        0
    """

    next_id: int = 0
    id: int

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        if extra_dict is None:
            tables: tuple[Any, ...] = ()
        elif isinstance(extra_dict, list):
            tables = tuple(extra_dict)
        else:
            tables = (extra_dict,)
        self.extra_dict_ref = tuple(weakref.ref(table) for table in tables)

    def remove(self) -> None:
        """Takes the hook away; a second call does nothing."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            table = ref()
            if table is not None:
                table.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        from collections import OrderedDict

        def refer(table: Any) -> Any:
            return weakref.ref(OrderedDict() if table is None else table)

        self.hooks_dict_ref = refer(state[0])
        self.id = state[1]
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
        self.extra_dict_ref = tuple(refer(table) for table in (state[2] if len(state) > 2 else ()))

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def unserializable_hook(f: _F) -> _F:
    """Marks a hook of a tensor: pickles leave it out without a warning.

    Args:
        f: the hook.

    Returns:
        the hook itself.

    Example:
        >>> @clew.utils.hooks.unserializable_hook
        ... def double(grad):
        ...     return 2 * grad
    """
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warns of each of the tensor's hooks that a pickle of it leaves out.

    Args:
        tensor: the tensor.

    Example:
        >>> x = clew.ones(2, requires_grad=True)
        >>> clew.utils.hooks.warn_if_has_hooks(x)
    """
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized; if this is expected, "
                "decorate it with @clew.utils.hooks.unserializable_hook",
                UserWarning,
                stacklevel=user_level(),
            )
