"""Makes the site: `make docs` writes it to dist/docs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tools import reference  # noqa: E402

import clew  # noqa: E402

project = "clew"
author = "The clew authors"
version = release = clew.__version__
language = "en"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"clew {version}"
html_copy_source = False
autodoc_member_order = "alphabetical"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Shapes", "params_style")]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["myst.header"]


def setup(app: Any) -> None:
    reference.write(HERE / "reference")
    reference.write_root_pages(HERE.parent, HERE / "project")
    # Before napoleon, which makes fields of "Args:".
    app.connect("autodoc-process-docstring", reference.as_restructured_text, priority=400)
