"""Runs one suite with one library: `python -m bench.worker SUITE LIBRARY`; prints JSON last."""

from __future__ import annotations

import importlib
import json
import sys


def main() -> None:
    suite, library = sys.argv[1:3]
    t = importlib.import_module(library)
    found = importlib.import_module(f"bench.suites.{suite}").run(t)
    print(json.dumps({"version": t.__version__, "values": found}))


if __name__ == "__main__":
    main()
