"""Lists and dicts of a step's arguments, which change only as a whole: assign `node.args`."""

from __future__ import annotations

from typing import Any, NoReturn

from clew.utils import _pytree

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises: these collections do not change."""
    raise NotImplementedError(
        f"'{type(self).__name__}' object does not support mutation; assign new args to the node"
    )


class immutable_list(list):
    """A list that does not change, as a step's arguments have it.

    Example:
        >>> from clew.fx.immutable_collections import immutable_list
        >>> numbers = immutable_list([1, 2])
        >>> numbers.append(3)
        Traceback (most recent call last):
        NotImplementedError: 'immutable_list' object does not support mutation; ...
    """

    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(self),)


class immutable_dict(dict):
    """A dict that does not change, as a step's arguments have it.

    Example:
        >>> from clew.fx.immutable_collections import immutable_dict
        >>> options = immutable_dict(dim=1)
        >>> options["dim"] = 2
        Traceback (most recent call last):
        NotImplementedError: 'immutable_dict' object does not support mutation; ...
    """

    clear = pop = popitem = setdefault = update = _refuse
    __delitem__ = __ior__ = __setitem__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (dict(self),)


_pytree.register_pytree_node(
    immutable_list,
    lambda value: (list(value), None),
    lambda children, _: immutable_list(children),
    flatten_with_keys_fn=_pytree._sequence_with_keys,
)
_pytree.register_pytree_node(
    immutable_dict,
    lambda value: (list(value.values()), list(value)),
    lambda children, keys: immutable_dict(zip(keys, children)),
    flatten_with_keys_fn=_pytree._mapping_with_keys,
)
