"""Kinds of events in a profile."""

from __future__ import annotations

from clew.autograd import DeviceType as DeviceType
