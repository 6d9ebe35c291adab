"""Calls everything public with sensible and hostile arguments."""
