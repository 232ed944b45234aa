"""Lets the test of this example import its parts, as `python demo.py` does."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
