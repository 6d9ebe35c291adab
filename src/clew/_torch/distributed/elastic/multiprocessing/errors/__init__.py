"""What torchrun's programs wrap their main function in."""

from __future__ import annotations

import functools
import json
import os
import time
import traceback
from collections.abc import Callable
from typing import Any

from clew._torch.absent import absent


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return absent("distributed.elastic.multiprocessing.errors", name, "clew launch ends all ranks")


class ErrorHandler:
    """Writes the exception that ends a process to the file that TORCHELASTIC_ERROR_FILE names."""

    def initialize(self) -> None:
        """Called before the function: there is nothing to prepare."""

    def record_exception(self, e: BaseException) -> None:
        """Writes the exception, if there is a file for it.

        Args:
            e: the exception.
        """
        path = os.environ.get("TORCHELASTIC_ERROR_FILE")
        if not path:
            return
        lines = "".join(traceback.format_exception(type(e), e, e.__traceback__))
        extra = {"py_callstack": lines, "timestamp": str(int(time.time()))}
        told = {"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": extra}}
        with open(path, "w") as file:
            json.dump(told, file)


def get_error_handler() -> ErrorHandler:
    """What `record` uses."""
    return ErrorHandler()


def record(fn: Callable[..., Any], error_handler: Any = None) -> Callable[..., Any]:
    """A program's main function whose exception is written to TORCHELASTIC_ERROR_FILE.

    `clew launch` finds out by itself how a rank fails; programs for torchrun have the decorator.

    Args:
        fn: the function.
        error_handler: what writes; an ErrorHandler if None.

    Returns:
        The function. One that ends by `sys.exit(0)` returns None.
    """
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as error:
            if not error.code:
                return None
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return run
