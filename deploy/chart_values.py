"""The values of the Helm chart: what each means, its default, and what may stand there.

Defaults are what the manifests say. `values.yaml`, its schema and the table in the README are written from here.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from deploy.kustomizations import DEPLOY, Manifest, build, containers, documents, only
from deploy.template_text import dump

Schema = dict[str, Any]
LARGEST_TEXT = 1 << 20
"""Characters of a file in a ConfigMap, which may have a mebibyte."""
WIDTH = 110

SWITCH: Schema = {"type": "boolean"}
QUANTITIES: Schema = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
LABEL: Schema = {"type": "string", "pattern": "^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$"}
LABELS: Schema = {"type": "object", "additionalProperties": LABEL}
TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": LARGEST_TEXT}
NAME: Schema = {"type": "string", "maxLength": 253, "pattern": "^$|^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"}
NAMES: Schema = {
    "type": "array",
    "maxItems": 64,
    "uniqueItems": True,
    "items": {"type": "string", "maxLength": 253, "pattern": "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"},
}
HOSTS: Schema = {
    **NAMES,
    "items": {
        "type": "string",
        "maxLength": 260,
        "pattern": r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$",
    },
}
RESOURCES: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"requests": QUANTITIES, "limits": QUANTITIES},
}
TOLERATIONS: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "key": {"type": "string"},
            "operator": {"enum": ["Exists", "Equal", "Lt", "Gt"]},
            "value": LABEL,
            "effect": {"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
            "tolerationSeconds": {"type": "integer"},
        },
    },
}
AFFINITY: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        name: {"type": ["object", "null"]} for name in ("nodeAffinity", "podAffinity", "podAntiAffinity")
    },
}
ARGUMENTS: Schema = {
    "type": "array",
    "maxItems": 100,
    "items": {"type": "string", "pattern": "^--?[a-z]", "maxLength": 4096},
}


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the chart."""

    meaning: str
    default: Any
    schema: Schema
    may_be_null: bool = False
    """Null takes the default away, and nothing stands in its place."""


@dataclass(frozen=True, slots=True)
class Group:
    """Values that belong together."""

    meaning: str
    members: dict[str, Value | Group]


def values() -> Group:
    """All values of the chart."""
    return Group(
        "",
        {
            "image": _image(),
            "crds": Group(
                "Volcano's kinds.",
                {
                    "install": Value(
                        "Install and upgrade them with the release; they stay when it goes, with every job and queue. "
                        "False where Volcano's chart has installed its own.",
                        True,
                        SWITCH,
                    )
                },
            ),
            "scheduler": _scheduler(),
            "controllers": _controllers(),
            "admission": Group(
                "The webhook server, in the place of Volcano's.",
                {
                    "enabled": Value("", True, SWITCH),
                    **_pods(build(DEPLOY / "admission")),
                },
            ),
            "dashboard": _dashboard(),
            "monitoring": _monitoring(),
        },
    )


def _image() -> Group:
    (container,) = containers(only(build(DEPLOY / "scheduler"), "Deployment"))
    repository = container["image"].partition(":")[0]
    policies = ["IfNotPresent", "Always", "Never"]
    return Group(
        "Where the image is that you built and pushed: docs/install.md.",
        {
            "repository": Value(
                "Its name, with the registry.",
                repository,
                {"type": "string", "maxLength": 255, "pattern": "^[a-z0-9][a-z0-9._:/-]*$"},
            ),
            "tag": Value(
                "The version of the chart's application if empty.",
                "",
                {"type": "string", "pattern": "^$|^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$"},
            ),
            "digest": Value(
                "`sha256:...`, which then counts instead of the tag.",
                "",
                {"type": "string", "pattern": "^$|^sha256:[0-9a-f]{64}$"},
            ),
            "pullPolicy": Value("When nodes pull it.", container["imagePullPolicy"], {"enum": policies}),
            "pullSecrets": Value("Names of Secrets for the registry.", [], NAMES),
        },
    )


