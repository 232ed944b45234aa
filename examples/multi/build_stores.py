"""Builds the embedded stores of the demo in a folder, for `kb.yaml` and whoever reads it.

    python examples/multi/build_stores.py [folder]

The folder is what KB_DEMO_DATA names, or `data` beside this file. One that holds the stores already is left as it is.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from multi_demo.stores import make_stores


def build(folder: Path) -> bool:
    """Build the stores in a folder, which is made, and tell whether that was needed."""
    if (folder / "places.sqlite").exists():
        return False
    folder.mkdir(parents=True, exist_ok=True)
    for backend in make_stores(folder).backends():
        backend.close()
    return True


def main(arguments: list[str]) -> int:
    """Build them where the arguments or the environment say, and print where that is."""
    folder = Path(arguments[0] if arguments else os.environ.get("KB_DEMO_DATA") or Path(__file__).parent / "data").absolute()
    print(f"{'Built' if build(folder) else 'Already there'}: {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
