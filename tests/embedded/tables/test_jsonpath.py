import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.tables.jsonpath import BadPath, find

MANIFEST = {
    "spec": {"replicas": 3, "tasks": [{"name": "a", "on": True}, {"name": "b"}]},
    "metadata": {"labels": {"app.kubernetes.io/name": "web"}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Old", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.replicas", [3]),
        ("{.spec.replicas}", [3]),
        ("$.spec.replicas", [3]),
        (".spec.tasks[0].name", ["a"]),
        (".spec.tasks[-1].name", ["b"]),
        (".spec.tasks[*].name", ["a", "b"]),
        (".spec.tasks[5].name", []),
        (".spec.tasks[?(@.on)].name", ["a"]),
        (".spec.tasks[?(@.on==true)].name", ["a"]),
        (".spec.nothing.there", []),
        (r".metadata.labels.app\.kubernetes\.io/name", ["web"]),
        (".metadata.labels['app.kubernetes.io/name']", ["web"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type == 'Old')].status", ["False"]),
        (".status.conditions[?(@.type!='Old')].status", ["True"]),
    ],
)
def test_a_path_leads_to_values(path, expected):
    assert find(path, MANIFEST) == expected


@pytest.mark.parametrize("path", [".a[", "a", ".a[?(@.b", "x" * 2000, ".a..b", ".a[x]"])
def test_a_path_that_makes_no_sense_is_named(path):
    with pytest.raises(BadPath, match="JSON path"):
        find(path, MANIFEST)


@given(st.text(max_size=40))
def test_no_text_breaks_the_reader(path):
    try:
        find(path, MANIFEST)
    except BadPath as error:
        assert "JSON path" in str(error)
