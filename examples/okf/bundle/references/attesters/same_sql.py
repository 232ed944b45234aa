"""Attests that a run executed the sanctioned statement: the text of the receipt equals the text that binding gives."""

from __future__ import annotations

from collections.abc import Mapping


def attest(statement: str, parameters: Mapping[str, int], receipt: Mapping[str, object]) -> bool:
    """Return whether the statement that ran is the sanctioned one with these parameters."""
    expected = statement
    for name, value in parameters.items():
        expected = expected.replace(f":{name}", str(value))
    return " ".join(str(receipt["executed_sql"]).split()) == " ".join(expected.split())
