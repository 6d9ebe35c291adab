"""Messages of PyTorch's compiler: there are none."""

from __future__ import annotations

import logging
from typing import Any


def set_logs(**kwargs: Any) -> None:
    """Does nothing: the parts that would write messages are not here."""


def warning_once(logger: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """Writes a warning the first time that it comes."""
    key = (logger.name, str(args))
    if key not in _seen:
        _seen.add(key)
        logger.warning(*args, **kwargs)


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """The logger of a module."""
    return logging.getLogger(f"{module_qname}.{artifact_name}")


_seen: set[Any] = set()
