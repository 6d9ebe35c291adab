"""Checkpoints that several processes write together, and any number of them reads."""

from ._layout import CheckpointException
from ._saving import async_save, load, save
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .state_dict_loader import load_state_dict
from .state_dict_saver import save_state_dict
from .stateful import Stateful

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
