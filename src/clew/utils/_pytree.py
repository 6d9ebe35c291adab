"""Nested containers as flat lists and back, with the paths of leaves; PyTorch's names for it."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from clew import _C
from clew._C import Size

__all__ = [
    "Context",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "LeafSpec",
    "MappingKey",
    "NodeDef",
    "PyTree",
    "SequenceKey",
    "TreeSpec",
    "key_get",
    "keystr",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_leaf",
    "treespec_loads",
    "treespec_pprint",
]

PyTree = Any
Context = Any


@dataclasses.dataclass(frozen=True, repr=False)
class TreeSpec:
    """The structure of a nested container: its kind, what it needs to be remade, its children.

    A leaf has kind None.
    """

    type: Any
    context: Any
    children_specs: tuple[TreeSpec, ...]

    @property
    def num_leaves(self) -> int:
        """How many leaves the structure holds."""
        if self.type is None:
            return 1
        return sum(child.num_leaves for child in self.children_specs)

    @property
    def num_nodes(self) -> int:
        """How many containers and leaves the structure holds."""
        return 1 + sum(child.num_nodes for child in self.children_specs)

    @property
    def num_children(self) -> int:
        """How many children the outermost container has."""
        return len(self.children_specs)

    def is_leaf(self) -> bool:
        """Whether the structure is a single leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The structures of the children."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """The structure of one child."""
        return self.children_specs[index]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The container of this structure with these leaves."""
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """What a container, built like this structure at least down to its leaves, has there."""
        found: list[Any] = []
        self._flatten_up_to(tree, found)
        return found

    def _flatten_up_to(self, tree: Any, found: list[Any]) -> None:
        if self.type is None:
            found.append(tree)
            return
        parts = _one_level(tree)
        if parts is None or parts[0] is not self.type or len(parts[1]) != len(self.children_specs):
            raise ValueError(f"flatten_up_to: expected {self}; got {type(tree).__name__}")
        children = parts[1]
        if self.type in (dict, OrderedDict) and parts[2] != self.context:
            if set(parts[2]) != set(self.context):
                raise ValueError(f"flatten_up_to: expected the keys {self.context}; got {parts[2]}")
            children = [tree[key] for key in self.context]
        for spec, child in zip(self.children_specs, children):
            spec._flatten_up_to(child, found)

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        inner = ", ".join(map(repr, self.children_specs))
        return f"TreeSpec({self.type.__name__}, {self.context}, [{inner}])"


class LeafSpec(TreeSpec):
    """The structure of a single leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, ())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and other.type is None

    def __hash__(self) -> int:
        return hash(LeafSpec)

    def __reduce__(self) -> Any:
        return LeafSpec, ()


LEAF = LeafSpec()


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


def _register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Any, Any]],
    unflatten_fn: Callable[[Any, Any], Any],
    **kwargs: Any,
) -> None:
    if cls not in _kinds:
        register_pytree_node(cls, flatten_fn, unflatten_fn, **kwargs)


_private_register_pytree_node = _register_pytree_node


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


_is_namedtuple_instance = is_namedtuple_instance = is_namedtuple


def _is_namedtuple(x: Any) -> bool:
    return isinstance(x, tuple) and hasattr(type(x), "_fields")


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """The leaves of a nested container, and its structure.

    >>> from clew.utils import _pytree
    >>> leaves, spec = _pytree.tree_flatten({"a": 1, "b": (2, 3)})
    >>> leaves
    [1, 2, 3]
    >>> _pytree.tree_unflatten(leaves, spec)
    {'a': 1, 'b': (2, 3)}
    """
    parts = None if is_leaf is not None and is_leaf(tree) else _one_level(tree)
    if parts is None:
        return [tree], LEAF
    kind, children, context = parts
    leaves: list[Any] = []
    specs = []
    for child in children:
        found, spec = tree_flatten(child, is_leaf)
        leaves += found
        specs.append(spec)
    return leaves, TreeSpec(kind, context, tuple(specs))


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


def tree_unflatten(leaves: Any, treespec: TreeSpec) -> Any:
    """The container of that structure with these leaves."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten: the structure has {treespec.num_leaves} leaves; got {len(leaves)}"
        )
    return _build(iter(leaves), treespec)


