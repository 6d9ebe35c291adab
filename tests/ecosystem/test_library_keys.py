"""The key that a Library is made with says for what its kernels are."""

import pytest

import clew
from clew import library
from clew._torch import _C


def defined(space):
    lib = library.Library(space, "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: 2 * x, "CPU")
    return getattr(clew.ops, space).twice


def test_kernels_of_a_meta_library_are_for_tensors_without_data():
    twice = defined("test_keys_1")
    library.Library("test_keys_1", "IMPL", "Meta").impl(twice.default, lambda x: x.new_empty(7))
    assert twice(clew.tensor([1.0, 2.0])).tolist() == [2, 4]
    assert twice(clew.ones(2, device="meta")).shape == (7,)


@pytest.mark.parametrize("key", ["CUDA", "AutocastCUDA", "Meta"])
def test_a_library_for_another_key_leaves_the_kernel(key):
    twice = defined(f"test_keys_{key}")
    library.Library(f"test_keys_{key}", "IMPL", key).impl("twice", lambda x: 0 * x)
    assert twice(clew.tensor([1.0, 2.0])).tolist() == [2, 4]


def test_the_key_of_a_call_goes_before_the_library_s():
    twice = defined("test_keys_2")
    library.Library("test_keys_2", "IMPL", "Meta").impl("twice", lambda x: 5 * x, "CPU")
    assert twice(clew.tensor([1.0, 2.0])).tolist() == [5, 10]


def test_impl_with_a_library_is_a_decorator():
    lib = library.Library("test_keys_3", "DEF", "Meta")
    lib.define("half(Tensor x) -> Tensor")

    @library.impl(lib, "half", "CPU")
    def half(x):
        return x / 2

    @library.impl(lib, "half")
    def shape(x):
        return x.new_empty(3)

    assert clew.ops.test_keys_3.half(clew.tensor([4.0])).tolist() == [2]
    assert clew.ops.test_keys_3.half(clew.ones(1, device="meta")).shape == (3,)
    assert half(clew.tensor([1.0])).tolist() == [0.5]


def test_a_kernel_for_autocast_regions_is_called_there_only():
    lib = library.Library("test_keys_4", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: 2 * x, "CPU")
    keys = _C.DispatchKeySet(_C.DispatchKey.AutocastCPU)

    def cast(x):
        seen.append(clew.is_autocast_enabled("cpu"))
        with _C._ExcludeDispatchKeyGuard(keys | _C.DispatchKeySet(_C.DispatchKey.AutocastCUDA)):
            return clew.ops.test_keys_4.twice(x.float()).to(x.dtype)

    seen = []
    lib.impl("twice", cast, "AutocastCPU")
    x = clew.tensor([1.0, 2.0]).bfloat16()
    assert clew.ops.test_keys_4.twice(x).tolist() == [2, 4] and seen == []
    with clew.autocast("cpu", dtype=clew.bfloat16):
        assert clew.ops.test_keys_4.twice(x).dtype is clew.bfloat16
        assert clew.is_autocast_enabled("cpu")
    assert seen == [True]


def test_a_guard_leaves_autocast_on_unless_it_is_among_the_keys():
    with clew.autocast("cpu", dtype=clew.bfloat16):
        for key, on in [(_C.DispatchKey.AutocastCUDA, True), (_C.DispatchKey.AutocastCPU, False)]:
            with _C._ExcludeDispatchKeyGuard(_C.DispatchKeySet(key)):
                assert clew.is_autocast_enabled("cpu") is on


def test_the_older_name_of_what_a_rule_for_shapes_may_ask():
    from clew._torch import _custom_ops

    assert _custom_ops.get_ctx is library.get_ctx
