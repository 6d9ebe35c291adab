"""Which arguments of a module's constructor are those of its tensors."""

from __future__ import annotations

from typing import Any


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments device, dtype and memory_format among others'.

    Args:
        kwargs: they stand in it, or in a dict "factory_kwargs" in it; nothing else may.

    Raises:
        TypeError: there is another name, or one stands in both.
    """
    if kwargs is None:
        return {}
    known = {"device", "dtype", "memory_format"}
    if rest := set(kwargs) - known - {"factory_kwargs"}:
        raise TypeError(f"unexpected kwargs {rest}")
    given = dict(kwargs.get("factory_kwargs", {}))
    for name in known & set(kwargs):
        if name in given:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        given[name] = kwargs[name]
    return given
