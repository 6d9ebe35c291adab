"""Test the installed clew: a selection of the tests runs in a copy of them, where nothing but the
installed package can be imported.

cibuildwheel runs this with each wheel that it has built, `make test-wheel` with one built here.
Arguments are tests to run in place of the selection.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Each layer of the package, the native module's own dangers (threads, memory, foreign frames), and
# what only an installation can get wrong: data files, entry points, lazily imported modules.
SELECTION = """
tests/autograd tests/func tests/graph tests/nn tests/ops/test_ops.py tests/optim
tests/test_creation.py tests/test_damaged_files.py tests/test_html.py
tests/test_index_functions.py tests/test_indexing.py tests/test_numpy_interop.py
tests/test_pickle.py tests/test_public_names.py tests/test_random.py tests/test_run.py
tests/test_safetensors.py tests/test_second_homes.py tests/test_serialization.py
tests/test_shared.py tests/test_signatures.py tests/test_tensor.py tests/test_threads.py
tests/torch_names/test_children.py
""".split()


def main() -> int:
    """Return pytest's exit status, or 1 where clew is not an installed one."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    with tempfile.TemporaryDirectory() as folder:
        found = subprocess.run(
            [sys.executable, "-c", "import clew; print(clew.__file__)"],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout.strip()
        if Path(found).resolve().is_relative_to(ROOT / "src"):
            print(f"clew is not installed but used from {found}", file=sys.stderr)
            return 1
        print(f"testing {found}", flush=True)
        for part in ("tests", "examples", "tools", "bench"):
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / part, Path(folder) / part, ignore=ignore)
        shutil.copy(ROOT / "pyproject.toml", folder)
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
            + (sys.argv[1:] or SELECTION),
            cwd=folder,
            env=environment,
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
