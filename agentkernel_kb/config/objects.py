"""Objects of the application that a configuration names: `python:package.module:name`."""

from __future__ import annotations

import importlib
from typing import Any

from agentkernel_kb.errors import AKConfigError

REFERENCE = "python:"


def named_object(reference: str) -> Any:
    """Return the object that a reference names, its module imported now.

    Raises:
        AKConfigError: It is no reference, or there is nothing of the name.
    """
    module_name, colon, name = reference.removeprefix(REFERENCE).strip().partition(":")
    parts = (*module_name.split("."), *name.split("."))
    if not colon or not all(part.isidentifier() for part in parts):
        raise AKConfigError(f"an object is named as {REFERENCE}package.module:name, not {reference[:200]!r}.")
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:  # The import runs code of the application, which may raise anything.
        cure = "It has to stand on the Python path." if isinstance(error, ModuleNotFoundError) else "Its own code raises that."
        message = f"the module {module_name} cannot be imported: {type(error).__name__}. {cure}"
        raise AKConfigError(message) from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise AKConfigError(f"the module {module_name} has no {name}.")
        found = getattr(found, part)
    return found


def load_object(reference: str) -> Any:
    """Return the object that a reference names; of a class an object, made without arguments.

    Raises:
        AKConfigError: It is no reference, there is nothing of the name, or its class can't be called without arguments.
    """
    found = named_object(reference)
    if not isinstance(found, type):
        return found
    try:
        return found()
    except Exception as error:  # Code of the application, which may raise anything.
        message = f"{reference} is a class that can't be made without arguments ({type(error).__name__}). Name an object."
        raise AKConfigError(message) from error
