"""A model in stages, one on each process; a batch goes through them in parts."""

from .schedules import Schedule1F1B, ScheduleGPipe
from .stage import PipelineStage

__all__ = ["PipelineStage", "Schedule1F1B", "ScheduleGPipe"]
