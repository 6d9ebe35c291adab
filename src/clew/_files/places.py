"""Where the storages of a file go: `map_location` in its forms, and what packages registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clew
from clew import Tensor

__all__ = ["default_restore_location", "location_tag", "placement", "register_package"]


def _storage_over(raw: Tensor) -> Any:
    from clew.storage import UntypedStorage

    return UntypedStorage._over(raw)


def _own_tag(storage: Any) -> str | None:
    kind = str(storage.device.type)
    return kind if kind in ("cpu", "meta") else None


def _own_place(storage: Any, location: str) -> Any:
    try:
        device = clew.device(location)
    except (RuntimeError, ValueError):
        return None
    raw = storage.untyped()._bytes
    if raw.device == device:
        return storage
    if device.type not in ("cpu", "meta"):
        return None
    return _storage_over(raw.to(device))


# (priority, tagger, deserializer), the least priority first.
_packages: list[tuple[int, Callable[..., Any], Callable[..., Any]]] = [
    (10, _own_tag, _own_place),
]


def register_package(
    priority: int, tagger: Callable[[Any], Any], deserializer: Callable[[Any, str], Any]
) -> None:
    """Adds two functions: one names the place of a storage, one moves a storage to a named place.

    Args:
        priority: those with the least are asked first; clew's own have 10.
        tagger: gives for a storage its location as a text, or None.
        deserializer: gives for (storage, location) the storage there, or None.

    Example:
        >>> from clew._files.places import register_package
        >>> from clew import UntypedStorage
        >>> from clew.serialization import default_restore_location
        >>> register_package(50, lambda s: None, lambda s, where: s if where == "moon" else None)
        >>> len(default_restore_location(UntypedStorage(3), "moon"))
        3
    """
    if not callable(tagger) or not callable(deserializer):
        raise TypeError("register_package: tagger and deserializer must be functions")
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda entry: entry[0])


def location_tag(storage: Any) -> str:
    """Where a storage is, as files say it.

    Args:
        storage: the storage.

    Returns:
        The first answer of the registered functions, such as "cpu".

    Example:
        >>> from clew._files.places import location_tag
        >>> from clew import UntypedStorage
        >>> location_tag(UntypedStorage(3))
        'cpu'
    """
    for _, tagger, _ in _packages:
        tag = tagger(storage)
        if tag:
            return str(tag)
    raise RuntimeError(f"location_tag: nothing registered knows where {storage!r:.80} is")


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage at the place that a file names for it.

    Args:
        storage: the storage.
        location: such as "cpu".

    Returns:
        The first answer of the registered functions.

    Raises:
        RuntimeError: no function knows the location.

    Example:
        >>> from clew._files.places import default_restore_location
        >>> from clew import UntypedStorage
        >>> len(default_restore_location(UntypedStorage(3), "cpu"))
        3
    """
    for _, _, deserializer in _packages:
        placed = deserializer(storage, location)
        if placed is not None:
            return placed
    raise RuntimeError(
        f"load: the file's tensors were on device {location!r}, which is not here; use "
        "map_location='cpu'"
    )


def _raw_of(placed: Any, size: int) -> Tensor:
    """The bytes of what a function gave."""
    from clew.storage import TypedStorage, UntypedStorage

    if isinstance(placed, (UntypedStorage, TypedStorage)):
        placed = placed.untyped()._bytes
    if not isinstance(placed, Tensor) or placed.numel() * placed.dtype.itemsize != size:
        raise TypeError(
            "load: map_location must return None or a storage of the same size; got "
            f"{type(placed).__name__}"
        )
    return placed if placed.dtype == clew.uint8 else placed._storage_bytes()


def placement(map_location: Any) -> Callable[[Tensor, str], Tensor]:
    """A function of (raw bytes, location in the file) that gives the bytes where they belong.

    Args:
        map_location: None, a device, a dict from the file's devices to others, or a function of
            (storage, location).
    """
    if isinstance(map_location, bytes):
        map_location = map_location.decode("ascii")
    others: dict[str, Any] = {}
    device: str | None = None
    if isinstance(map_location, dict):
        others = map_location
    elif isinstance(map_location, (str, clew.device)):
        device = str(map_location)
        clew.device(device)  # a name that means nothing raises before the file is read
    elif callable(map_location):

        def ask(raw: Tensor, location: str) -> Tensor:
            storage = _storage_over(raw)
            placed = map_location(storage, location)
            if placed is None:
                placed = default_restore_location(storage, location)
            return _raw_of(placed, raw.numel())

        return ask
    elif map_location is not None:
        raise TypeError(
            f"load: map_location must be a device, a dict or a function; got {map_location!r}"
        )

    def place(raw: Tensor, location: str) -> Tensor:
        where = device or str(others.get(location, location))
        if where == "cpu" and len(_packages) == 1:
            return raw
        placed = default_restore_location(_storage_over(raw), where)
        return _raw_of(placed, raw.numel())

    return place
