"""Runs one part of a suite with one library: `python -m bench.worker SUITE PART LIBRARY`.

Prints JSON last.
"""

from __future__ import annotations

import importlib
import json
import sys


def main() -> None:
    suite, part, library = sys.argv[1:4]
    t = importlib.import_module(library)
    cases = importlib.import_module(f"bench.suites.{suite}")
    found = cases.run(t, int(part)) if hasattr(cases, "PARTS") else cases.run(t)
    print(json.dumps({"version": t.__version__, "values": found}))


if __name__ == "__main__":
    main()
