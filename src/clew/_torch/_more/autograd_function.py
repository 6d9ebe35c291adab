"""A Function that programs write in-place operations with."""

from __future__ import annotations

from clew.autograd import Function


class InplaceFunction(Function):
    """Function by another name: `ctx.mark_dirty` says what forward has written into."""
