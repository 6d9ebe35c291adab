"""What programs ask of a CUDA device: there is none, and this module says so.

Questions are answered (`is_available()` is False, there are 0 devices, 0 bytes in use); what
would need a device raises, as PyTorch does when it was built without CUDA.
"""

from __future__ import annotations

from typing import Any

from clew import _C, OutOfMemoryError
from clew.cuda._missing import _absent, _NeedsDevice
from clew.cuda.memory import (
    MemPool,
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_max_memory_allocated,
    reset_peak_memory_stats,
)
from clew.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)

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


def is_available() -> bool:
    """Whether there is a CUDA device: no.

    Example:
        >>> clew.cuda.is_available()
        False
    """
    return False


def is_initialized() -> bool:
    """Whether a CUDA device is in use: no.

    Example:
        >>> clew.cuda.is_initialized()
        False
    """
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether a device computes in bfloat16: False, for there is none.

    Args:
        including_emulation: not used.

    Example:
        >>> clew.cuda.is_bf16_supported()
        False
    """
    return False


def device_count() -> int:
    """How many CUDA devices there are: 0.

    Example:
        >>> clew.cuda.device_count()
        0
    """
    return 0


def get_arch_list() -> list[str]:
    """The kinds of devices that clew was compiled for: none.

    Example:
        >>> clew.cuda.get_arch_list()
        []
    """
    return []


def init() -> None:
    """Would begin to use CUDA; here it raises: there is no CUDA device.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.init()
        Traceback (most recent call last):
        AssertionError: cuda.init: clew has no CUDA device
    """
    _absent("init")


def current_device() -> int:
    """The number of the present device; here it raises: there is no CUDA device.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.current_device()
        Traceback (most recent call last):
        AssertionError: cuda.current_device: clew has no CUDA device
    """
    return _absent("current_device")


def set_device(device: Any) -> None:
    """Would choose the present device; here it raises: there is no CUDA device.

    Args:
        device: the device's number.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.set_device(0)
        Traceback (most recent call last):
        AssertionError: cuda.set_device: clew has no CUDA device
    """
    _absent("set_device")


def get_device_name(device: Any = None) -> str:
    """The name of a device; here it raises: there is no CUDA device.

    Args:
        device: the device's number.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.get_device_name(0)
        Traceback (most recent call last):
        AssertionError: cuda.get_device_name: clew has no CUDA device
    """
    return _absent("get_device_name")


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The capability of a device, (major, minor); here it raises: there is no CUDA device.

    Args:
        device: the device's number.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.get_device_capability(0)
        Traceback (most recent call last):
        AssertionError: cuda.get_device_capability: clew has no CUDA device
    """
    return _absent("get_device_capability")


def get_device_properties(device: Any = None) -> Any:
    """The properties of a device; here it raises: there is no CUDA device.

    Args:
        device: the device's number.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.get_device_properties(0)
        Traceback (most recent call last):
        AssertionError: cuda.get_device_properties: clew has no CUDA device
    """
    return _absent("get_device_properties")


def synchronize(device: Any = None) -> None:
    """Would wait until a device has no work left; here it raises: there is no CUDA device.

    Args:
        device: the device's number.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.synchronize()
        Traceback (most recent call last):
        AssertionError: cuda.synchronize: clew has no CUDA device
    """
    _absent("synchronize")


class Stream(_NeedsDevice):
    """A queue of work on a device; here making one raises: there is no CUDA device.

    Raises:
        RuntimeError: always.

    Example:
        >>> clew.cuda.Stream()
        Traceback (most recent call last):
        RuntimeError: cuda.Stream: clew runs on the CPU here; there is no CUDA device
    """


class ExternalStream(Stream):
    """A queue of work of another library; here making one raises: there is no CUDA device.

    Raises:
        RuntimeError: always.

    Example:
        >>> clew.cuda.ExternalStream(0)
        Traceback (most recent call last):
        RuntimeError: cuda.ExternalStream: clew runs on the CPU here; there is no CUDA device
    """


class Event(_NeedsDevice):
    """A mark in a device's queue of work; here making one raises: there is no CUDA device.

    Raises:
        RuntimeError: always.

    Example:
        >>> clew.cuda.Event()
        Traceback (most recent call last):
        RuntimeError: cuda.Event: clew runs on the CPU here; there is no CUDA device
    """


class CUDAGraph(_NeedsDevice):
    """A recorded queue of a device's work; here making one raises: there is no CUDA device.

    Raises:
        RuntimeError: always.

    Example:
        >>> clew.cuda.CUDAGraph()
        Traceback (most recent call last):
        RuntimeError: cuda.CUDAGraph: clew runs on the CPU here; there is no CUDA device
    """


