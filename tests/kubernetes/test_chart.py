"""The Helm chart: it makes what the overlays make, refuses values that mean nothing, and shows texts as they are."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.chart import FOLDER as CHART
from stromboli.admission.options import parse as admission_options
from stromboli.controllers.options import parse as controllers_options
from stromboli.scheduler.options import parse as scheduler_options
from tests.deploy.manifests import DEPLOY, ROOT, Manifest, documents, only
from tests.kubernetes.charts import Helm, HelmFailed, by_name, objects

pytestmark = pytest.mark.real_only  # none of these needs an API server: once is enough

INSTALL = (ROOT / "docs" / "install.md").read_text()
NOT_HELMS = {
    "Namespace": "a release cannot make the namespace that it is kept in: --create-namespace",
    "Queue": "the scheduler makes `root` and `default`; webhooks would be asked before they answer",
}
"""Objects of the overlays that are not in the chart."""
COMPLETE = ["crds.install=false"]
STANDALONE = [*COMPLETE, "controllers.enabled=false", "admission.enabled=false"]
TAKEOVER = [*STANDALONE, "scheduler.policy.existingConfigMap=volcano-scheduler-configmap"]
COMPONENTS = {
    "debug-endpoints": "scheduler.debugEndpoints.enabled",
    "explain": "scheduler.explain.enabled",
    "node-lock": "scheduler.nodeLock.enabled",
    "node-usage": "scheduler.nodeUsage.enabled",
    "job-ssh": "controllers.jobSsh.enabled",
    "sharding": "controllers.sharding.enabled",
    "ufm": "controllers.ufm.enabled",
}
DOCUMENTED = re.findall(r"helm (?:install|upgrade) stromboli deploy/chart[^`\n]*", INSTALL)
MONITORING = [f"monitoring.{part}.enabled=true" for part in ("alerts", "serviceMonitor", "dashboards")]
TLS = ["dashboard.enabled=true", "dashboard.tls.secretName=stromboli-dashboard-tls"]


@pytest.fixture
def chart(helm: Path, tmp_path: Path) -> Helm:
    return Helm(helm, tmp_path)


def _kustomized(folder: Path) -> list[Manifest]:
    done = subprocess.run(("kubectl", "kustomize", str(folder)), capture_output=True, text=True, check=True)
    return [each for each in objects(done.stdout) if each["kind"] not in NOT_HELMS]


def _overlay(folder: Path, **plan: Any) -> list[Manifest]:
    """What kustomize makes of an overlay of a user's own."""
    shutil.copytree(DEPLOY, folder / "deploy", ignore=shutil.ignore_patterns("chart", "*.py"))
    mine = folder / "deploy" / "overlays" / "mine"
    mine.mkdir()
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (mine / "kustomization.yaml").write_text(yaml.safe_dump({**head, **plan}))
    return _kustomized(mine)


def test_helm_has_nothing_to_complain_about(chart: Helm) -> None:
    chart.run("lint", "--strict", str(CHART))
    chart.run("lint", "--strict", str(CHART), "--set", ",".join([*MONITORING, *TLS]))


@pytest.mark.parametrize(
    ("overlay", "settings"), [("complete", COMPLETE), ("standalone", STANDALONE), ("takeover", TAKEOVER)]
)
def test_an_overlay_and_the_chart_make_the_same(chart: Helm, overlay: str, settings: list[str]) -> None:
    assert by_name(chart.template(settings)) == by_name(_kustomized(DEPLOY / "overlays" / overlay))


def test_the_kinds_are_the_same_and_stay_when_the_release_goes(chart: Helm) -> None:
    kinds = [each for each in chart.template() if each["kind"] == "CustomResourceDefinition"]
    assert by_name(kinds) == by_name(_kustomized(DEPLOY / "crds"))
    assert {each["metadata"]["annotations"]["helm.sh/resource-policy"] for each in kinds} == {"keep"}


