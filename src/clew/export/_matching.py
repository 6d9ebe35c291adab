"""What rewritten `match` statements ask of their subject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clew.export._errors import ExportError, here
from clew.export._lists import ScanList

__all__ = ["Matching"]

_WHOLE = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)


class Matching:
    """Questions of patterns; parts are compared like anything else."""

    @staticmethod
    def match_sequence(subject: Any, least: int, starred: bool) -> bool:
        """Whether it is a sequence that long."""
        if isinstance(subject, ScanList):
            raise ExportError(
                f"export: `match` looks into a list that grew in a loop, at {here()}; ask for its "
                f"len() in an `if`"
            )
        if not isinstance(subject, Sequence) or isinstance(subject, (str, bytes, bytearray)):
            return False
        return len(subject) >= least if starred else len(subject) == least

    @staticmethod
    def match_star(part: Any) -> list[Any]:
        """What `*name` binds."""
        return list(part)

    @staticmethod
    def match_mapping(subject: Any, keys: tuple[Any, ...]) -> bool:
        """Whether it is a mapping that has these keys."""
        return isinstance(subject, Mapping) and all(k in subject for k in keys)

    @staticmethod
    def match_rest(subject: Any, keys: tuple[Any, ...]) -> dict[Any, Any]:
        """What `**name` binds."""
        return {k: v for k, v in subject.items() if k not in keys}

    @staticmethod
    def match_class(subject: Any, kind: Any, count: int, names: tuple[str, ...]) -> bool:
        """Whether it is of a class, with these attributes."""
        if not isinstance(subject, kind):
            return False
        if count and kind not in _WHOLE:
            given = getattr(kind, "__match_args__", ())
            if len(given) < count:
                raise TypeError(
                    f"{kind.__name__}() accepts {len(given)} positional sub-patterns "
                    f"({count} given)"
                )
            names = (*given[:count], *names)
        return all(hasattr(subject, n) for n in names)

    @staticmethod
    def match_part(subject: Any, kind: Any, index: int) -> Any:
        """What a pattern without a name looks at."""
        return subject if kind in _WHOLE else getattr(subject, kind.__match_args__[index])
