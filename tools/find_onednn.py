"""Print the folder of oneDNN's headers, the path of its library and its licence files, one a line.

CMake runs this with the Python of the build. The packages `onednn-devel-cpu-gomp` and
`onednn-cpu-gomp` put their files under the environment's prefix, and under pip's build isolation
that is a temporary overlay which `sys.prefix` does not name; the packages' own file lists are right
in both cases.
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
    """Exit with 1, printing nothing, if the headers or the library are missing."""
    header = locate("onednn-devel-cpu-gomp", "/oneapi/dnnl/dnnl.h")
    # The wheel holds three equal copies of the library; one is enough.
    library = locate("onednn-cpu-gomp", "/libdnnl.so.3.2")
    if header is None or library is None:
        return 1
    print(header.parents[2])
    print(library)
    for name in ("LICENSE", "THIRD-PARTY-PROGRAMS"):
        notice = locate("onednn-cpu-gomp", "/onednn/" + name)
        if notice is not None:
            print(notice)
    return 0


if __name__ == "__main__":
    sys.exit(main())
