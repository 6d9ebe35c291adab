"""Which classes are containers, how they are taken apart and put together; for `_pytree`."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

from clew import _C
from clew._C import Size


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The way from a sequence to an item."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, parent: Any) -> Any:
        """The item of a sequence."""
        return parent[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """The way from a mapping to a value."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, parent: Any) -> Any:
        """The value of a mapping."""
        return parent[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The way from an object to an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, parent: Any) -> Any:
        """The attribute of an object."""
        return getattr(parent, self.name)


KeyEntry = Any
KeyPath = tuple[Any, ...]


class NodeDef(NamedTuple):
    """How a class is taken apart and put together."""

    type: type
    flatten_fn: Callable[[Any], tuple[Any, Any]]
    unflatten_fn: Callable[[Any, Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None


for _class in (SequenceKey, MappingKey, GetAttrKey, NodeDef):
    _class.__module__ = "clew.utils._pytree"  # where pickles find them


# kind: (to children and context, from children and context)
_Kind = tuple[Callable[[Any], tuple[list[Any], Any]], Callable[[list[Any], Any], Any]]
_kinds: dict[type, _Kind] = {
    tuple: (lambda t: (list(t), None), lambda c, _: tuple(c)),
    list: (lambda t: (list(t), None), lambda c, _: list(c)),
    dict: (lambda t: (list(t.values()), list(t)), lambda c, keys: dict(zip(keys, c))),
    OrderedDict: (
        lambda t: (list(t.values()), list(t)),
        lambda c, keys: OrderedDict(zip(keys, c)),
    ),
    defaultdict: (
        lambda t: (list(t.values()), (t.default_factory, list(t))),
        lambda c, how: defaultdict(how[0], zip(how[1], c)),
    ),
    deque: (lambda t: (list(t), t.maxlen), lambda c, maxlen: deque(c, maxlen)),
    Size: (lambda t: (list(t), None), lambda c, _: tuple(c)),  # whose parts may be no numbers
}


def _sequence_with_keys(t: Any) -> Any:
    return [(SequenceKey(i), item) for i, item in enumerate(t)], None


def _mapping_with_keys(t: Any) -> Any:
    return [(MappingKey(key), value) for key, value in t.items()], list(t)


# All classes that are containers; the function transforms read _kinds alone.
SUPPORTED_NODES: dict[type, NodeDef] = {
    kind: NodeDef(
        kind,
        *how,
        _mapping_with_keys if issubclass(kind, dict) else _sequence_with_keys,
    )
    for kind, how in _kinds.items()
}
_serialized: dict[str, tuple[type, Any, Any]] = {
    "builtins.tuple": (tuple, None, None),
    "builtins.list": (list, None, None),
    "builtins.dict": (dict, None, None),
    "collections.OrderedDict": (OrderedDict, None, None),
    "torch.Size": (Size, None, None),
}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Any, Any]],
    unflatten_fn: Callable[[Any, Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Makes a class a container that transforms look into.

    Args:
        cls: the class.
        flatten_fn: an instance to (children, context).
        unflatten_fn: (children, context) to an instance.
        serialized_type_name: what `treespec_dumps` calls the class.
        to_dumpable_context: a context to what JSON holds.
        from_dumpable_context: and back.
        flatten_with_keys_fn: an instance to ((key, child) pairs, context); without it leaves of
            the class have no paths.

    Raises:
        ValueError: the class is registered already.
    """
    if cls in _kinds:
        raise ValueError(f"{cls} is already registered as pytree node")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"register_pytree_node: {cls} needs both to_dumpable_context and "
            "from_dumpable_context, or neither"
        )
    _kinds[cls] = (lambda t: (lambda c: (list(c[0]), c[1]))(flatten_fn(t)), unflatten_fn)
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    if serialized_type_name is not None:
        _serialized[serialized_type_name] = (cls, to_dumpable_context, from_dumpable_context)


def _deregister_pytree_node(cls: type) -> None:
    del _kinds[cls], SUPPORTED_NODES[cls]


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Makes a dataclass a container of its fields.

    Args:
        cls: the class.
        field_names: its fields; all that `__init__` takes if None.
        drop_field_names: fields that are left to their defaults.
        serialized_type_name: what `treespec_dumps` calls the class.
    """
    dropped = set(drop_field_names or ())
    if field_names is None:
        if not dataclasses.is_dataclass(cls):
            raise ValueError(f"register_dataclass: {cls} is not a dataclass; give field_names")
        field_names = [f.name for f in dataclasses.fields(cls) if f.init]
    names = [name for name in field_names if name not in dropped]

    def flatten(value: Any) -> Any:
        present = [n for n in names if getattr(value, n) is not None]
        absent = [n for n in names if getattr(value, n) is None]
        return [getattr(value, n) for n in present], [present, absent]

    def unflatten(children: Any, context: Any) -> Any:
        return cls(**dict(zip(context[0], children)), **dict.fromkeys(context[1]))

    def flatten_with_keys(value: Any) -> Any:
        children, context = flatten(value)
        return [(GetAttrKey(n), c) for n, c in zip(context[0], children)], context

    register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


def register_constant(cls: type) -> None:
    """Makes objects of a class part of the structure: containers without leaves."""
    register_pytree_node(
        cls,
        lambda value: ([], value),
        lambda _, value: value,
        flatten_with_keys_fn=lambda v: ([], v),
    )


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class is made by namedtuple."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_namedtuple(obj: Any) -> bool:
    """Whether an object is a named tuple, or a class of such."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def _is_namedtuple(x: Any) -> bool:
    return isinstance(x, tuple) and hasattr(type(x), "_fields")


def _one_level(tree: Any) -> tuple[type, list[Any], Any] | None:
    """Kind, children and context of a container; None of a leaf."""
    kind = type(tree)
    if kind in _kinds:
        return (kind, *_kinds[kind][0](tree))
    if _is_namedtuple(tree):
        return tuple, list(tree), kind
    if isinstance(tree, tuple) and kind in vars(_C).get("_return_types", {}).values():
        # What the core's functions return: a class is made by the function's first result.
        register_pytree_node(
            kind,
            lambda t: (list(t), None),
            lambda children, _: kind(children),
            flatten_with_keys_fn=_sequence_with_keys,
        )
        return kind, list(tree), None
    return None
