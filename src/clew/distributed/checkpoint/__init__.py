"""Checkpoints that several processes write together, and any number of them reads."""

from clew.distributed.checkpoint._layout import CheckpointException
from clew.distributed.checkpoint._saving import async_save, load, save
from clew.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from clew.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from clew.distributed.checkpoint.state_dict_loader import load_state_dict
from clew.distributed.checkpoint.state_dict_saver import save_state_dict
from clew.distributed.checkpoint.stateful import Stateful

__all__ = [
    "CheckpointException",
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "Stateful",
    "async_save",
    "load",
    "load_state_dict",
    "save",
    "save_state_dict",
]
