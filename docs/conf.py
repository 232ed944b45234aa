"""How the documentation is built: `make docs`."""

import tomllib
from pathlib import Path

project = "agentkernel_kb"
version = release = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
source_suffix = {".md": "markdown"}
# A page of a distribution or an example stands where its code is; links to it lead into the repository.
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "undoc-members": False, "show-inheritance": True}
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"agentkernel_kb {version}"
