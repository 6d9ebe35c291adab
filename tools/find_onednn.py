"""Print the folder of oneDNN's headers and the path of its library, one a line.

CMake runs this with the Python of the build. The packages `onednn-devel-cpu-gomp` and `onednn-cpu-gomp` put their files
under the environment's prefix, and under pip's build isolation that is a temporary overlay which `sys.prefix` does
not name; the packages' own file lists are right in both cases.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path


def locate(distribution: str, ending: str) -> Path | None:
    """The installed file of `distribution` whose path ends with `ending`, or None."""
    try:
        listed = files(distribution) or []
    except PackageNotFoundError:
        return None
    for file in listed:
        if str(file).endswith(ending):
            path = Path(str(file.locate())).resolve()
            if path.exists():
                return path
    return None


def main() -> int:
    """Exit with 1, printing nothing, if either half is missing."""
    header = locate("onednn-devel-cpu-gomp", "/oneapi/dnnl/dnnl.h")
    # The wheel holds three equal copies; the newest-named one is the file that the other two stand for.
    library = locate("onednn-cpu-gomp", "/libdnnl.so.3.2") or locate("onednn-cpu-gomp", "/libdnnl.so.3")
    if header is None or library is None:
        return 1
    print(header.parents[2])
    print(library)
    return 0


if __name__ == "__main__":
    sys.exit(main())