def _build(leaves: Any, spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    children = [_build(leaves, child) for child in spec.children_specs]
    if spec.type is tuple and spec.context is not None:
        return spec.context(*children)
    return _kinds[spec.type][1](children, spec.context)


def tree_map(
    func: Callable[..., Any],
    tree: Any,
    *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """The container with func applied to every leaf (and the leaves of others built alike)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_flatten(r, is_leaf)[0] for r in rests]
    return tree_unflatten([func(*xs) for xs in zip(leaves, *others)], spec)


def tree_map_(
    func: Callable[..., Any],
    tree: Any,
    *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Calls func with every leaf (and the leaves of others built alike); gives the container."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(r) for r in rests]
    for xs in zip(leaves, *others):
        func(*xs)
    return tree


def map_only(kinds: Any, /) -> Callable[..., Any]:
    """A decorator: the function is applied to leaves of these kinds, others stay.

    Args:
        kinds: a type, a tuple of types, or a test of a leaf.
    """

    def only(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda leaf: func(leaf) if _is_of(leaf, kinds) else leaf

    return only


def _is_of(leaf: Any, kinds: Any) -> bool:
    if callable(kinds) and not isinstance(kinds, type):
        return kinds(leaf)
    return isinstance(leaf, kinds)


def tree_map_only(
    type_or_types_or_pred: Any,
    func: Callable[[Any], Any],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """The container with func applied to the leaves of a kind."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any,
    func: Callable[[Any], Any],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Calls func with the leaves of a kind; gives the container."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterator[Any]:
    """The leaves, one after the other."""
    yield from tree_flatten(tree, is_leaf)[0]


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether something is no container."""
    return (is_leaf is not None and is_leaf(tree)) or _one_level(tree) is None


_is_leaf = tree_is_leaf


def tree_all(pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """Whether a test holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """Whether a test holds for some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(kinds: Any, pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """Whether a test holds for all leaves of a kind."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, kinds))


def tree_any_only(kinds: Any, pred: Any, tree: Any, is_leaf: Any = None) -> bool:
    """Whether a test holds for some leaf of a kind."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, kinds))


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves of a nested container with the way to each, and the structure.

    >>> from clew.utils import _pytree
    >>> for path, leaf in _pytree.tree_flatten_with_path({"a": [1, 2]})[0]:
    ...     print(_pytree.keystr(path), leaf)
    ['a'][0] 1
    ['a'][1] 2
    """
    found: list[tuple[KeyPath, Any]] = []
    _walk(tree, (), is_leaf, found)
    return found, tree_flatten(tree, is_leaf)[1]


def _walk(tree: Any, path: KeyPath, is_leaf: Any, found: list[Any]) -> None:
    if (is_leaf is not None and is_leaf(tree)) or _one_level(tree) is None:
        found.append((path, tree))
        return
    node = SUPPORTED_NODES.get(type(tree))
    if node is None:  # a named tuple
        pairs = [(GetAttrKey(name), child) for name, child in zip(type(tree)._fields, tree)]
    elif node.flatten_with_keys_fn is None:
        raise ValueError(
            f"tree_flatten_with_path: {type(tree)} was registered without flatten_with_keys_fn"
        )
    else:
        pairs = node.flatten_with_keys_fn(tree)[0]
    for key, child in pairs:
        _walk(child, (*path, key), is_leaf, found)


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[tuple[KeyPath, Any]]:
    """The leaves of a nested container with the way to each."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(
    func: Callable[..., Any],
    tree: Any,
    *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """The container with func(path, leaf, ...) in place of every leaf."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(r) for r in rests]
    return spec.unflatten(func(*pair, *xs) for pair, *xs in zip(pairs, *others))


def keystr(kp: KeyPath) -> str:
    """A path as Python would write it behind the container's name."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What lies at the end of a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def treespec_leaf() -> TreeSpec:
    """The structure of a leaf."""
    return LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = ()) -> TreeSpec:
    """The structure of a tuple of structures."""
    return TreeSpec(tuple, None, tuple(iterable))


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The structure of a dict of structures."""
    found = dict(mapping, **kwargs)
    return TreeSpec(dict, list(found), tuple(found.values()))


def treespec_pprint(treespec: TreeSpec) -> str:
    """The structure as text."""
    return repr(treespec)


def _dumped(spec: TreeSpec) -> Any:
    if spec.type is None:
        return {"type": None}
    for name, (kind, dump, _) in _serialized.items():
        if kind is spec.type and not (kind is tuple and spec.context is not None):
            context = spec.context if dump is None else dump(spec.context)
            children = [_dumped(child) for child in spec.children_specs]
            return {"type": name, "context": context, "children_spec": children}
    raise NotImplementedError(
        f"treespec_dumps: {spec.type} has no serialized_type_name; give one when registering it"
    )


def _loaded(data: Any) -> TreeSpec:
    if data["type"] is None:
        return LEAF
    if data["type"] not in _serialized:
        raise NotImplementedError(f"treespec_loads: no class is registered as {data['type']!r}")
    kind, _, load = _serialized[data["type"]]
    context = data["context"] if load is None else load(data["context"])
    return TreeSpec(kind, context, tuple(map(_loaded, data["children_spec"])))


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as JSON."""
    import json

    if protocol not in (None, 1):
        raise ValueError(f"treespec_dumps: protocol must be 1; got {protocol}")
    return json.dumps([1, _dumped(treespec)])


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that `treespec_dumps` wrote."""
    import json

    protocol, data = json.loads(serialized)
    if protocol != 1:
        raise ValueError(f"treespec_loads: protocol must be 1; got {protocol}")
    return _loaded(data)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a nested container."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The structure of a nested container."""
    return tree_flatten(tree, is_leaf)[1]


def broadcast_prefix(prefix: Any, spec: TreeSpec) -> list[Any] | None:
    """One entry of ``prefix`` for every leaf of ``spec``: a prefix's leaf stands for all leaves
    below it. None where the structures do not match.
    """
    if isinstance(prefix, int) or prefix is None or spec.is_leaf():
        own, own_spec = tree_flatten(prefix)
        return own * spec.num_leaves if own_spec.is_leaf() else None
    children, kind = _children(prefix)
    if kind is None or len(children) != len(spec.children_specs):
        return None
    if kind is dict and list(prefix) != spec.context:
        return None
    if kind is not dict and not issubclass(spec.type, (tuple, list)):
        return None
    out: list[Any] = []
    for child, child_spec in zip(children, spec.children_specs):
        found = broadcast_prefix(child, child_spec)
        if found is None:
            return None
        out += found
    return out


def _children(tree: Any) -> tuple[list[Any], type | None]:
    if isinstance(tree, dict):
        return list(tree.values()), dict
    if isinstance(tree, (tuple, list)):
        return list(tree), tuple
    return [], None


def _broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any] | None:
    if is_leaf is not None:
        raise NotImplementedError("_broadcast_to_and_flatten: is_leaf is not supported")
    return broadcast_prefix(tree, treespec)


# Inner names that libraries with containers of their own import.
def _get_node_type(tree: Any) -> Any:
    parts = _one_level(tree)
    return None if parts is None else parts[0]


def is_structseq_class(cls: type) -> bool:
    """Whether a class is a sequence of C structs, such as time.struct_time."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "n_sequence_fields")


def is_structseq_instance(obj: Any) -> bool:
    """Whether an object is of such a class."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Whether an object is of such a class, or one."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _list_flatten(d: list[Any]) -> tuple[list[Any], Any]:
    return d, None


def _list_unflatten(values: Iterable[Any], context: Any) -> list[Any]:
    return list(values)


def _tuple_flatten(d: tuple[Any, ...]) -> tuple[list[Any], Any]:
    return list(d), None


def _tuple_unflatten(values: Iterable[Any], context: Any) -> tuple[Any, ...]:
    return tuple(values)


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], Any]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Any) -> dict[Any, Any]:
    return dict(zip(context, values))


_list_flatten_with_keys = _tuple_flatten_with_keys = _sequence_with_keys
_dict_flatten_with_keys = _mapping_with_keys
