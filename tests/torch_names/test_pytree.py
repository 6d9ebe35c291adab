"""Containers with the paths of their leaves, and structures as text."""

from collections import OrderedDict, namedtuple

import pytest

import clew
from clew.utils import _pytree

Pair = namedtuple("Pair", "a b")
TREE = {"x": [1, (2, 3)], "y": Pair(4, OrderedDict(z=5))}


def test_paths():
    pairs, spec = _pytree.tree_flatten_with_path(TREE)
    shown = {_pytree.keystr(path): leaf for path, leaf in pairs}
    assert shown == {
        "['x'][0]": 1,
        "['x'][1][0]": 2,
        "['x'][1][1]": 3,
        "['y'].a": 4,
        "['y'].b['z']": 5,
    }
    assert all(_pytree.key_get(TREE, path) == leaf for path, leaf in pairs)
    assert spec.unflatten(v for _, v in pairs) == TREE and spec.num_nodes == 10
    doubled = _pytree.tree_map_with_path(lambda path, leaf: (len(path), leaf), TREE)
    assert doubled["y"] == Pair((2, 4), OrderedDict(z=(3, 5)))


def test_classes_with_keys_and_names():
    class Box:
        def __init__(self, value):
            self.value = value

    _pytree.register_pytree_node(
        Box,
        lambda b: ([b.value], None),
        lambda children, _: Box(*children),
        serialized_type_name="test.Box",
        flatten_with_keys_fn=lambda b: ([(_pytree.GetAttrKey("value"), b.value)], None),
    )
    spec = _pytree.tree_structure([Box((1, 2))])
    assert _pytree.treespec_loads(_pytree.treespec_dumps(spec)) == spec
    ((path, leaf), _) = _pytree.tree_leaves_with_path([Box((1, 2))])
    assert _pytree.keystr(path) == "[0].value[0]" and leaf == 1
    with pytest.raises(ValueError, match="already"):
        _pytree.register_pytree_node(Box, None, None)


def test_some_leaves():
    assert _pytree.tree_map_only(int, lambda v: -v, [1, "a"]) == [-1, "a"]
    assert _pytree.tree_all(bool, [1, (2,)]) and _pytree.tree_any_only(str, bool, ["", 1]) is False
    spec = _pytree.tree_structure((0, {"a": 0}))
    assert spec.flatten_up_to(([1], {"a": (2, 3)})) == [[1], (2, 3)]
    with pytest.raises(ValueError, match="flatten_up_to"):
        spec.flatten_up_to([1, {"a": 2}])
    assert isinstance(_pytree.tree_structure(1), _pytree.LeafSpec) and repr(spec).startswith(
        "TreeSpec("
    )


def test_sizes_are_containers():
    leaves, spec = _pytree.tree_flatten({"size": clew.Size([2, 3])})
    assert leaves == [2, 3]
    made = _pytree.tree_map(lambda n: n + 1, clew.Size([2, 3]))
    assert made == (3, 4) and type(made) is tuple
    assert _pytree.tree_unflatten([4, 5], spec) == {"size": (4, 5)}


def test_results_of_several_tensors_are_containers():
    x = clew.tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])
    found = clew.vmap(lambda row: row.sort())(x)
    assert type(found) is clew.return_types.sort
    assert found.values.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert found.indices.tolist() == [[1, 2, 0], [0, 2, 1]]
    leaves, spec = _pytree.tree_flatten({"a": x.max(1), "b": x.aminmax()})
    assert len(leaves) == 4
    again = _pytree.tree_unflatten([t + 1 for t in leaves], spec)
    assert type(again["a"]) is clew.return_types.max and again["a"].values.tolist() == [4, 7]
    assert again["b"].min.item() == 2
    paths = [_pytree.keystr(path) for path, _ in _pytree.tree_flatten_with_path(x.topk(2))[0]]
    assert paths == ["[0]", "[1]"]
