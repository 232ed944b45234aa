"""Lets tests import what several of them share, `corpora.runner`; last on the path, so that it hides nothing installed."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
