"""An old name of hub.load_state_dict_from_url."""

from __future__ import annotations

from typing import Any

from clew.hub import load_state_dict_from_url as load_state_dict_from_url

__all__ = ["load_url"]

load_url = load_state_dict_from_url


def __getattr__(name: str) -> Any:
    if name == "tqdm":  # PyTorch's libraries take it from here
        try:
            from tqdm import tqdm  # type: ignore[import-untyped]
        except ImportError:
            raise AttributeError("utils.model_zoo.tqdm: install the package tqdm") from None
        return tqdm
    raise AttributeError(f"module 'clew.utils.model_zoo' has no attribute {name!r}")
