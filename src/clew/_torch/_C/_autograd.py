"""Kinds of events in a profile."""

from __future__ import annotations

from clew.autograd.profiler import DeviceType as DeviceType
