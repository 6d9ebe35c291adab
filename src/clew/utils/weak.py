"""Tables whose keys are told by identity and not kept alive."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any
from weakref import ref as WeakRef

__all__ = [
    "TensorWeakRef",
    "WeakIdKeyDictionary",
    "WeakIdRef",
    "WeakRef",
    "WeakTensorKeyDictionary",
]


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to others of the same object, by identity.

    Args:
        key: the object.
        callback: called with the reference when the object is gone.

    Example:
        >>> from clew.utils.weak import WeakIdRef
        >>> x = clew.ones(2)
        >>> WeakIdRef(x) == WeakIdRef(x), WeakIdRef(x) == WeakIdRef(clew.ones(2))
        (True, False)
    """

    __slots__ = ["_id"]

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine = self()
        theirs = other() if isinstance(other, WeakIdRef) else None
        return self is other if mine is None or theirs is None else mine is theirs


class WeakIdKeyDictionary(MutableMapping):
    """A dict whose keys are told by identity; an entry goes when its key does.

    Args:
        dict: the first entries.
        ref_type: accepted.

    Example:
        >>> from clew.utils.weak import WeakIdKeyDictionary
        >>> table = WeakIdKeyDictionary()
        >>> x = clew.ones(2)
        >>> table[x] = "a"
        >>> table[x], len(table)
        ('a', 1)
    """

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.data: Any = {}
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[WeakIdRef(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[WeakIdRef(key, lambda gone: self.data.pop(gone, None))] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[WeakIdRef(key)]

    def __contains__(self, key: object) -> bool:
        return WeakIdRef(key) in self.data

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor; calling it gives the tensor, or None when that is gone.

    Args:
        tensor: the tensor.

    Example:
        >>> from clew.utils.weak import TensorWeakRef
        >>> x = clew.ones(2)
        >>> reference = TensorWeakRef(x)
        >>> reference() is x
        True
        >>> del x
        >>> reference() is None
        True
    """

    def __init__(self, tensor: Any) -> None:
        self.ref = WeakIdRef(tensor)

    def __call__(self) -> Any:
        return self.ref()
