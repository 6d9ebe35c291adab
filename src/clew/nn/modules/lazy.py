"""Lazy modules: shapes of parameters come from the first input."""

from __future__ import annotations

from typing import Any

from ..parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Mixed in before a module class: parameters stay uninitialised until the first call.

    Example:
        >>> from clew.nn.modules.lazy import LazyModuleMixin
        >>> layer = nn.LazyLinear(2)
        >>> isinstance(layer, LazyModuleMixin), layer.has_uninitialized_params()
        (True, True)
        >>> _ = layer(clew.ones(1, 3))
        >>> layer.weight.shape
        clew.Size([2, 3])
    """

    cls_to_become: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        me: Any = self
        # Held weakly or by name: a bound method in the module's own tables would make a cycle.
        me._initialize_hook = me.register_forward_pre_hook(_infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives the parameters their shapes.

        Args:
            args: the first call's arguments.
            kwargs: the first call's named arguments.
        """
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer still waits for its shape."""
        me: Any = self
        return any(
            is_lazy(t) for t in [*me._parameters.values(), *me._buffers.values()] if t is not None
        )

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        me: Any = self
        for name, param in me._parameters.items():
            if param is not None:
                destination[prefix + name] = (
                    param if is_lazy(param) or keep_vars else param.detach()
                )
        for name, buf in me._buffers.items():
            if buf is not None and name not in me._non_persistent_buffers_set:
                destination[prefix + name] = buf if is_lazy(buf) or keep_vars else buf.detach()

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        me: Any = self
        import clew

        # A lazy value that is loaded into a lazy place stays lazy; a shaped one gives the shape.
        for table in (me._parameters, me._buffers):
            for name, own in table.items():
                given = state_dict.get(prefix + name)
                if own is None or given is None:
                    continue
                if is_lazy(own) and not is_lazy(given):
                    with clew.no_grad():
                        own.materialize(given.shape)
        skipped = {}
        for name in [*me._parameters, *me._buffers]:
            given = state_dict.get(prefix + name)
            if given is not None and is_lazy(given):
                skipped[prefix + name] = given
        kept = {k: v for k, v in state_dict.items() if k not in skipped}
        super()._load_from_state_dict(  # type: ignore[misc]
            kept, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
        for key in skipped:
            if key in missing_keys:
                missing_keys.remove(key)


def _infer_parameters(module: Any, args: Any, kwargs: Any) -> None:
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(
            f"module {module._get_name()} has not been fully initialized by its first call"
        )
    module._initialize_hook.remove()
    del module._initialize_hook
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become
