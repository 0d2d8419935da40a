import base64

import pytest

from stromboli.embedded.nodes.real.config_references import references
from stromboli.embedded.nodes.real.container_environment import ContainerError, command, environment, expand
from tests.embedded.nodes.node_pods import pod

OBJECTS = {
    ("ConfigMap", "cm"): {"metadata": {"name": "cm"}, "data": {"A": "1", "not a name": "x", "b.c": "2"}},
    ("Secret", "s"): {"metadata": {"name": "s"}, "data": {"P": base64.b64encode(b"pass").decode()}},
    ("Secret", "broken"): {"metadata": {"name": "broken"}, "data": {"P": "!"}},
}
POD = pod("web", meta={"labels": {"app": "x"}, "annotations": {"note": "hi"}})


def made(**container):
    return environment(POD, container, lambda kind, name: OBJECTS.get((kind, name)), {"STROMBOLI_ROOT": "/r"})


def value(source, **container):
    return made(env=[{"name": "X", "valueFrom": source}], **container).get("X")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"fieldRef": {"fieldPath": "metadata.name"}}, "web"),
        ({"fieldRef": {"fieldPath": "metadata.namespace"}}, "default"),
        ({"fieldRef": {"fieldPath": "metadata.labels['app']"}}, "x"),
        ({"fieldRef": {"fieldPath": "metadata.annotations['note']"}}, "hi"),
        ({"fieldRef": {"fieldPath": "metadata.labels['none']"}}, ""),
        ({"fieldRef": {"fieldPath": "spec.nodeName"}}, "n1"),
        ({"fieldRef": {"fieldPath": "status.podIP"}}, "127.0.0.1"),
        ({"configMapKeyRef": {"name": "cm", "key": "A"}}, "1"),
        ({"secretKeyRef": {"name": "s", "key": "P"}}, "pass"),
        ({"secretKeyRef": {"name": "none", "key": "P", "optional": True}}, None),
        ({"configMapKeyRef": {"name": "cm", "key": "none", "optional": True}}, None),
        ({"resourceFieldRef": {"resource": "requests.cpu"}}, "2"),
        ({"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}, "1024"),
    ],
)
def test_a_variable_comes_from_elsewhere(source, expected):
    sizes = {"requests": {"cpu": "1500m"}, "limits": {"memory": "1Gi"}}
    assert value(source, resources=sizes) == expected


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"fieldRef": {"fieldPath": "metadata.nonsense"}}, "unsupported fieldPath"),
        ({"configMapKeyRef": {"name": "cm", "key": "none"}}, "couldn't find key none"),
        ({"secretKeyRef": {"name": "none", "key": "P"}}, 'secret "none" not found'),
        ({"secretKeyRef": {"name": "broken", "key": "P"}}, "not base64"),
        ({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "x"}}, "bad quantity"),
    ],
)
def test_what_is_missing_is_named(source, problem):
    with pytest.raises(ContainerError, match=problem):
        value(source)


def test_variables_may_use_those_before_them():
    variables = made(
        envFrom=[{"prefix": "CM_", "configMapRef": {"name": "cm"}}],
        env=[{"name": "B", "value": "$(CM_A)-$(LATER)"}, {"name": "LATER", "value": "$$(B)"}],
    )
    assert (variables["B"], variables["LATER"], variables["HOSTNAME"]) == ("1-$(LATER)", "$(B)", "web")
    assert variables["CM_b.c"] == "2"
    assert "CM_not a name" not in variables


def test_our_own_secrets_are_not_handed_down(monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "secret")
    assert "SOME_TOKEN" not in made()
    assert "PATH" in made()


def test_a_command_is_put_together():
    container = {"command": ["echo", "$(A)"], "args": ["$$(A)", "$(B)"]}
    assert command(container, {"A": "1"}) == ["echo", "1", "$(A)", "$(B)"]
    assert command({"args": ["echo", "$(A)"]}, {"A": "1"}) == ["echo", "1"]  # `kubectl run ... -- echo`
    with pytest.raises(ContainerError, match="no command"):
        command({"args": []}, {})
    with pytest.raises(ContainerError, match="zero byte"):
        command({"command": ["a\0b"]}, {})


def test_a_dollar_alone_stays():
    assert expand("$HOME ${X} $ $(", {"HOME": "no"}, 0) == "$HOME ${X} $ $("


def test_variables_that_use_each_other_cannot_say_more_than_a_system_takes():
    doubling = [{"name": "V0", "value": "x" * 1000}]
    doubling += [{"name": f"V{n}", "value": f"$(V{n - 1})$(V{n - 1})"} for n in range(1, 60)]
    with pytest.raises(
        ContainerError, match=r"\$\(V10\): variables and commands may have 2097152 characters"
    ):
        environment(pod(), {"env": doubling}, lambda kind, name: None, {})
    container = {"command": ["echo", "$(A)$(A)$(A)"]}
    with pytest.raises(ContainerError, match=r"\$\(A\)"):
        command(container, {"A": "x" * 1_000_000})
    assert len(command({"command": ["$(A)$(A)"]}, {"A": "x" * 1_000_000})[0]) == 2_000_000


def test_all_that_a_pod_refers_to_is_found():
    given = pod(
        spec={
            "containers": [{"name": "a", "envFrom": [{"secretRef": {"name": "s1"}}]}],
            "initContainers": [
                {"name": "i", "env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c1"}}}]}
            ],
            "volumes": [
                {"name": "v", "secret": {"secretName": "s2"}},
                {"name": "w", "projected": {"sources": [{"configMap": {"name": "c2"}}]}},
                {"name": "x", "emptyDir": {}},
            ],
        }
    )
    assert references(given) == {("Secret", "s1"), ("ConfigMap", "c1"), ("Secret", "s2"), ("ConfigMap", "c2")}
