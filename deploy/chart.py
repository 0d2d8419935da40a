"""Writes the Helm chart in `deploy/chart` from the manifests: `python -m deploy.chart`, or `make chart`.

The manifests that kustomize takes are the one source. The templates are those manifests with values put in at named
fields (`_put_values`), and with what components change, on a condition (`_put_patch`). What needs no values, the CRDs
and Grafana's dashboards, is linked into the chart, and becomes part of its package. A test fails when a file is out of
date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from deploy.chart_values import schema_file, values, values_file, values_table
from deploy.kustomizations import (
    DEPLOY,
    Manifest,
    Patch,
    build,
    containers,
    documents,
    only,
    patches,
    resources,
)
from deploy.template_text import (
    block,
    dump,
    either,
    expression,
    files,
    item_if_set,
    items,
    mapping,
    only_if,
    template,
    text_if_set,
)
from stromboli import __version__

FOLDER = DEPLOY / "chart"
WRITTEN_BY_HAND = (".helmignore", "templates/NOTES.txt", "templates/_helpers.tpl")
HEADER = "# Written by `make chart` from the manifests in deploy.\n"
OLDEST_KUBERNETES = "1.30.0"
"""The first with match conditions of webhooks in version v1."""
NAMESPACE = "volcano-system"
"""The namespace in the manifests."""
PARTS = ("scheduler", "controllers", "admission", "dashboard")
COMPONENTS = {
    "debug-endpoints": ("scheduler", ".Values.scheduler.debugEndpoints.enabled"),
    "explain": ("scheduler", ".Values.scheduler.explain.enabled"),
    "node-lock": ("scheduler", ".Values.scheduler.nodeLock.enabled"),
    "node-usage": ("scheduler", ".Values.scheduler.nodeUsage.enabled"),
    "plugins": ("scheduler", 'ne .Values.scheduler.plugins.configMap ""'),
    "job-ssh": ("controllers", ".Values.controllers.jobSsh.enabled"),
    "sharding": ("controllers", ".Values.controllers.sharding.enabled"),
    "ufm": ("controllers", ".Values.controllers.ufm.enabled"),
    "dashboard-tls": ("dashboard", 'ne .Values.dashboard.tls.secretName ""'),
}
"""The part that a component is for, and when it is there."""
DEFINITIONS = """\
{{- if .Values.crds.install }}
{{- range $file, $_ := .Files.Glob "files/crds/*_*.yaml" }}
---
{{ $.Files.Get $file }}
{{- end }}
{{- end }}
"""
"""The CRDs as they are: `files` of the chart leads to them and to Grafana's dashboards, so that there is one copy."""
MONITORING = {"PrometheusRule": "alerts", "ServiceMonitor": "serviceMonitor", "ConfigMap": "dashboards"}
STAGES = {"": "", "a": "-alpha", "b": "-beta", "rc": "-rc", ".dev": "-0.dev", ".post": "+post"}
"""Stages of a Python version in the words of Semantic Versioning, in the same order."""
README = """\
# Stromboli

A batch scheduler for Kubernetes, with Volcano's objects and configuration. The chart installs what
`kubectl apply -k deploy/overlays/complete` does, or less:

```console
$ helm install stromboli deploy/chart -n volcano-system --create-namespace \\
    --set image.repository=registry.example.com/stromboli
```

There is one release in a cluster: objects have the same names whatever it is called. How to take over from Volcano,
upgrade and uninstall is in docs/install.md of the source. A value that is not below, or of a wrong type, is refused.

"""


def main() -> None:
    """Bring every file up to date."""
    for name, text in generated().items():
        file = FOLDER / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            print(f"{name}: updated")


def generated() -> dict[str, str]:
    """The text of each file by its path in the chart."""
    all_values = values()
    return {
        "Chart.yaml": HEADER + dump(_description()),
        "values.yaml": HEADER + values_file(all_values),
        "values.schema.json": schema_file(all_values),
        "README.md": README + values_table(all_values),
        **{f"templates/{name}.yaml": text for name, text in _templates().items()},
    }


def _description() -> Manifest:
    return {
        "apiVersion": "v2",
        "name": "stromboli",
        "description": "A batch scheduler for Kubernetes in Python, with Volcano's objects and configuration.",
        "type": "application",
        "version": semantic_version(__version__),
        "appVersion": __version__,
        "kubeVersion": f">={OLDEST_KUBERNETES}-0",
        "keywords": ["scheduler", "batch", "volcano", "gang-scheduling", "hpc"],
    }


def semantic_version(version: str) -> str:
    """A version of the package as Semantic Versioning writes it, which is what Helm reads."""
    parts = re.fullmatch(r"(\d+\.\d+\.\d+)(a|b|rc|\.dev|\.post|)(\d*)", version)
    if parts is None or bool(parts[2]) != bool(parts[3]):
        raise ValueError(f"{version}: a version such as 1.2.3, 1.2.3rc1 or 1.2.3.dev0 can be a chart's")
    return f"{parts[1]}{STAGES[parts[2]]}{'.' if parts[2] else ''}{parts[3]}"


def _templates() -> dict[str, str]:
    return {"crds": HEADER + DEFINITIONS, **_parts(), **_policy(), **_components(), **_monitoring()}


def _parts() -> dict[str, str]:
    return {part: _template(f".Values.{part}.enabled", _part(part)) for part in PARTS}