@pytest.mark.parametrize("command", DOCUMENTED)
def test_a_command_of_the_documentation_is_one_that_helm_understands(chart: Helm, command: str) -> None:
    _, _, release, _, *flags = shlex.split(command)
    given = [flag for flag in flags if not flag.endswith("reuse-values")]
    assert chart.run("template", release, str(CHART), *given)


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_and_its_value_make_the_same(chart: Helm, tmp_path: Path, component: str) -> None:
    theirs = _overlay(tmp_path, resources=["../complete"], components=[f"../../components/{component}"])
    plain = chart.template(COMPLETE)
    ours = chart.template([*COMPLETE, f"{COMPONENTS[component]}=true"])
    assert by_name(ours) == by_name(theirs)
    assert by_name(ours) != by_name(plain)


def test_plugins_of_ones_own_are_mounted_the_same(chart: Helm, tmp_path: Path) -> None:
    theirs = _overlay(tmp_path, resources=["../complete"], components=["../../components/plugins"])
    ours = chart.template([*COMPLETE, "scheduler.plugins.configMap=stromboli-plugins"])
    assert by_name(ours) == by_name(theirs)


def test_the_dashboard_with_and_without_tls_is_the_same(chart: Helm, tmp_path: Path) -> None:
    assert by_name(chart.template([*COMPLETE, "dashboard.enabled=true"])) == by_name(
        _kustomized(DEPLOY / "overlays" / "complete") + _kustomized(DEPLOY / "dashboard")
    )
    theirs = _overlay(
        tmp_path,
        resources=["../complete", "../../dashboard"],
        components=["../../components/dashboard-tls"],
    )
    assert by_name(chart.template([*COMPLETE, *TLS])) == by_name(theirs)


def test_everything_together_is_the_same(chart: Helm, tmp_path: Path) -> None:
    theirs = _overlay(
        tmp_path,
        resources=["../complete", "../../dashboard", "../../monitoring"],
        components=[f"../../components/{name}" for name in COMPONENTS],
    )
    switches = [f"{value}=true" for value in COMPONENTS.values()]
    ours = chart.template([*COMPLETE, "dashboard.enabled=true", *MONITORING, *switches])
    assert len(ours) == len(theirs)
    assert _sorted_arguments(ours) == _sorted_arguments(theirs)


def _sorted_arguments(manifests: list[Manifest]) -> Any:
    """Components add their flags in any order."""
    for each in manifests:
        if each["kind"] == "Deployment":
            each["spec"]["template"]["spec"]["containers"][0]["args"].sort()
    return by_name(manifests)


def test_an_overlay_of_ones_own_can_be_said_in_values(chart: Helm, tmp_path: Path) -> None:
    pod = "/spec/template/spec"
    changes = [
        {"op": "replace", "path": "/spec/replicas", "value": 3},
        {"op": "add", "path": f"{pod}/containers/0/args/-", "value": "--scheduler-name=a"},
        {"op": "add", "path": f"{pod}/containers/0/args/-", "value": "--schedule-period=500ms"},
        {"op": "add", "path": f"{pod}/containers/0/args/-", "value": "-v=4"},
        {"op": "add", "path": f"{pod}/containers/0/args/-", "value": "--kube-api-qps=500"},
        {"op": "add", "path": f"{pod}/nodeSelector", "value": {"pool": "system"}},
        {"op": "add", "path": f"{pod}/tolerations", "value": [{"operator": "Exists"}]},
        {"op": "add", "path": f"{pod}/imagePullSecrets", "value": [{"name": "registry"}]},
        {"op": "remove", "path": f"{pod}/affinity"},
        {"op": "replace", "path": f"{pod}/priorityClassName", "value": "mine"},
        {"op": "replace", "path": f"{pod}/containers/0/resources/requests/cpu", "value": "2"},
        {"op": "replace", "path": f"{pod}/volumes/0/configMap/name", "value": "prod-scheduler-configmap"},
    ]
    theirs = _overlay(
        tmp_path,
        resources=["../takeover"],
        images=[{"name": "stromboli", "newName": "example.com/s", "newTag": "1"}],
        patches=[{"target": {"kind": "Deployment"}, "patch": yaml.safe_dump(changes)}],
    )
    values: Manifest = {
        "image": {"repository": "example.com/s", "tag": "1", "pullSecrets": ["registry"]},
        "scheduler": {
            "replicas": 3,
            "names": ["a"],
            "schedulePeriod": "500ms",
            "logLevel": 4,
            "extraArgs": ["--kube-api-qps=500"],
            "nodeSelector": {"pool": "system"},
            "tolerations": [{"operator": "Exists"}],
            "affinity": None,
            "priorityClassName": "mine",
            "resources": {"requests": {"cpu": "2"}},
            "policy": {"existingConfigMap": "prod-scheduler-configmap"},
        },
    }
    assert by_name(chart.template(STANDALONE, values)) == by_name(theirs)


