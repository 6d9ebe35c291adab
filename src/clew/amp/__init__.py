"""Mixed precision: operations that choose the dtype they run in, and scaling of small gradients.

Inside `autocast`, products and convolutions run in bfloat16 (or float16), what needs range or
precision (losses, decompositions, transforms) in float32, and everything else in the dtype it is
given. Parameters stay float32: each is cast once in a region, and its gradient comes back in
float32.
"""

from __future__ import annotations

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
