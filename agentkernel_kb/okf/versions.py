"""What the versions of the format read differently: one place to change when the next one comes."""

from __future__ import annotations

from dataclasses import dataclass

CURRENT = "0.2"


@dataclass(frozen=True, slots=True)
class Profile:
    """How a bundle of one version is read.

    Attributes:
        version: The version.
        known: Whether it is one that this reader knows; any other is read as the nearest one.
        plain_documents: A document without frontmatter is no concept, and nothing is wrong with that.
        fresh_verification: Only a verification at or after `generated.at` counts.
        default_type: Type of a document that has none, also without any frontmatter; `""` means that it is no concept.
    """

    version: str
    known: bool = True
    plain_documents: bool = False
    fresh_verification: bool = False
    default_type: str = ""


_PROFILES = {
    "0.1": Profile("0.1"),
    "0.2": Profile("0.2"),
    "0.3": Profile("0.3", plain_documents=True, fresh_verification=True),
}


def profile_of(version: str) -> Profile:
    """Return how a bundle that declares `version` is read; one that declares nothing is read as the current version.

    A version that is not known is read as well as can be: as the current one. Source: OKF 0.2 §12.
    """
    if not version:
        return _PROFILES[CURRENT]
    return _PROFILES.get(version) or Profile(version, known=False)
