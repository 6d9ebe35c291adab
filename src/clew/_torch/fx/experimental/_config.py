"""Switches for symbolic sizes, of which there are none here: they may be set, and nothing reads
them.
"""

from __future__ import annotations

from clew._torch._dynamo.config import patching

backed_size_oblivious = False
use_duck_shape = True
patch = patching(globals())
