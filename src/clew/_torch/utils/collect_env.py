"""What a report of a fault should say about the machine."""

from __future__ import annotations

import platform
import sys

import numpy

from clew.__config__ import show

__all__ = ["get_pretty_env_info", "main"]


def get_pretty_env_info() -> str:
    """How clew was built, and what it runs on."""
    return (
        f"{show().rstrip()}\n"
        f"Python version: {sys.version.splitlines()[0]}\n"
        f"OS: {platform.platform()}\n"
        f"NumPy version: {numpy.__version__}\n"
        "Is CUDA available: False"
    )


def main() -> None:
    """Prints it."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