def _scheduler() -> Group:
    (policy,) = documents(DEPLOY / "overlays" / "standalone" / "configmap.yaml")
    ((_, text),) = policy["data"].items()
    return Group(
        "In the place of Volcano's scheduler.",
        {
            "enabled": Value("", True, SWITCH),
            "names": Value(
                "Pods that ask for one of these schedulers are ours; `volcano` if empty. Controllers and admission "
                "are told, too.",
                [],
                NAMES,
            ),
            "schedulePeriod": Value(
                "`--schedule-period`, such as 500ms; 1s if empty.",
                "",
                {
                    "type": "string",
                    "maxLength": 40,
                    "pattern": r"^$|^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$",
                },
            ),
            "policy": Group(
                "Volcano's configuration file: docs/policy.md. A change holds at once.",
                {
                    "existingConfigMap": Value(
                        "A ConfigMap with the key volcano-scheduler.conf that is there already, such as Volcano's "
                        "own; then none is made.",
                        "",
                        NAME,
                    ),
                    "text": Value("What stands in the one that is made.", text, TEXT),
                },
            ),
            "plugins": Group(
                "Plugins and actions of your own: docs/custom-plugins.md.",
                {
                    "configMap": Value(
                        "A ConfigMap with Python files, which you make; they are read when the scheduler starts.",
                        "",
                        NAME,
                    )
                },
            ),
            **_pods(build(DEPLOY / "scheduler")),
            "explain": _switch("The leader answers `stromboli explain`."),
            "debugEndpoints": _switch("/debug/... for users with a right: docs/scheduler.md."),
            "nodeLock": _switch("The right to lock nodes, for policies with `deviceshare.NodeLockEnable`."),
            "nodeUsage": _switch(
                "The right to read custom metrics, for policies with `metrics: {type: prometheus_adaptor}`."
            ),
        },
    )


def _controllers() -> Group:
    (shards,) = documents(DEPLOY / "components" / "sharding" / "configmap.yaml")
    ((_, text),) = shards["data"].items()
    return Group(
        "In the place of Volcano's controller manager.",
        {
            "enabled": Value("", True, SWITCH),
            **_pods(build(DEPLOY / "controllers")),
            "jobSsh": _switch("The right to keep keys in Secrets, for jobs with the plugin `ssh`."),
            "ufm": _switch("The right to read the Secret ufm-credentials, for HyperNodes from UFM."),
            "sharding": Group(
                "Several schedulers that divide the nodes among them: docs/controllers.md.",
                {
                    "enabled": Value("", False, SWITCH),
                    "config": Value("Which scheduler gets which nodes.", text, TEXT),
                },
            ),
        },
    )


def _dashboard() -> Group:
    pods = _pods(build(DEPLOY / "dashboard"), "--namespace=research")
    left_out = ("replicas", "logLevel")
    return Group(
        "The dashboard, for viewers who show a token. One replica: sessions are in its memory.",
        {
            "enabled": Value("", False, SWITCH),
            "allowedHosts": Value(
                "Names under which browsers may ask, such as that of an ingress, with its port if that is unusual.",
                [],
                HOSTS,
            ),
            "tls": Group(
                "",
                {
                    "secretName": Value(
                        "A Secret of type kubernetes.io/tls; then the Service speaks TLS on port 443. If empty, "
                        "HTTP on port 80.",
                        "",
                        NAME,
                    )
                },
            ),
            **{name: value for name, value in pods.items() if name not in left_out},
        },
    )


def _monitoring() -> Group:
    return Group(
        "What Prometheus' operator and Grafana read: docs/monitoring.md.",
        {
            "alerts": _switch("A PrometheusRule."),
            "serviceMonitor": _switch("A ServiceMonitor."),
            "dashboards": _switch("A ConfigMap where Grafana's sidecar finds it."),
            "labels": Value(
                "More labels for the three, such as the one that your Prometheus selects by.", {}, LABELS
            ),
        },
    )


