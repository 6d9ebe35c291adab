"""Lines of a test's own file, found by the mark that they end in."""

from __future__ import annotations


def line_of_mark(file: str, mark: str) -> int:
    """The number of the only line of a file that ends in the comment `# mark`."""
    with open(file, encoding="utf-8") as f:
        found = [i for i, line in enumerate(f, 1) if line.rstrip().endswith("# " + mark)]
    assert len(found) == 1, found
    return found[0]
