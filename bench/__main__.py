"""`python -m bench`: the overhead and start-up suites, with PyTorch beside clew if installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "overhead.jsonl"


def main() -> int:
    """Runs every suite in a process of its own and returns the worst exit status."""
    frameworks = ["clew"] + (["torch"] if importlib.util.find_spec("torch") else [])
    RESULTS.parent.mkdir(exist_ok=True)
    runs = [
        [sys.executable, str(HERE / "overhead.py"), "--framework", f, "--append", str(RESULTS)]
        for f in frameworks
    ]
    runs.append([sys.executable, str(HERE / "start.py")])
    status = 0
    for run in runs:
        print("$", *run[1:], flush=True)
        status = max(status, subprocess.run(run, check=False).returncode)
    return status


if __name__ == "__main__":
    sys.exit(main())
