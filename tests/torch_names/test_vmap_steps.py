"""Steps of vmap that a library replaces, for containers of its own, by PyTorch's names."""

import importlib

import pytest

import clew
from clew.func import _vmap


class Box:
    """A container with a number of shared dims, which a vmap takes one of."""

    def __init__(self, tensor, dims):
        self.tensor, self.dims = tensor, dims

    def __getitem__(self, key):
        return Box(self.tensor[key], self.dims)


@pytest.fixture
def steps():
    module = importlib.import_module("clew._torch._functorch.vmap")

    def process(in_dims, args, func):
        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
        first = next(
            a.tensor if isinstance(a, Box) else a for a, d in zip(args, dims) if d is not None
        )
        return first.shape[0], list(dims), list(args), len(args)

    def create(dims, leaves, level, spec):
        assert level == 1 and spec == len(leaves)
        return [
            leaf
            if dim is None
            else Box(module._add_batch_dim(leaf.tensor, dim, level), leaf.dims - 1)
            if isinstance(leaf, Box)
            else module._add_batch_dim(leaf, dim, level)
            for leaf, dim in zip(leaves, dims)
        ]

    module._process_batched_inputs = process
    module._create_batched_inputs = create
    yield module
    _vmap.replaced.clear()


def test_containers_are_samples_inside(steps):
    x = clew.arange(6.0).reshape(3, 2)
    # Two of the three steps are not enough.
    assert clew.vmap(lambda v: v.sum())(x).tolist() == [1, 5, 9]
    steps._unwrap_batched = _unwrap_of(steps)
    seen = []

    def twice(box, shared):
        seen.append((box.dims, tuple(box.tensor.shape)))
        return Box(box.tensor * shared, box.dims)

    for options in ({}, {"chunk_size": 5}):
        made = clew.vmap(twice, in_dims=(0, None), **options)(Box(x, 1), clew.tensor(2.0))
        assert made.dims == 1 and made.tensor.tolist() == (2 * x).tolist()
    assert seen == [(0, (2,))] * 2
    total = clew.vmap(lambda box: box.tensor.sum(), chunk_size=2)(Box(x, 1))
    assert total.tolist() == [1, 5, 9]
    assert clew.vmap(lambda v: v * v)(x).tolist() == (x * x).tolist()
    with pytest.raises(NotImplementedError, match="vmap"):
        clew.vmap(lambda v: v)(clew.eye(3).to_sparse())


def _unwrap_of(module):
    def unwrap(output, out_dims, level, size, func):
        name = module._get_name(func)
        if isinstance(output, Box):
            shown = module._maybe_remove_batch_dim(name, output.tensor, level, size, out_dims)
            return Box(shown, output.dims + 1)
        return module._maybe_remove_batch_dim(name, output, level, size, out_dims)

    return unwrap
