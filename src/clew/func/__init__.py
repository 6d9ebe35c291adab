"""Function transforms: vmap, grad, vjp, jvp, Jacobians and Hessians, and calling modules as
functions. They compose with each other and with backward().
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew import _namespace
from clew.func._jacobians import hessian, jacfwd, jacrev
from clew.func._modules import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from clew.func._rearrange import rearrange
from clew.func._transforms import (
    debug_unwrap,
    functionalize,
    grad,
    grad_and_value,
    jvp,
    linearize,
    vjp,
)
from clew.func._vmap import vmap

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]

if not TYPE_CHECKING:  # else checkers take any name to be there
    __getattr__ = _namespace.module_getattr(__name__, globals())
