"""OKF: bundles of markdown with YAML frontmatter, on any store, indexed. Source: Open Knowledge Format 0.2."""

from agentkernel_kb.okf.manager import OKFManager
from agentkernel_kb.okf.model import OKFBundle, OKFConcept, OKFDiagnostic, TrustTier

__all__ = ["OKFBundle", "OKFConcept", "OKFDiagnostic", "OKFManager", "TrustTier"]
