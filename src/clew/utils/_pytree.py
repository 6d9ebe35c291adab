"""Nested containers as flat lists and back, for the function transforms."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

__all__ = [
    "TreeSpec",
    "register_pytree_node",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_structure",
    "tree_unflatten",
]


@dataclasses.dataclass(frozen=True)
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

    def is_leaf(self) -> bool:
        """Whether the structure is a single leaf."""
        return self.type is None


LEAF = TreeSpec(None, None, ())

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
}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Any, Any]],
    unflatten_fn: Callable[[Any, Any], Any],
    *,
    serialized_type_name: str | None = None,
) -> None:
    """Makes a class a container that transforms look into.

    Args:
        cls: the class.
        flatten_fn: an instance to (children, context).
        unflatten_fn: (children, context) to an instance.
        serialized_type_name: accepted for PyTorch's sake; structures are not serialised.

    Raises:
        ValueError: the class is registered already.
    """
    if cls in _kinds:
        raise ValueError(f"{cls} is already registered as pytree node")
    _kinds[cls] = (lambda t: (lambda c: (list(c[0]), c[1]))(flatten_fn(t)), unflatten_fn)


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
    if is_leaf is not None and is_leaf(tree):
        return [tree], LEAF
    kind = type(tree)
    if kind in _kinds:
        children, context = _kinds[kind][0](tree)
    elif _is_namedtuple(tree):
        children, context = list(tree), kind
        kind = tuple
    else:
        return [tree], LEAF
    leaves: list[Any] = []
    specs = []
    for child in children:
        found, spec = tree_flatten(child, is_leaf)
        leaves += found
        specs.append(spec)
    return leaves, TreeSpec(kind, context, tuple(specs))


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