class graph(_NeedsDevice):
    """Would record a device's work in a block; here making one raises: there is no CUDA device.

    Raises:
        RuntimeError: always.

    Example:
        >>> clew.cuda.graph(None)
        Traceback (most recent call last):
        RuntimeError: cuda.graph: clew runs on the CPU here; there is no CUDA device
    """


class StreamContext:
    """Sends work to a stream within a block; None, the only stream there is, changes nothing.

    Args:
        stream: None.

    Raises:
        AssertionError: for another stream.

    Example:
        >>> with clew.cuda.StreamContext(None):
        ...     clew.ones(1)
        tensor([1.])
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
    """A block that sends work to a stream; None, the only stream there is, changes nothing.

    Args:
        stream: None.

    Raises:
        AssertionError: for another stream.

    Example:
        >>> with clew.cuda.stream(None):
        ...     clew.ones(1)
        tensor([1.])
    """
    return StreamContext(stream)


def current_stream(device: Any = None) -> Any:
    """The stream that work is sent to; here it raises: there is no CUDA device.

    Args:
        device: the device's number.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.current_stream()
        Traceback (most recent call last):
        AssertionError: cuda.current_stream: clew has no CUDA device
    """
    return _absent("current_stream")


def default_stream(device: Any = None) -> Any:
    """The stream that a device has by itself; here it raises: there is no CUDA device.

    Args:
        device: the device's number.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.default_stream()
        Traceback (most recent call last):
        AssertionError: cuda.default_stream: clew has no CUDA device
    """
    return _absent("default_stream")


def set_stream(stream: Any) -> None:
    """Chooses the stream that work is sent to; there is only None.

    Args:
        stream: None.

    Raises:
        AssertionError: for another stream.

    Example:
        >>> clew.cuda.set_stream(None)
    """
    if stream is not None:
        _absent("set_stream")


class device:
    """Chooses a device within a block; None and negative numbers change nothing, others raise.

    Args:
        device: its number.

    Raises:
        AssertionError: on entering the block, for a number that is not negative.

    Example:
        >>> with clew.cuda.device(-1):
        ...     clew.ones(1)
        tensor([1.])
    """

    def __init__(self, device: Any) -> None:
        self.idx = _index_of(device)

    def __enter__(self) -> None:
        if self.idx >= 0:
            _absent("device")

    def __exit__(self, *exc: object) -> None:
        pass


class device_of(device):
    """Chooses the device of a tensor within a block; tensors are on the CPU, so it changes nothing.

    Args:
        obj: the tensor.

    Example:
        >>> with clew.cuda.device_of(clew.ones(1)):
        ...     clew.ones(1)
        tensor([1.])
    """

    def __init__(self, obj: Any) -> None:
        super().__init__(-1)


def _index_of(device: Any) -> int:
    if device is None:
        return -1
    if isinstance(device, int):
        return device
    found = _C.device(device)
    return -1 if found.type == "cpu" else found.index or 0


def ipc_collect() -> None:
    """Would free memory that other processes released; here it raises: there is no CUDA device.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.ipc_collect()
        Traceback (most recent call last):
        AssertionError: cuda.ipc_collect: clew has no CUDA device
    """
    _absent("ipc_collect")


def is_current_stream_capturing() -> bool:
    """Whether a device's work is being recorded: no.

    Example:
        >>> clew.cuda.is_current_stream_capturing()
        False
    """
    return False


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a device reads another's memory; here it raises: there is no CUDA device.

    Args:
        device: the device's number.
        peer_device: the other's.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.can_device_access_peer(0, 1)
        Traceback (most recent call last):
        AssertionError: cuda.can_device_access_peer: clew has no CUDA device
    """
    return _absent("can_device_access_peer")


def is_tf32_supported() -> bool:
    """Whether a device rounds products to TF32: False, for there is none.

    Example:
        >>> clew.cuda.is_tf32_supported()
        False
    """
    return False


def utilization(device: Any = None) -> int:
    """How busy a device is, in percent; here it raises: there is no CUDA device.

    Args:
        device: the device's number.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.utilization()
        Traceback (most recent call last):
        AssertionError: cuda.utilization: clew has no CUDA device
    """
    return _absent("utilization")


def make_graphed_callables(*args: Any, **kwargs: Any) -> Any:
    """The modules recorded as graphs of work; here it raises: there is no CUDA device.

    Args:
        args, kwargs: not used.

    Raises:
        AssertionError: always.

    Example:
        >>> clew.cuda.make_graphed_callables(clew.relu, ())
        Traceback (most recent call last):
        AssertionError: cuda.make_graphed_callables: clew has no CUDA device
    """
    return _absent("make_graphed_callables")


def get_gencode_flags() -> str:
    """How programs for a device are compiled: an empty text, for there is none.

    Example:
        >>> clew.cuda.get_gencode_flags()
        ''
    """
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