def _switch(meaning: str) -> Group:
    return Group(meaning, {"enabled": Value("", False, SWITCH)})


def _pods(manifests: list[Manifest], example_flag: str = "--kube-api-qps=500") -> dict[str, Value]:
    """What can be said about the pods of every part."""
    deployment = only(manifests, "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return {
        "replicas": Value(
            "How many pods.",
            deployment["spec"]["replicas"],
            {"type": "integer", "minimum": 0, "maximum": 100},
        ),
        "logLevel": Value(
            "`-v`; 4 and more shows details.", 0, {"type": "integer", "minimum": 0, "maximum": 10}
        ),
        "extraArgs": Value(
            f"More flags, such as `{example_flag}`. The last one of a name counts.", [], ARGUMENTS
        ),
        "resources": Value(
            "What a pod requests, and its limits.", container["resources"], RESOURCES, may_be_null=True
        ),
        "nodeSelector": Value("Labels of nodes for its pods.", {}, LABELS, may_be_null=True),
        "tolerations": Value("Taints of nodes that its pods tolerate.", [], TOLERATIONS, may_be_null=True),
        "affinity": Value(
            "Which nodes its pods prefer or need, and which other pods near or far.",
            pod.get("affinity", {}),
            AFFINITY,
            may_be_null=True,
        ),
        "priorityClassName": Value(
            "Who goes before whom; none if empty.", pod.get("priorityClassName", ""), NAME
        ),
    }


def leaves(group: Group, path: str = "") -> Iterator[tuple[str, Value]]:
    """All values with their full names."""
    for name, member in group.members.items():
        if isinstance(member, Group):
            yield from leaves(member, f"{path}{name}.")
        else:
            yield f"{path}{name}", member


def values_file(group: Group) -> str:
    """The group as `values.yaml`."""
    parts = [_entry(name, member) for name, member in group.members.items()]
    return "\n".join(parts)


def _entry(name: str, member: Value | Group) -> str:
    comment = "".join(f"# {line}\n" for line in textwrap.wrap(member.meaning, WIDTH - 10))
    if isinstance(member, Value):
        return comment + dump({name: member.default})
    inner = "".join(_entry(each, part) for each, part in member.members.items())
    return f"{comment}{name}:\n{textwrap.indent(inner, '  ')}"


def schema_file(group: Group) -> str:
    """What may stand in values, as JSON schema. `global` is what Helm itself adds to the values of a subchart."""
    schema = _schema(group)
    schema["properties"]["global"] = {"type": "object"}
    return json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", **schema}, indent=1) + "\n"


def _schema(member: Value | Group) -> Schema:
    meaning = {"description": member.meaning} if member.meaning else {}
    if isinstance(member, Value):
        return {**meaning, **member.schema}
    return {
        **meaning,
        "type": "object",
        "additionalProperties": False,
        "required": [
            name for name, part in member.members.items() if isinstance(part, Group) or not part.may_be_null
        ],
        "properties": {name: _schema(part) for name, part in member.members.items()},
    }


def values_table(group: Group) -> str:
    """The values as a table in Markdown."""
    rows = [
        f"| `{name}` | {_shown(value.default)} | {value.meaning} |\n" for name, value in _described(group)
    ]
    return "| Value | Default | What |\n|---|---|---|\n" + "".join(rows)


def _described(group: Group, path: str = "") -> Iterator[tuple[str, Value]]:
    """All values; a switch means what its group means."""
    for name, member in group.members.items():
        if isinstance(member, Value):
            meaning = member.meaning or (group.meaning if name == "enabled" else "")
            yield f"{path}{name}", Value(meaning, member.default, member.schema)
        else:
            yield from _described(member, f"{path}{name}.")


def _shown(default: Any) -> str:
    shown = json.dumps(default)
    return f"`{shown}`" if len(shown) < 40 else "see values.yaml"
