"""Kubernetes' filters and scores, slow and obvious: manifests in, one node at a time, no code shared with plugins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

Manifest = dict[str, Any]
Labels = dict[str, str]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
MEBI = 1024 * 1024


def labels(manifest: Manifest) -> Labels:
    mapping: Labels = manifest["metadata"].get("labels") or {}
    return mapping


def namespace(pod: Manifest) -> str:
    return str(pod["metadata"].get("namespace", "default"))


def holds(requirement: Manifest, have: Labels) -> bool:
    value, values = have.get(requirement["key"]), requirement.get("values", [])
    match requirement["operator"]:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case operator:
            if value is None or not value.lstrip("-").isdigit():
                return False
            return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])


def selects(selector: Manifest | None, have: Labels) -> bool:
    if selector is None:
        return False
    pairs = selector.get("matchLabels", {}).items()
    return all(have.get(key) == value for key, value in pairs) and all(
        holds(requirement, have) for requirement in selector.get("matchExpressions", [])
    )


def term_selects(term: Manifest, node: Manifest) -> bool:
    expressions, fields = term.get("matchExpressions", []), term.get("matchFields", [])
    if not expressions and not fields:
        return False
    name = {"metadata.name": node["metadata"]["name"]}
    return all(holds(requirement, labels(node)) for requirement in expressions) and all(
        holds(requirement, name) for requirement in fields
    )


def wants(pod: Manifest, node: Manifest) -> bool:
    pairs = (pod["spec"].get("nodeSelector") or {}).items()
    if any(labels(node).get(key) != value for key, value in pairs):
        return False
    required = affinity(pod, "nodeAffinity").get(REQUIRED)
    return required is None or any(term_selects(term, node) for term in required["nodeSelectorTerms"])


def affinity(pod: Manifest, kind: str) -> Manifest:
    rules: Manifest = pod["spec"].get("affinity", {}).get(kind, {})
    return rules


def tolerates(tolerations: Iterable[Manifest], taint: Manifest) -> bool:
    for toleration in tolerations:
        if toleration.get("effect") and toleration["effect"] != taint["effect"]:
            continue
        if toleration.get("key") and toleration["key"] != taint["key"]:
            continue
        if toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""):
            return True
    return False


def repels(pod: Manifest, node: Manifest, effects: tuple[str, ...] = ("NoSchedule", "NoExecute")) -> int:
    tolerations = pod["spec"].get("tolerations", [])
    if effects == ("PreferNoSchedule",):
        tolerations = [
            toleration for toleration in tolerations if toleration.get("effect", "") in ("", *effects)
        ]
    taints = [taint for taint in node["spec"].get("taints", []) if taint["effect"] in effects]
    return sum(not tolerates(tolerations, taint) for taint in taints)


def ports(pod: Manifest) -> list[tuple[str, int, str]]:
    sidecars = [
        container
        for container in pod["spec"].get("initContainers", [])
        if container.get("restartPolicy") == "Always"
    ]
    return [
        (port.get("protocol", "TCP"), port["hostPort"], port.get("hostIP", "0.0.0.0"))
        for container in (*pod["spec"]["containers"], *sidecars)
        for port in container.get("ports", [])
        if port.get("hostPort")
    ]


def clash(port: tuple[str, int, str], other: tuple[str, int, str]) -> bool:
    return port[:2] == other[:2] and (port[2] == other[2] or "0.0.0.0" in (port[2], other[2]))


@dataclass
class Kubernetes:
    """Nodes, the pods that stand on them by node name, and the labels of namespaces and Services."""

    nodes: list[Manifest]
    pods: dict[str, list[Manifest]]
    namespaces: dict[str, Labels] = field(default_factory=dict)
    services: list[Manifest] = field(default_factory=list)

    def on(self, node: Manifest) -> list[Manifest]:
        return self.pods.get(node["metadata"]["name"], [])

    # -- filters

    def refusal(self, pod: Manifest, node: Manifest) -> str:
        """The first reason for which a node does not take a pod; empty where it does."""
        have = labels(node)
        if len(self.on(node)) >= int(node["status"]["allocatable"]["pods"]):
            return "node(s) pod number exceeded"
        cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        if node["spec"].get("unschedulable") and not tolerates(pod["spec"].get("tolerations", []), cordon):
            return "node(s) were unschedulable"
        if not wants(pod, node):
            return "node(s) didn't match Pod's node affinity/selector"
        if repels(pod, node):
            return "node(s) had untolerated taint(s)"
        if any(clash(a, b) for a in ports(pod) for other in self.on(node) for b in ports(other)):
            return "node(s) didn't have free ports for the requested pod ports"
        return self.refused_by_pods(pod, node) or self.refused_by_spread(pod, have)

    def sought(self, term: Manifest, owner: Manifest, other: Manifest) -> bool:
        """Whether a term of an incoming pod means another."""
        selector = term.get("namespaceSelector")
        anywhere = selector is not None and selects(selector, {})
        return (anywhere or self.speaks_of(term, owner, other)) and selects(
            term.get("labelSelector"), labels(other)
        )

    def carried(self, term: Manifest, owner: Manifest, other: Manifest) -> bool:
        """Whether a term of a pod that is there means an incoming one."""
        return self.speaks_of(term, owner, other) and selects(term.get("labelSelector"), labels(other))

    def speaks_of(self, term: Manifest, owner: Manifest, other: Manifest) -> bool:
        named, selector = term.get("namespaces", []), term.get("namespaceSelector")
        if not named and selector is None:
            return namespace(owner) == namespace(other)
        return namespace(other) in named or selects(selector, self.namespaces.get(namespace(other), {}))

    def pairs(self, key: str, counted: Callable[[Manifest], bool]) -> set[str]:
        """The values of a topology key on nodes that carry a counted pod."""
        return {
            labels(node)[key]
            for node in self.nodes
            if key in labels(node)
            for other in self.on(node)
            if counted(other)
        }

    def refused_by_pods(self, pod: Manifest, node: Manifest) -> str:
        have = labels(node)
        near = affinity(pod, "podAffinity").get(REQUIRED, [])
        domains = [
            (
                term["topologyKey"],
                self.pairs(term["topologyKey"], lambda o: all(self.sought(t, pod, o) for t in near)),
            )
            for term in near
        ]
        if any(key not in have for key, _ in domains):
            return "node(s) didn't match pod affinity rules"
        if any(have[key] not in values for key, values in domains):
            first = not any(values for _, values in domains) and all(self.sought(t, pod, pod) for t in near)
            if not first:
                return "node(s) didn't match pod affinity rules"
        for term in affinity(pod, "podAntiAffinity").get(REQUIRED, []):
            key = term["topologyKey"]
            if have.get(key) in self.pairs(key, lambda o, term=term: self.sought(term, pod, o)):  # type: ignore[misc]
                return "node(s) didn't match pod anti-affinity rules"
        for other_node in self.nodes:
            for other in self.on(other_node):
                for term in affinity(other, "podAntiAffinity").get(REQUIRED, []):
                    value = labels(other_node).get(term["topologyKey"])
                    same = value is not None and have.get(term["topologyKey"]) == value
                    if same and self.carried(term, other, pod):
                        return "node(s) didn't satisfy existing pods anti-affinity rules"
        return ""

    # -- spreading

    def counted(self, pod: Manifest, selector: Manifest | None, node: Manifest) -> int:
        if selector is None or not (selector.get("matchLabels") or selector.get("matchExpressions")):
            return 0
        return sum(
            namespace(other) == namespace(pod)
            and "deletionTimestamp" not in other["metadata"]
            and selects(selector, labels(other))
            for other in self.on(node)
        )

    def constraints(self, pod: Manifest, when: str) -> list[Manifest]:
        constraints = []
        for constraint in pod["spec"].get("topologySpreadConstraints", []):
            if constraint["whenUnsatisfiable"] == when:
                selector = constraint.get("labelSelector")
                for key in constraint.get("matchLabelKeys", []):
                    if key in labels(pod):
                        extra = {"key": key, "operator": "In", "values": [labels(pod)[key]]}
                        given = selector or {}
                        expressions = [*given.get("matchExpressions", []), extra]
                        selector = {**given, "matchExpressions": expressions}
                constraints.append({**constraint, "labelSelector": selector})
        return constraints

    def counts_there(self, pod: Manifest, constraint: Manifest, node: Manifest) -> bool:
        if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not wants(pod, node):
            return False
        return not (constraint.get("nodeTaintsPolicy", "Ignore") == "Honor" and repels(pod, node))

    def refused_by_spread(self, pod: Manifest, have: Labels) -> str:
        hard = self.constraints(pod, "DoNotSchedule")
        keys = [constraint["topologyKey"] for constraint in hard]
        for constraint in hard:
            key, counts = constraint["topologyKey"], dict[str, int]()
            for node in self.nodes:
                if all(k in labels(node) for k in keys) and self.counts_there(pod, constraint, node):
                    value = labels(node)[key]
                    counts[value] = counts.get(value, 0) + self.counted(
                        pod, constraint["labelSelector"], node
                    )
            if key not in have:
                return "node(s) didn't match pod topology spread constraints (missing required label)"
            least = min(counts.values()) if len(counts) >= constraint.get("minDomains", 1) else 0
            itself = int(selects(constraint["labelSelector"], labels(pod)))
            if counts.get(have[key], 0) + itself - least > constraint["maxSkew"]:
                return "node(s) didn't match pod topology spread constraints"
        return ""

    # -- scores: one number per candidate, normalised over them

    def scores(self, pod: Manifest, candidates: list[Manifest], weights: dict[str, int]) -> list[float]:
        """The weighted sum of what depends on labels, taints, images and pods; usage is tested by itself."""
        parts = {
            "nodeaffinity": self.node_affinity(pod, candidates),
            "tainttoleration": self.taints(pod, candidates),
            "podaffinity": self.pod_affinity(pod, candidates),
            "podtopologyspread": self.spread(pod, candidates),
            "imagelocality": [self.images(pod, node) for node in candidates],
        }
        return [
            sum(weights[name] * part[place] for name, part in parts.items())
            for place in range(len(candidates))
        ]

    def node_affinity(self, pod: Manifest, candidates: list[Manifest]) -> list[int]:
        terms = affinity(pod, "nodeAffinity").get(PREFERRED, [])
        raw = [sum(t["weight"] for t in terms if term_selects(t["preference"], node)) for node in candidates]
        most = max(raw)
        return [100 * value // most if most else 0 for value in raw]

    def taints(self, pod: Manifest, candidates: list[Manifest]) -> list[int]:
        raw = [repels(pod, node, ("PreferNoSchedule",)) for node in candidates]
        most = max(raw)
        return [100 - 100 * value // most if most else 100 for value in raw]

    def pod_affinity(self, pod: Manifest, candidates: list[Manifest]) -> list[int]:
        table: dict[tuple[str, str], int] = {}

        def add(node: Manifest, key: str, weight: int) -> None:
            if key in labels(node):
                pair = (key, labels(node)[key])
                table[pair] = table.get(pair, 0) + weight

        for node in self.nodes:
            for other in self.on(node):
                for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
                    for wish in affinity(pod, kind).get(PREFERRED, []):
                        if self.sought(wish["podAffinityTerm"], pod, other):
                            add(node, wish["podAffinityTerm"]["topologyKey"], sign * wish["weight"])
                    for wish in affinity(other, kind).get(PREFERRED, []):
                        if self.carried(wish["podAffinityTerm"], other, pod):
                            add(node, wish["podAffinityTerm"]["topologyKey"], sign * wish["weight"])
        raw = [sum(table.get(pair, 0) for pair in labels(node).items()) for node in candidates]
        low, high = min(raw), max(raw)
        return [int(100.0 * ((value - low) / (high - low))) if high > low else 0 for value in raw]

    def default_constraints(self, pod: Manifest) -> list[Manifest]:
        selector: Labels = {}
        for service in self.services:
            wanted = service["spec"]["selector"]
            if namespace(service) == namespace(pod) and wanted.items() <= labels(pod).items():
                selector.update(wanted)
        defaults = ((HOSTNAME, 3), (ZONE, 5))
        return [
            {"topologyKey": key, "maxSkew": skew, "labelSelector": {"matchLabels": selector}}
            for key, skew in defaults
            if selector
        ]

    def spread(self, pod: Manifest, candidates: list[Manifest]) -> list[int]:
        strict = bool(pod["spec"].get("topologySpreadConstraints"))
        soft = self.constraints(pod, "ScheduleAnyway") if strict else self.default_constraints(pod)
        if not soft:
            return [0] * len(candidates)
        keys = [constraint["topologyKey"] for constraint in soft]
        ignored = [strict and any(key not in labels(node) for key in keys) for node in candidates]
        kept = [node for node, out in zip(candidates, ignored, strict=True) if not out]
        raw = []
        for node, out in zip(candidates, ignored, strict=True):
            total = 0.0
            for constraint in [] if out else soft:
                key = constraint["topologyKey"]
                size = len(kept) if key == HOSTNAME else len({labels(other).get(key, "") for other in kept})
                if key in labels(node):
                    count = self.soft_count(pod, constraint, node, keys if strict else [])
                    total += count * math.log(size + 2) + (constraint["maxSkew"] - 1)
            raw.append(math.floor(total) + (total - math.floor(total) >= 0.5))
        least = min((value for value, out in zip(raw, ignored, strict=True) if not out), default=0)
        most = max((value for value, out in zip(raw, ignored, strict=True) if not out), default=0)
        good = [100 * (most + least - value) // most if most else 100 for value in raw]
        return [0 if out else score for score, out in zip(good, ignored, strict=True)]

    def soft_count(self, pod: Manifest, constraint: Manifest, node: Manifest, keys: list[str]) -> int:
        key, selector = constraint["topologyKey"], constraint["labelSelector"]
        if key == HOSTNAME:
            return self.counted(pod, selector, node)
        return sum(
            self.counted(pod, selector, other)
            for other in self.nodes
            if labels(other).get(key, "") == labels(node)[key]
            and all(k in labels(other) for k in keys)
            and self.counts_there(pod, constraint, other)
        )

    def images(self, pod: Manifest, node: Manifest) -> int:
        containers = [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
        total = 0
        for container in containers:
            image = container.get("image", "")
            name = image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
            having = [n for n in self.nodes if name in _images(n)]
            if node in having:
                total += int(_images(having[0])[name] * (len(having) / len(self.nodes)))
        most = 1000 * MEBI * len(containers)
        return 100 * (min(max(total, 23 * MEBI), most) - 23 * MEBI) // (most - 23 * MEBI)


def _images(node: Manifest) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for image in node["status"].get("images", []):
        for name in image["names"]:
            sizes.setdefault(name, image["sizeBytes"])
    return sizes
