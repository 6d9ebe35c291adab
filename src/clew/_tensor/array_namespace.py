"""`Tensor.__array_namespace__`, by which Array API programs find clew.array_api."""

from __future__ import annotations

from typing import Any


def __array_namespace__(self: Any = None, /, *, api_version: str | None = None) -> Any:
    """The namespace of the Array API standard, ``clew.array_api``.

    Args:
        api_version: the version wanted; None takes the one that there is.

    >>> clew.ones(2).__array_namespace__().__array_api_version__
    '2024.12'
    """
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f"__array_namespace__: the version is 2024.12; got {api_version!r}")
    from clew import array_api

    return array_api
