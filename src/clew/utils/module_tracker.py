"""Which module's forward or backward is running."""

from __future__ import annotations

from typing import Any

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Within it, `parents` holds the names of the modules whose forward is running.

    Example:
        >>> from clew.utils.module_tracker import ModuleTracker
        >>> class Asks(nn.Module):
        ...     def forward(self, x):
        ...         print(sorted(tracker.parents))
        ...         return x
        >>> with ModuleTracker() as tracker:
        ...     _ = Asks()(clew.ones(1))
        ['Asks', 'Global']
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._names: dict[int, str] = {}
        self._handles: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Whether backward is running."""
        return False

    def _name(self, module: Any) -> str:
        known = self._names.get(id(module))
        if known is None:
            kind = type(module).__name__
            for path, part in module.named_modules():
                self._names[id(part)] = f"{kind}.{path}" if path else kind
            known = self._names[id(module)]
        return known

    def __enter__(self) -> ModuleTracker:
        from clew.nn.modules import module as home

        self._handles = [
            home.register_module_forward_pre_hook(lambda m, args: self.parents.add(self._name(m))),
            home.register_module_forward_hook(
                lambda m, args, out: self.parents.discard(self._name(m)), always_call=True
            ),
        ]
        return self

    def __exit__(self, *exc: Any) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
