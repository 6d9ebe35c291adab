"""Folders that checkpoints are written to and read from."""

from __future__ import annotations

from typing import Any

__all__ = ["FileSystemReader", "FileSystemWriter"]


class FileSystemWriter:
    """A folder to write to.

    Args:
        path: the folder.
        single_file_per_rank: accepted; there is one.
        sync_files: accepted; files reach the disk.
        thread_count: accepted.
        per_thread_copy_ahead: accepted.
        cache_staged_state_dict: accepted.
        overwrite: replace the checkpoint that is there, which stays until the new one is whole; if
            False, a folder with anything in it raises.

    Example:
        >>> from clew.distributed.checkpoint import FileSystemWriter
        >>> import tempfile
        >>> from clew.distributed import checkpoint
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     entries = checkpoint.save(
        ...         {"w": clew.ones(2)}, storage_writer=FileSystemWriter(folder)
        ...     )
        >>> len(entries)
        1
    """

    def __init__(
        self,
        path: Any,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
    ) -> None:
        self.path = path
        self.overwrite = overwrite


class FileSystemReader:
    """A folder to read from.

    Args:
        path: the folder.

    Example:
        >>> from clew.distributed.checkpoint import FileSystemReader
        >>> import tempfile
        >>> from clew.distributed import checkpoint
        >>> state = {"w": clew.zeros(2)}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = checkpoint.save({"w": clew.ones(2)}, checkpoint_id=folder)
        ...     checkpoint.load(state, storage_reader=FileSystemReader(folder))
        >>> state
        {'w': tensor([1., 1.])}
    """

    def __init__(self, path: Any) -> None:
        self.path = path

    def read_metadata(self) -> Any:
        """What the checkpoint has: a list of entries."""
        from clew.distributed.checkpoint._layout import read_metadata

        return read_metadata(str(self.path))
