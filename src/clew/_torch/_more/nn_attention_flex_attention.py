"""What functions for masks and scores are annotated with."""

from __future__ import annotations

from clew.nn.attention.flex_attention import _Mask as _mask_mod_signature
from clew.nn.attention.flex_attention import _Score as _score_mod_signature

__all__ = ["_mask_mod_signature", "_score_mod_signature"]
