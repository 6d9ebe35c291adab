"""What programs ask of a CUDA device: there is none, and this module says so.

Questions are answered (`is_available()` is False, there are 0 devices, 0 bytes in use); what
would need a device raises, as PyTorch does when it was built without CUDA.
"""

from __future__ import annotations

from typing import Any

from clew import _C, OutOfMemoryError

__all__ = [
    "CUDAGraph",
    "Event",
    "ExternalStream",
    "MemPool",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "has_half",
    "has_magma",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
    "utilization",
]


def _absent(name: str) -> Any:
    raise AssertionError(f"cuda.{name}: clew has no CUDA device")


def is_available() -> bool:
    """Whether there is a device: no."""
    return False


def is_initialized() -> bool:
    """Whether a device is in use: no."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether a device computes in bfloat16: there is none."""
    return False


def device_count() -> int:
    """How many devices there are: 0."""
    return 0


def get_arch_list() -> list[str]:
    """The kinds of devices compiled for: none."""
    return []


def init() -> None:
    """Raises: there is no device."""
    _absent("init")


def current_device() -> int:
    """Raises: there is no device."""
    return _absent("current_device")


def set_device(device: Any) -> None:
    """Raises: there is no device."""
    _absent("set_device")


def get_device_name(device: Any = None) -> str:
    """Raises: there is no device."""
    return _absent("get_device_name")


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Raises: there is no device."""
    return _absent("get_device_capability")


def get_device_properties(device: Any = None) -> Any:
    """Raises: there is no device."""
    return _absent("get_device_properties")


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Raises: there is no device."""
    return _absent("mem_get_info")


def synchronize(device: Any = None) -> None:
    """Raises: there is no device."""
    _absent("synchronize")


def empty_cache() -> None:
    """Gives back a device's unused memory: there is none."""


def manual_seed(seed: int) -> None:
    """Seeds the present device: there is none."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds all devices: there are none."""
    int(seed)


def seed() -> None:
    """Seeds the present device: there is none."""


def seed_all() -> None:
    """Seeds all devices: there are none."""


def get_rng_state_all() -> list[Any]:
    """The random states of all devices: an empty list."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Sets the random states of all devices; a state given raises, there is no device for it."""
    if list(new_states):
        _absent("set_rng_state_all")


def memory_allocated(device: Any = None) -> int:
    """Bytes in use on a device: 0."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """Bytes held on a device: 0."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """Most bytes in use on a device: 0."""
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """Most bytes held on a device: 0."""
    return 0


class _NeedsDevice:
    """A class whose objects only a device could have."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"cuda.{cls.__name__}: clew runs on the CPU here; there is no CUDA device"
        )


class Stream(_NeedsDevice):
    """A queue of work on a device: making one raises."""


class ExternalStream(Stream):
    """A queue that another library made: making one raises."""


class Event(_NeedsDevice):
    """A mark in a queue of work: making one raises."""


class CUDAGraph(_NeedsDevice):
    """A recorded queue of work: making one raises."""


class graph(_NeedsDevice):
    """Records a queue of work: raises."""


class MemPool(_NeedsDevice):
    """Memory on a device: making one raises."""


class StreamContext:
    """Sends work to a stream within a block; None, the only stream there is, changes nothing.

    Args:
        stream: None.
    """

    def __init__(self, stream: Any) -> None:
        if stream is not None:
            _absent("StreamContext")
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


def stream(stream: Any) -> StreamContext:
    """Sends work to a stream within a block; only None is one."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Any:
    """Raises: there is no device."""
    return _absent("current_stream")


def default_stream(device: Any = None) -> Any:
    """Raises: there is no device."""
    return _absent("default_stream")


def set_stream(stream: Any) -> None:
    """Chooses the stream: only None is one."""
    if stream is not None:
        _absent("set_stream")


class device:
    """Chooses a device within a block; a negative number or None changes nothing, others raise.

    Args:
        device: its number.
    """

    def __init__(self, device: Any) -> None:
        self.idx = _index_of(device)

    def __enter__(self) -> None:
        if self.idx >= 0:
            _absent("device")

    def __exit__(self, *exc: object) -> None:
        pass


class device_of(device):
    """Chooses the device of a tensor within a block; one on the CPU changes nothing.

    Args:
        obj: the tensor.
    """

    def __init__(self, obj: Any) -> None:
        super().__init__(-1)


def _index_of(device: Any, optional: bool = True, allow_cpu: bool = True) -> int:
    if device is None:
        return -1
    if isinstance(device, int):
        return device
    found = _C.device(device)
    return -1 if found.type == "cpu" else found.index or 0


def get_rng_state(device: Any = "cuda") -> Any:
    """Raises: there is no device."""
    return _absent("get_rng_state")


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Raises: there is no device."""
    _absent("set_rng_state")


def initial_seed() -> int:
    """Raises: there is no device."""
    return _absent("initial_seed")


def reset_peak_memory_stats(device: Any = None) -> None:
    """Raises: there is no device."""
    _absent("reset_peak_memory_stats")


def reset_max_memory_allocated(device: Any = None) -> None:
    """Raises: there is no device."""
    _absent("reset_max_memory_allocated")


def memory_stats(device: Any = None) -> dict[str, Any]:
    """The counters of a device's memory: none, an empty dict."""
    return {}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The counters of a device's memory as a table: there is none, an empty text."""
    return ""


def ipc_collect() -> None:
    """Raises: there is no device."""
    _absent("ipc_collect")


def is_current_stream_capturing() -> bool:
    """Whether work is being recorded: no."""
    return False


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Raises: there are no devices."""
    return _absent("can_device_access_peer")


def is_tf32_supported() -> bool:
    """Whether a device rounds products to TF32: there is none."""
    return False


def utilization(device: Any = None) -> int:
    """Raises: there is no device."""
    return _absent("utilization")


def make_graphed_callables(*args: Any, **kwargs: Any) -> Any:
    """Raises: there is no device."""
    return _absent("make_graphed_callables")


def get_gencode_flags() -> str:
    """How programs for the device are compiled: there is none, an empty text."""
    return ""


default_generators: tuple[Any, ...] = ()
has_half = True
has_magma = False


def _is_compiled() -> bool:
    return False


def _is_in_bad_fork() -> bool:
    return False


def _lazy_init() -> None:
    _absent("init")


def _lazy_call(callable: Any, **kwargs: Any) -> None:
    """What is to be done once a device is in use: never."""


_LATER = ("amp", "memory", "nvtx", "random")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER} - {"annotations"})


def __getattr__(name: str) -> Any:
    import importlib

    if name in _LATER:
        return importlib.import_module(f"clew.cuda.{name}")
    if name.endswith("Tensor"):
        from clew._ops.legacy import cuda_type

        return globals().setdefault(name, cuda_type(name))
    raise AttributeError(f"module 'clew.cuda' has no attribute {name!r}: there is no CUDA device")
