"""Backends of `compile` that programs register."""
