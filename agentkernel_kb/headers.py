"""What HTTP headers can be called."""

from __future__ import annotations

import re

_NAME = re.compile(r"[!#$%&'*+\-.^`|~\w]+", re.ASCII)


def is_header_name(text: str) -> bool:
    """Tell whether a text can be the name of a header. Source: RFC 9110 §5.6.2."""
    return _NAME.fullmatch(text) is not None
