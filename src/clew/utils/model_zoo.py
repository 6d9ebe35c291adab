"""An old name of hub.load_state_dict_from_url."""

from __future__ import annotations

from clew.hub import load_state_dict_from_url as load_state_dict_from_url

__all__ = ["load_url"]

load_url = load_state_dict_from_url
