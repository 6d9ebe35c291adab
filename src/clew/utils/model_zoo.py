"""An old name of hub.load_state_dict_from_url."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.hub import load_state_dict_from_url as load_state_dict_from_url
from clew.utils._progress import find_tqdm

__all__ = ["load_url"]

load_url = load_state_dict_from_url


if not TYPE_CHECKING:  # else checkers take any name to be there

    def __getattr__(name: str) -> Any:
        if name == "tqdm":  # PyTorch's libraries take it from here
            return find_tqdm()
        raise AttributeError(f"module 'clew.utils.model_zoo' has no attribute {name!r}")