def test_a_digest_counts_instead_of_a_tag(chart: Helm) -> None:
    digest = "sha256:" + "0123456789abcdef" * 4
    made = chart.template([*COMPLETE, "image.tag=v1", f"image.digest={digest}"])
    images = {_container(each)["image"] for each in made if each["kind"] == "Deployment"}
    assert images == {f"stromboli@{digest}"}


def _container(deployment: Manifest) -> Manifest:
    container: Manifest = deployment["spec"]["template"]["spec"]["containers"][0]
    return container


def test_all_components_are_told_what_schedulers_are_called(chart: Helm) -> None:
    made = chart.template(
        [*COMPLETE, "scheduler.names={a,b.c}", "controllers.logLevel=4", "admission.logLevel=4"]
    )
    parsers = {
        "scheduler": scheduler_options,
        "controllers": controllers_options,
        "admission": admission_options,
    }
    for part, parse in parsers.items():
        flags = _container(only(made, "Deployment", f"stromboli-{part}"))["args"][1:]
        options: Any = parse([flag.replace("$(NAMESPACE)", "volcano-system") for flag in flags])
        assert options.scheduler_name == ("a", "b.c")
    conditions = {
        condition["expression"]
        for webhook in only(made, "ValidatingWebhookConfiguration")["webhooks"]
        for condition in webhook.get("matchConditions", ())
    }
    of_pods = {condition for condition in conditions if "schedulerName" in condition}
    assert of_pods == {'has(object.spec.schedulerName) && object.spec.schedulerName in ["a","b.c"]'}


def test_the_namespace_is_that_of_the_release_whatever_it_is_called(chart: Helm) -> None:
    text = chart.run(
        "template",
        "s",
        str(CHART),
        "--namespace",
        "123",
        "--set",
        ",".join(["dashboard.enabled=true", *MONITORING]),
    )
    assert "volcano-system" not in text
    assert {each["metadata"].get("namespace", "123") for each in objects(text)} == {"123"}
    assert "request.userInfo.username != 'system:serviceaccount:123:stromboli-controllers'" in text


