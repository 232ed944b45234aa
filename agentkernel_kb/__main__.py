"""`python -m agentkernel_kb` is `agentkernel-kb`."""

from __future__ import annotations

import sys

from agentkernel_kb.cli import main

if __name__ == "__main__":
    sys.exit(main())
