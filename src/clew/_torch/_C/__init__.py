"""PyTorch's native module as programs see it: what clew's has, and some names more."""

from __future__ import annotations

import enum
from contextlib import contextmanager
from typing import Any

from clew import _C, Tensor
from clew._torch.absent import absent
from clew.linalg import LinAlgError


def _log_api_usage_once(*args: Any) -> None:
    """Does nothing: nobody counts calls."""


_LinAlgError = LinAlgError


def _set_math_sdp_allow_fp16_bf16_reduction(allowed: bool) -> None:
    """Does nothing: attention of small floats is computed in float32, allowed or not."""


_TensorMeta = type(Tensor)
TensorBase = _TensorBase = Tensor
ScriptModule = absent("_C", "ScriptModule", "nothing is compiled to scripts")
ScriptFunction = absent("_C", "ScriptFunction", "nothing is compiled to scripts")
ScriptObject = absent("_C", "ScriptObject", "nothing is compiled to scripts")
ScriptMethod = absent("_C", "ScriptMethod", "nothing is compiled to scripts")
PyTorchFileReader = absent("_C", "PyTorchFileReader", "read files with load()")
PyTorchFileWriter = absent("_C", "PyTorchFileWriter", "write files with save()")
Future: Any
DeviceObjType = absent("_C", "DeviceObjType", "there are no graphs of scripts")
TensorType = absent("_C", "TensorType", "there are no graphs of scripts")
FloatType = absent("_C", "FloatType", "there are no graphs of scripts")
Value = absent("_C", "Value", "there are no graphs of scripts")
Graph = absent("_C", "Graph", "there are no graphs of scripts")


class DispatchKey(enum.Enum):
    """The places that PyTorch keeps kernels at; clew has one, and takes these as names."""

    Undefined = 0
    CPU = 1
    CUDA = 2
    Meta = 3
    Autograd = 4
    AutogradCPU = 5
    AutogradCUDA = 6
    AutogradMeta = 7
    AutocastCPU = 8
    AutocastCUDA = 9
    AutocastXPU = 10
    AutocastMPS = 11
    BackendSelect = 12
    CompositeExplicitAutograd = 13
    CompositeImplicitAutograd = 14
    Dense = 15
    FuncTorchBatched = 16
    FuncTorchGradWrapper = 17
    FuncTorchVmapMode = 18
    Functionalize = 19
    Python = 20
    PythonDispatcher = 21
    PythonTLSSnapshot = 22
    ADInplaceOrView = 23
    PreDispatch = 24
    Sparse = 25
    XLA = 26
    XPU = 27
    MPS = 28
    PrivateUse1 = 29


class DispatchKeySet:
    """A set of such names.

    Args:
        keys: one, or several.
    """

    def __init__(self, keys: Any = ()) -> None:
        self._keys = frozenset([keys] if isinstance(keys, DispatchKey) else keys)

    def has(self, k: DispatchKey) -> bool:
        """Whether a name is in it."""
        return k in self._keys

    def add(self, k: DispatchKey) -> DispatchKeySet:
        """The set with a name more."""
        return DispatchKeySet(self._keys | {k})

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys | other._keys)


@contextmanager
def _ExcludeDispatchKeyGuard(keys: DispatchKeySet) -> Any:
    """A region without what some names stand for: autocast, if it is among them.

    Args:
        keys: the names.
    """
    if not keys.has(DispatchKey.AutocastCPU):
        yield
        return
    with _DisableAutocast():
        yield


@contextmanager
def _DisableAutocast() -> Any:
    import clew

    with clew.autocast("cpu", enabled=False):
        yield


def _get_tracing_state() -> Any:
    """What `jit._get_trace_graph` records into, with `push_scope` and `pop_scope`; else None."""
    from clew._trace_graph import tracing_state

    return tracing_state()


def _are_functorch_transforms_active() -> bool:
    """Whether a vmap is running."""
    return bool(_C._vmap_levels()) if hasattr(_C, "_vmap_levels") else False


def _is_torch_function_enabled() -> bool:
    """Whether `__torch_function__` is asked."""
    from clew._base.overriding import _state

    return not _state.disabled


def _get_accelerator(check: Any = None) -> Any:
    """The device that takes the place of an accelerator: the CPU."""
    return _C.device("cpu")


def _get_privateuse1_backend_name() -> str:
    """The name that PyTorch gives to devices of others."""
    return "privateuseone"


def _cuda_clearCublasWorkspaces() -> None:
    """Does nothing: there is no such device."""


def _is_tracing() -> bool:
    """False: nothing is traced."""
    return False


def _get_mkldnn_enabled() -> bool:
    """Whether oneDNN computes convolutions: it does."""
    return True


def _get_cudnn_enabled() -> bool:
    """What `backends.cudnn.enabled` says."""
    from clew.backends import cudnn

    return bool(cudnn.enabled)


def _get_default_device() -> str:
    """The kind of the device that tensors are made on."""
    import clew

    return str(clew.get_default_device().type)


def _storage_Use_Count(cdata: int) -> int:
    """How many tensors and storage objects hold a storage; what a graph keeps of a result for its
    own backward is not among them.

    Args:
        cdata: what `untyped_storage()._cdata` gives.
    """
    return sum(t._storage_key() == cdata for t in _C._live_tensors())


def _current_graph_task_id() -> int:
    """The number of the innermost backward that this thread runs; -1 for none."""
    from clew.autograd import _ends

    return _ends.running() - 1


def _current_autograd_node() -> Any:
    """The node that runs in the innermost backward of this thread, or whose hooks do (a tensor's
    hooks are those of the node that its gradient comes to); None outside of a backward.
    """
    return _C._backward_node()


def _is_alias_of(a: Any, b: Any) -> bool:
    """Whether two tensors have their elements in the same memory."""
    return bool(a.untyped_storage()._cdata == b.untyped_storage()._cdata)


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode sees calls."""
    from clew._base.overriding import _state

    return bool(_state.modes) and not _state.disabled


def _dispatch_keys(tensor: Any) -> DispatchKeySet:
    """The names that a tensor stands for."""
    return DispatchKeySet([DispatchKey.Meta if tensor.is_meta else DispatchKey.CPU])


def _dispatch_has_kernel_for_dispatch_key(op: str, key: Any) -> bool:
    """Whether an added operation has a kernel."""
    from clew._registered import _registry

    found = _registry.get(op)
    return found is not None and found._kernel is not None


def __getattr__(name: str) -> Any:
    if name == "Future":
        from clew.futures import Future as found

        return found
    if name == "Generator":
        from clew import Generator

        return Generator
    if name in ("AcceleratorError", "FatalError", "JITException", "Tag"):
        from clew._torch import kinds

        return getattr(kinds, name)
    if name in ("_VariableFunctions", "_VariableFunctionsClass"):
        from clew._torch import _VF

        return _VF
    if name.startswith("_jit_"):
        from clew._torch._C import _jit

        return getattr(_jit, name)
    return getattr(_C, name)
