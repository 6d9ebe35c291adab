"""Functions of devices that are not there: they raise what PyTorch raises without the device."""

from __future__ import annotations

from typing import Any, NoReturn


def raising(module: str, names: str, error: type[Exception], message: str) -> dict[str, Any]:
    """Functions of these names, each of which raises.

    Args:
        module: of torch, such as "xpu".
        names: of the functions, with spaces between.
        error: what is raised.
        message: what it says behind the function's name.
    """

    def make(name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> NoReturn:
            raise error(f"torch.{module}.{name}: {message}")

        call.__name__ = call.__qualname__ = name
        call.__module__ = f"torch.{module}"
        call.__doc__ = f"Raises: {message}."
        return call

    return {name: make(name) for name in names.split()}
