"""Switches of PyTorch's compiler: programs may set them, and nothing reads them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

accumulated_cache_size_limit = 256
allow_unspec_int_on_nn_module = False
assume_static_by_default = True
automatic_dynamic_shapes = True
cache_size_limit = 8
capture_dynamic_output_shape_ops = False
capture_func_transforms = True
capture_scalar_outputs = False
compiled_autograd = False
force_parameter_static_shapes = True
inline_inbuilt_nn_modules = True
optimize_ddp = True
recompile_limit = 8
reorderable_logging_functions: set[Any] = set()
skip_fwd_side_effects_in_bwd_under_checkpoint = False
suppress_errors = False
verbose = False


def patching(space: dict[str, Any]) -> Callable[..., Any]:
    """The function `patch` of a module of switches.

    Args:
        space: the module's names.
    """

    @contextmanager
    def patch(changes: Any = None, value: Any = None, **kwargs: Any) -> Any:
        """Sets switches within a block: a dict, a name and a value, or by keyword."""
        wanted = {changes: value} if isinstance(changes, str) else {**(changes or {})}
        wanted.update(kwargs)
        before = {name: space[name] for name in wanted if name in space}
        space.update(wanted)
        try:
            yield
        finally:
            for name in wanted:
                space.pop(name)
            space.update(before)

    return patch


patch = patching(globals())