def _part(part: str) -> list[Manifest]:
    """The objects of a part, with values and with what components change in them."""
    objects = build(DEPLOY / part)
    _put_values(part, only(objects, "Deployment"))
    for name, (owner, condition) in COMPONENTS.items():
        if owner == part:
            for patch in patches(DEPLOY / "components" / name):
                _put_patch(objects, patch, condition)
    for container in (each for manifest in objects for each in containers(manifest)):
        container["args"].append(items(f".Values.{part}.extraArgs", "quote ."))
    _put_scheduler_names(objects)
    _put_accounts(objects)
    return objects


def _put_values(part: str, deployment: Manifest) -> None:
    """Values of the pods of a part in the place of what its Deployment says."""
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    if part != "dashboard":
        deployment["spec"]["replicas"] = expression(f"int .Values.{part}.replicas")
    pod["imagePullSecrets"] = block('include "stromboli.pullSecrets" . | fromYamlArray')
    pod["priorityClassName"] = text_if_set(f".Values.{part}.priorityClassName")
    for field in ("nodeSelector", "tolerations", "affinity"):
        pod[field] = block(f".Values.{part}.{field}")
    container["image"] = expression('include "stromboli.image" . | quote')
    container["imagePullPolicy"] = expression(".Values.image.pullPolicy | quote")
    container["resources"] = block(f".Values.{part}.resources")
    container["args"] += _flags(part)


def _flags(part: str) -> list[Any]:
    if part == "dashboard":
        return [items(".Values.dashboard.allowedHosts", 'printf "--allowed-host=%s" . | quote')]
    flags = [items(".Values.scheduler.names", 'printf "--scheduler-name=%s" . | quote')]
    if part == "scheduler":
        period = ".Values.scheduler.schedulePeriod"
        flags.append(item_if_set(period, 'printf "--schedule-period=%s" . | quote'))
    flags.append(item_if_set(f".Values.{part}.logLevel", 'printf "-v=%d" (int .) | quote'))
    return flags


def _put_patch(objects: list[Manifest], patch: Patch, condition: str) -> None:
    """What a component changes in an object, on a condition."""
    place: Any = only(objects, patch.kind, patch.name)
    for step in patch.path[:-1]:
        place = place[int(step)] if isinstance(place, list) else place[step]
    last = patch.path[-1]
    if patch.operation == "add" and isinstance(place, list) and last == "-":
        place.append(only_if(condition, patch.value))
    elif patch.operation == "add" and isinstance(place, dict) and last not in place:
        place[last] = only_if(condition, patch.value)
    elif patch.operation == "replace" and isinstance(place[last], int):
        place[last] = either(condition, patch.value, place[last])
    else:
        raise ValueError(f"{patch}: this cannot be said in a chart yet")


def _put_scheduler_names(objects: list[Manifest]) -> None:
    """Pods that webhooks are asked about are those of our schedulers, whatever these are called."""
    for condition in _match_conditions(objects):
        if "object.spec.schedulerName" in condition["expression"]:
            default = json.dumps(condition["expression"])
            condition["expression"] = expression(
                f'include "stromboli.ourPods" (dict "names" .Values.scheduler.names "default" {default}) | quote'
            )


def _put_accounts(objects: list[Manifest]) -> None:
    """Accounts that webhooks do not review are those of the release's namespace."""
    for condition in _match_conditions(objects):
        text = condition["expression"]
        if isinstance(text, str) and NAMESPACE in text:
            condition["expression"] = expression(
                f"{json.dumps(text)} | replace {json.dumps(NAMESPACE)} .Release.Namespace | quote"
            )


def _match_conditions(objects: list[Manifest]) -> Iterator[Manifest]:
    webhooks = (webhook for manifest in objects for webhook in manifest.get("webhooks", ()))
    return (condition for webhook in webhooks for condition in webhook.get("matchConditions", ()))


def _policy() -> dict[str, str]:
    (config_map,) = documents(DEPLOY / "overlays" / "standalone" / "configmap.yaml")
    _put_text(config_map, ".Values.scheduler.policy.text")
    condition = "and .Values.scheduler.enabled (not .Values.scheduler.policy.existingConfigMap)"
    return {"policy": _template(condition, [config_map])}


def _put_text(config_map: Manifest, value: str) -> None:
    """A value as the one file of a ConfigMap; quoted, as `toYaml` says nothing of what it cannot write."""
    (file,) = config_map["data"]
    config_map["data"][file] = expression(f"{value} | quote")


def _components() -> dict[str, str]:
    added = {name: resources(DEPLOY / "components" / name) for name in COMPONENTS}
    _put_text(only(added["sharding"], "ConfigMap"), ".Values.controllers.sharding.config")
    return {
        f"components/{name}": _template(f"and .Values.{part}.enabled {condition}", added[name])
        for name, (part, condition) in COMPONENTS.items()
        if added[name]
    }


def _monitoring() -> dict[str, str]:
    templates = {}
    for manifest in build(DEPLOY / "monitoring"):
        switch = MONITORING[manifest["kind"]]
        labels = " ".join(
            json.dumps(word) for pair in manifest["metadata"]["labels"].items() for word in pair
        )
        manifest["metadata"]["labels"] = mapping(f"merge (dict {labels}) .Values.monitoring.labels")
        if switch == "dashboards":
            manifest["data"] = files("files/dashboards/*.json")
        templates[f"monitoring/{switch}"] = _template(f".Values.monitoring.{switch}.enabled", [manifest])
    return templates


def _template(condition: str, objects: Iterable[Any]) -> str:
    return HEADER + template(condition, objects)


if __name__ == "__main__":
    main()
