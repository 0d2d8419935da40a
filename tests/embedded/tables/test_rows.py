"""Rows per kind, against what a real API server prints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.tables.crd_printers import crd_printer
from stromboli.embedded.tables.table import table
from tests.built_in_kinds import PRINTERS, printer_for

NOW = 1_700_000_000.0
CREATED = "2023-11-14T22:12:20Z"  # a minute before


def row(group, resource, **fields):
    fields.setdefault("metadata", {}).setdefault("name", "x")
    fields["metadata"].setdefault("creationTimestamp", CREATED)
    printer = printer_for(f"{resource}.{group}" if group else resource)
    cells = printer.print_row(fields, NOW)
    assert len(cells) == len(printer.columns)
    return dict(zip([column.name for column in printer.columns], cells, strict=True))


def pod(phase="Running", states=(), init=(), specs=1, conditions=(), deleted=False, **status):
    meta = {"deletionTimestamp": CREATED} if deleted else {}
    return row(
        "",
        "pods",
        metadata=meta,
        spec={
            "containers": [{"name": f"c{index}"} for index in range(specs)],
            "initContainers": [{"name": f"i{index}"} for index, _ in enumerate(init)],
        },
        status={
            "phase": phase,
            "containerStatuses": [
                {"name": f"c{index}", "ready": "running" in state, "state": state}
                for index, state in enumerate(states)
            ],
            "initContainerStatuses": [
                {"name": f"i{index}", "state": state} for index, state in enumerate(init)
            ],
            "conditions": [{"type": type, "status": "True"} for type in conditions],
            **status,
        },
    )


RUNS, DONE = {"running": {}}, {"terminated": {"exitCode": 0, "reason": "Completed"}}


@pytest.mark.parametrize(
    ("cells", "ready", "state"),
    [
        (pod("Pending", specs=2), "0/2", "Pending"),
        (pod(states=[RUNS]), "1/1", "Running"),
        (pod("Succeeded", states=[DONE]), "0/1", "Completed"),
        (pod("Failed", states=[{"terminated": {"exitCode": 3, "reason": "Error"}}]), "0/1", "Error"),
        (pod("Failed", states=[{"terminated": {"exitCode": 3}}]), "0/1", "ExitCode:3"),
        (pod("Failed", states=[{"terminated": {"signal": 9}}]), "0/1", "Signal:9"),
        (pod("Failed", reason="Evicted"), "0/1", "Evicted"),
        (pod(states=[{"waiting": {"reason": "CrashLoopBackOff"}}]), "0/1", "CrashLoopBackOff"),
        (pod("Pending", init=[DONE, RUNS]), "0/1", "Init:1/2"),
        (pod("Pending", init=[{"terminated": {"exitCode": 1, "reason": "Error"}}]), "0/1", "Init:Error"),
        (pod("Pending", init=[{"terminated": {"exitCode": 2}}]), "0/1", "Init:ExitCode:2"),
        (pod(states=[DONE, RUNS], specs=2, conditions=["Ready"]), "1/2", "Running"),
        (pod(states=[DONE, RUNS], specs=2), "1/2", "NotReady"),
        (pod(states=[RUNS], deleted=True), "1/1", "Terminating"),
        (pod("Succeeded", states=[DONE], deleted=True), "0/1", "Completed"),
        (pod(states=[RUNS], deleted=True, reason="NodeLost"), "1/1", "Unknown"),
    ],
)
def test_the_status_column_of_a_pod(cells, ready, state):
    assert (cells["Ready"], cells["Status"], cells["Age"]) == (ready, state, "60s")


def test_the_restarts_column_has_the_time_of_the_last_restart():
    last = {"terminated": {"finishedAt": "2023-11-14T22:13:10Z"}}
    cells = row(
        "",
        "pods",
        spec={"containers": [{"name": "a"}], "nodeName": "n1"},
        status={
            "podIP": "10.0.0.3",
            "containerStatuses": [{"restartCount": 2, "state": RUNS, "lastState": last}],
        },
    )
    assert (cells["Restarts"], cells["IP"], cells["Node"]) == ("2 (10s ago)", "10.0.0.3", "n1")
    assert cells["Nominated Node"] == cells["Readiness Gates"] == "<none>"


def test_a_gated_pod_is_shown_as_such():
    gate = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    assert row("", "pods", status={"phase": "Pending", "conditions": [gate]})["Status"] == "SchedulingGated"


@pytest.mark.parametrize(
    ("group", "resource", "content", "expected"),
    [
        (
            "",
            "nodes",
            {
                "metadata": {"labels": {"node-role.kubernetes.io/worker": ""}},
                "spec": {"unschedulable": True},
                "status": {
                    "conditions": [{"type": "Ready", "status": "Unknown"}],
                    "nodeInfo": {"kubeletVersion": "v1"},
                    "addresses": [{"type": "InternalIP", "address": "10.1.1.1"}],
                },
            },
            {
                "Status": "NotReady,SchedulingDisabled",
                "Roles": "worker",
                "Version": "v1",
                "Internal-IP": "10.1.1.1",
            },
        ),
        ("", "nodes", {}, {"Status": "Unknown", "Roles": "<none>", "External-IP": "<none>"}),
        ("", "namespaces", {"status": {"phase": "Active"}}, {"Status": "Active"}),
        (
            "",
            "events",
            {
                "involvedObject": {"kind": "Pod", "name": "p"},
                "lastTimestamp": CREATED,
                "count": 3,
                "type": "Normal",
                "message": "hello\n",
            },
            {"Last Seen": "60s", "Object": "pod/p", "Count": 3, "Message": "hello"},
        ),
        ("coordination.k8s.io", "leases", {"spec": {"holderIdentity": "me"}}, {"Holder": "me"}),
        (
            "apps",
            "deployments",
            {
                "spec": {
                    "replicas": 3,
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
                },
                "status": {"readyReplicas": 1, "updatedReplicas": 2},
            },
            {"Ready": "1/3", "Up-to-date": 2, "Available": 0, "Images": "i", "Selector": "a=b"},
        ),
        (
            "batch",
            "jobs",
            {
                "spec": {"completions": 2},
                "status": {
                    "succeeded": 2,
                    "startTime": CREATED,
                    "completionTime": "2023-11-14T22:12:50Z",
                    "conditions": [{"type": "Complete", "status": "True"}],
                },
            },
            {"Status": "Complete", "Completions": "2/2", "Duration": "30s"},
        ),
        (
            "batch",
            "jobs",
            {"spec": {"parallelism": 4}},
            {"Completions": "0/1 of 4", "Duration": "", "Status": "Running"},
        ),
        (
            "",
            "resourcequotas",
            {"status": {"hard": {"limits.cpu": "4", "pods": "10"}, "used": {"pods": "3"}}},
            {"Request": "pods: 3/10", "Limit": "limits.cpu: 0/4"},
        ),
        (
            "",
            "persistentvolumes",
            {
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                    "claimRef": {"namespace": "a", "name": "b"},
                    "storageClassName": "fast",
                },
                "status": {"phase": "Bound"},
            },
            {"Access Modes": "RWO,RWX", "Claim": "a/b", "StorageClass": "fast", "Status": "Bound"},
        ),
        (
            "",
            "persistentvolumeclaims",
            {"status": {"phase": "Pending"}},
            {"Status": "Pending", "Capacity": ""},
        ),
        (
            "",
            "services",
            {
                "spec": {
                    "clusterIP": "10.0.0.1",
                    "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000}],
                }
            },
            {"Type": "ClusterIP", "Port(s)": "80:30000/TCP", "External-IP": "<none>", "Selector": "<none>"},
        ),
        ("", "secrets", {"type": "Opaque", "data": {"a": "", "b": ""}}, {"Data": 2, "Type": "Opaque"}),
        ("", "configmaps", {"data": {"a": ""}, "binaryData": {"b": ""}}, {"Data": 2}),
        ("scheduling.k8s.io", "priorityclasses", {"value": 7}, {"Value": 7, "Global-Default": False}),
        (
            "policy",
            "poddisruptionbudgets",
            {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}},
            {"Min Available": "50%", "Max Unavailable": "N/A", "Allowed Disruptions": 1},
        ),
        ("apiextensions.k8s.io", "customresourcedefinitions", {}, {"Created At": CREATED}),
        (
            "rbac.authorization.k8s.io",
            "rolebindings",
            {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "ann"}]},
            {"Role": "Role/r", "Users": "ann", "Groups": ""},
        ),
        ("nobody.knows", "gadgets", {}, {"Age": "60s"}),
    ],
)
def test_a_row_shows_what_matters_of_its_kind(group, resource, content, expected):
    cells = row(group, resource, **content)
    assert {name: cells[name] for name in expected} == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.sampled_from(sorted(PRINTERS)),
    st.fixed_dictionaries(
        {}, optional={"metadata": JSON, "spec": JSON, "status": JSON, "subsets": JSON, "data": JSON}
    ),
)
def test_no_object_breaks_a_table(kind, content):
    printer = printer_for(kind)
    printed = table(printer, [content, {"metadata": {"name": "sound"}}], NOW, include="None")
    assert [len(row["cells"]) for row in printed["rows"]] == [len(printer.columns)] * 2


def test_a_custom_kind_has_the_columns_it_asks_for():
    printer = crd_printer(
        [
            {"name": "STATUS", "type": "string", "jsonPath": ".status.phase"},
            {"name": "min", "type": "integer", "jsonPath": ".spec.minMember", "priority": 1},
            {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
            {"name": "on", "type": "boolean", "jsonPath": ".spec.on"},
            {"name": "bad", "type": "string", "jsonPath": ".a["},
        ]
    )
    content = {
        "metadata": {"name": "x", "creationTimestamp": CREATED},
        "spec": {"minMember": "no", "on": True},
    }
    assert printer.row(content, NOW) == ["x", None, None, "60s", True, "<invalid>"]
    assert [column.priority for column in printer.columns] == [0, 0, 1, 0, 0, 0]


def test_a_custom_kind_that_asks_for_nothing_shows_its_age():
    assert [column.name for column in crd_printer(None).columns] == ["Name", "Age"]


@pytest.mark.parametrize(
    ("include", "shown"),
    [
        ("None", None),
        (
            "Metadata",
            {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "x"}},
        ),
        ("Object", {"metadata": {"name": "x"}, "status": {"phase": "Failed"}}),
    ],
)
def test_a_row_brings_as_much_of_the_object_as_was_asked_for(include, shown):
    printed = table(
        printer_for("pods"), [{"metadata": {"name": "x"}, "status": {"phase": "Failed"}}], NOW, include
    )
    assert printed["rows"][0].get("object") == shown
    assert printed["rows"][0]["conditions"][0]["reason"] == "Failed"
