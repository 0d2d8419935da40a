"""What is in `deploy/`, and samples of the kinds that it describes."""

from __future__ import annotations

from pathlib import Path

from deploy.kustomizations import DEPLOY, Manifest, build, documents, only, resources

__all__ = ["DEPLOY", "Manifest", "build", "documents", "only"]

ROOT = DEPLOY.parent
SAMPLES = Path(__file__).parent / "samples"


def name_of(manifest: Manifest) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"


CRDS = build(DEPLOY / "crds")
STANDALONE = build(DEPLOY / "overlays" / "standalone")
TAKEOVER = build(DEPLOY / "overlays" / "takeover")
NODE_USAGE = build(DEPLOY / "components" / "node-usage")
NODE_LOCK = build(DEPLOY / "components" / "node-lock")
DEBUG_ENDPOINTS = resources(DEPLOY / "components" / "debug-endpoints")
EXPLAIN = resources(DEPLOY / "components" / "explain")


def schema_of(kind: str) -> Manifest:
    """What the CRD says about objects of a kind."""
    crd = next(crd for crd in CRDS if crd["spec"]["names"]["kind"] == kind)
    (version,) = crd["spec"]["versions"]
    schema: Manifest = version["schema"]["openAPIV3Schema"]
    return schema


def accepted_samples() -> list[Manifest]:
    return documents(SAMPLES / "accepted.yaml")


def refused_samples() -> list[tuple[str, Manifest]]:
    """Objects that are wrong, each with the field that an API server complains about."""
    return [(sample["because"], sample["object"]) for sample in documents(SAMPLES / "refused.yaml")]
