"""Putting what training keeps into files: saved tensors, and optimizer state."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["offload"]


def offload(
    target: Any = None,
    directory: str | os.PathLike[str] | None = None,
    *,
    threads: int = 1,
    least: int = 1 << 16,
    in_flight: int = 256 << 20,
    keep: int | float | str | None = None,
) -> Any:
    """Puts what forward saves for backward, or an optimizer's state, into a file.

    As a context around forward: a thread writes saved tensors while forward goes on, and reads them
    ahead in the order in which backward will ask. Given an optimizer: its state (Adam's moments) is
    written to the file, and each step reads, changes and writes it block by block, the next block
    read ahead. Results have the same bits as without. The file has no name: it goes with the
    process, however that ends.

    Args:
        target: an optimizer; or the directory.
        directory: where the file lies; the system's folder for temporary files, if None.
        threads: how many write and read saved tensors.
        least: tensors of fewer bytes stay in memory, and so do leaves (parameters are there
            anyway).
        in_flight: bytes that may wait to be written or were read ahead; forward waits when there
            are more; in a memory budget fewer may. Of an optimizer's state half as many are in
            memory, and as many read ahead.
        keep: bytes that stay in memory and are not written: a number, text like "200 MB", or a
            fraction up to 1.0 of all that would be. Of saved tensors these are the ones saved last,
            which backward needs first; earlier ones go to the file as later ones come. Of an
            optimizer's state what is made first. None: nothing.

    Returns:
        A context; or the optimizer.

    Raises:
        ValueError, TypeError: an argument that is out of range or no amount.
        NotADirectoryError: a directory that is not there.
        OSError: when bytes could not be read. Those that could not be written (a full disk) stay in
            memory, with a warning.

    >>> model = nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1))
    >>> optimizer = clew.offload(clew.optim.Adam(model.parameters()))
    >>> with clew.offload():
    ...     loss = model(clew.ones(512, 256)).sum()
    >>> loss.backward()
    >>> optimizer.step()
    >>> "exp_avg" in optimizer.state[model[0].weight]
    False
    """
    from clew.autograd._offload import check_options
    from clew.autograd._offload import offload as context

    if not hasattr(target, "param_groups"):
        if target is not None and directory is not None:
            raise TypeError("offload: an optimizer or nothing must come before a directory")
        where = directory if target is None else target
        return context(where, threads=threads, least=least, in_flight=in_flight, keep=keep)
    from clew.optim._offloaded import offload_state

    where, kept = check_options(
        directory, threads=threads, least=least, in_flight=in_flight, keep=keep
    )
    block = max(in_flight // 2, 1)
    return offload_state(target, where, least=least, block=block, keep=kept)
