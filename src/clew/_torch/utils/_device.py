"""The context in which new tensors are on a device, as a class."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import clew

__all__ = ["DeviceContext", "set_device"]


class DeviceContext:
    """`with clew.device(...)` as an object: functions that make tensors make them there.

    Args:
        device: a device, or its name.
    """

    def __init__(self, device: Any) -> None:
        self.device = clew.device(device)

    def __enter__(self) -> DeviceContext:
        self.device.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.device.__exit__(*error)


def set_device(device: Any) -> Callable[..., Any]:
    """A decorator: the function's calls run in the context of the device."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with DeviceContext(device):
                return function(*args, **kwargs)

        return run

    return decorate