@pytest.mark.parametrize(
    "text",
    [
        "{{ .Values.image }} {{ fail `no` }}",
        "  indented\nnot: indented\n---\nkind: Secret\n",
        "\ttab: 'quotes' \"double\" `back` # comment \\ \\n",
        "tiers:\r\n- &a *a !!python/object:os.system\r\n",
        "nötig 名前 \u2028 \x7f 🌋",
    ],
)
def test_texts_arrive_as_they_are(chart: Helm, text: str) -> None:
    argument = f"--plugins-dir={text}"
    values: Manifest = {
        "scheduler": {"policy": {"text": text}, "extraArgs": [argument]},
        "controllers": {"sharding": {"enabled": True, "config": text}},
    }
    made = chart.template(COMPLETE, values)
    assert only(made, "ConfigMap", "volcano-scheduler-configmap")["data"] == {"volcano-scheduler.conf": text}
    assert only(made, "ConfigMap", "volcano-sharding-configmap")["data"] == {"sharding.yaml": text}
    assert _container(only(made, "Deployment", "stromboli-scheduler"))["args"][-1] == argument


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("schedulr.replicas=3", "additional properties 'schedulr' not allowed"),
        ("scheduler.replica=3", "at '/scheduler': additional properties 'replica' not allowed"),
        ("scheduler.replicas=two", "at '/scheduler/replicas': got string, want integer"),
        ("scheduler.replicas=-1", "at '/scheduler/replicas': minimum: got -1, want 0"),
        ("scheduler.replicas=null", "at '/scheduler': missing property 'replicas'"),
        ("scheduler.enabled=yes", "at '/scheduler/enabled': got string, want boolean"),
        ("scheduler.schedulePeriod=1", "at '/scheduler/schedulePeriod': got number, want string"),
        ("scheduler.schedulePeriod=soon", "at '/scheduler/schedulePeriod': 'soon' does not match"),
        ("scheduler.names={Volcano}", "at '/scheduler/names/0': 'Volcano' does not match"),
        ("scheduler.names={a' || true}", "at '/scheduler/names/0'"),
        (
            "scheduler.extraArgs={kube-api-qps=3}",
            "at '/scheduler/extraArgs/0': 'kube-api-qps=3' does not match",
        ),
        ("scheduler.resources.cpu=1", "at '/scheduler/resources': additional properties 'cpu' not allowed"),
        ("scheduler.tolerations[0].effekt=NoSchedule", "additional properties 'effekt' not allowed"),
        ("scheduler.nodeSelector.pool=a b", "at '/scheduler/nodeSelector/pool': 'a b' does not match"),
        ("scheduler.policy.text=", "at '/scheduler/policy/text': minLength"),
        (
            "image.pullPolicy=Sometimes",
            "at '/image/pullPolicy': value must be one of 'IfNotPresent', 'Always'",
        ),
        ("image.digest=sha256:abc", "at '/image/digest': 'sha256:abc' does not match"),
        ("dashboard.replicas=2", "at '/dashboard': additional properties 'replicas' not allowed"),
        ("custom.scheduler_replicas=2", "additional properties 'custom' not allowed"),
    ],
)
def test_a_value_that_means_nothing_is_refused(chart: Helm, setting: str, words: str) -> None:
    with pytest.raises(HelmFailed) as refusal:
        chart.template([setting])
    assert words in str(refusal.value)


def test_the_chart_can_be_part_of_another(chart: Helm, tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    shutil.copytree(CHART, parent / "charts" / "stromboli")
    (parent / "Chart.yaml").write_text("apiVersion: v2\nname: parent\nversion: 1.0.0\n")
    (parent / "values.yaml").write_text("stromboli: {scheduler: {replicas: 5}, crds: {install: false}}\n")
    made = objects(chart.run("template", "p", str(parent)))
    assert only(made, "Deployment", "stromboli-scheduler")["spec"]["replicas"] == 5


def test_an_older_kubernetes_than_the_webhooks_need_is_refused(chart: Helm) -> None:
    chart.run("template", "s", str(CHART), "--kube-version", "1.30.0-gke.1")
    with pytest.raises(HelmFailed, match="incompatible with Kubernetes"):
        chart.run("template", "s", str(CHART), "--kube-version", "1.29.9")


def test_it_can_be_packaged(chart: Helm, tmp_path: Path) -> None:
    chart.run("package", str(CHART), "--destination", str(tmp_path))
    (description,) = documents(CHART / "Chart.yaml")
    (package,) = tmp_path.glob("*.tgz")
    assert package.name == f"stromboli-{description['version']}.tgz"
    assert chart.run("show", "readme", str(package)).startswith("# Stromboli")
