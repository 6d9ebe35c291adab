"""Inner names of the script compiler: nothing is compiled here."""

from __future__ import annotations

from clew.jit import RecursiveScriptModule, ScriptModule, script

__all__ = ["RecursiveScriptModule", "ScriptModule", "script"]
