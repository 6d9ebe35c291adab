"""FileWriter: writes the events of one run to its file."""

from __future__ import annotations

import os
import time
from typing import Any

from . import _summary as summary


class FileWriter:
    """Appends events to a file of its own in a directory.

    Args:
        log_dir: the directory, made when it is not there.
        max_queue: events that may wait before they are written.
        flush_secs: seconds that they may wait.
        filename_suffix: end of the file's name.

    Example:
        >>> import tempfile
        >>> from clew.utils.tensorboard import FileWriter  # doctest: +SKIP
        >>> writer = FileWriter(tempfile.mkdtemp())  # doctest: +SKIP
        >>> writer.close()  # doctest: +SKIP
    """

    def __init__(
        self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""
    ) -> None:
        summary.protos()
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._dir = os.fspath(log_dir)
        self.event_writer = EventFileWriter(self._dir, max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The directory."""
        return self._dir

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Appends an event.

        Args:
            event: the message.
            step: at which step.
            walltime: seconds since 1970; now by default.
        """
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(
        self, summary: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Appends a summary.

        Args:
            summary: the message.
            global_step: at which step.
            walltime: seconds since 1970; now by default.
        """
        from tensorboard.compat.proto import event_pb2

        self.add_event(event_pb2.Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile: Any, walltime: float | None = None) -> None:
        """Appends a graph.

        Args:
            graph_profile: (GraphDef, RunMetadata).
            walltime: seconds since 1970; now by default.
        """
        from tensorboard.compat.proto import event_pb2

        graph, metadata = graph_profile
        self.add_event(event_pb2.Event(graph_def=graph.SerializeToString()), None, walltime)
        told = event_pb2.TaggedRunMetadata(tag="step1", run_metadata=metadata.SerializeToString())
        self.add_event(event_pb2.Event(tagged_run_metadata=told), None, walltime)

    def flush(self) -> None:
        """Writes what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Writes what waits and closes the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Does nothing: a new writer opens a new file."""
