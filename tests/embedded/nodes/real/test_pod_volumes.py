import stat

import pytest

from stromboli.embedded.nodes.real.container_environment import ContainerError
from stromboli.embedded.nodes.real.pod_volumes import PodVolumes
from tests.embedded.nodes.node_pods import pod

OBJECTS = {
    ("ConfigMap", "cm"): {"metadata": {"name": "cm"}, "data": {"a": "1", "b": "2"}},
    ("Secret", "s"): {"metadata": {"name": "s"}, "data": {"key": "cGFzcw=="}},
}


def mounted(folder, mounts, volumes, name="p"):
    spec = {"containers": [{"name": "main", "volumeMounts": mounts}], "volumes": volumes}
    created = PodVolumes(
        pod(name, spec=spec), folder / name, folder / "claims", lambda *key: OBJECTS.get(key)
    )
    created.create()
    return created


def test_volumes_lie_below_the_root_where_they_are_mounted(tmp_path):
    created = mounted(
        tmp_path,
        [
            {"name": "c", "mountPath": "/etc/config"},
            {"name": "s", "mountPath": "/secrets"},
            {"name": "e", "mountPath": "/work"},
            {"name": "d", "mountPath": "/about"},
            {"name": "e", "mountPath": "/part", "subPath": "inner"},
        ],
        [
            {"name": "c", "configMap": {"name": "cm", "items": [{"key": "a", "path": "deep/a.txt"}]}},
            {"name": "s", "secret": {"secretName": "s"}},
            {"name": "e", "emptyDir": {}},
            {
                "name": "d",
                "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]},
            },
        ],
    )
    assert (created.root / "etc/config/deep/a.txt").read_text() == "1"
    assert not (created.root / "etc/config/b").exists()
    secret = created.root / "secrets/key"
    assert secret.read_text() == "pass"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert (created.root / "about/name").read_text() == "p"
    (created.root / "part/x").write_text("y")
    assert (created.root / "work/inner/x").read_text() == "y"


def test_a_claim_outlives_its_pod(tmp_path):
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    first = mounted(tmp_path, [{"name": "v", "mountPath": "/d"}], [claim], "a")
    (first.root / "d/file").write_text("kept")
    second = mounted(tmp_path, [{"name": "v", "mountPath": "/d"}], [claim], "b")
    assert (second.root / "d/file").read_text() == "kept"


def test_projected_volumes_combine_their_sources(tmp_path):
    sources = [
        {"configMap": {"name": "cm"}},
        {"secret": {"name": "s"}},
        {"serviceAccountToken": {"path": "token"}},
    ]
    created = mounted(
        tmp_path, [{"name": "p", "mountPath": "/p"}], [{"name": "p", "projected": {"sources": sources}}]
    )
    assert sorted(path.name for path in (created.root / "p").iterdir()) == ["a", "b", "key"]


@pytest.mark.parametrize(
    ("volume", "problem"),
    [
        ({"configMap": {"name": "none"}}, 'configmap "none" not found'),
        ({"configMap": {"name": "cm", "items": [{"key": "z", "path": "z"}]}}, "non-existent key: z"),
        ({"nfs": {}}, "nfs is not supported"),
        ({"hostPath": {"path": "/does/not/exist"}}, "does not exist"),
        ({"hostPath": {"path": "relative"}}, "not absolute"),
    ],
)
def test_a_volume_that_cannot_be_made_is_explained(tmp_path, volume, problem):
    with pytest.raises(ContainerError, match=problem):
        mounted(tmp_path, [], [{"name": "v", **volume}])


def test_a_missing_volume_that_may_be_missing_is_empty(tmp_path):
    volume = {"name": "v", "configMap": {"name": "none", "optional": True}}
    created = mounted(tmp_path, [{"name": "v", "mountPath": "/v"}], [volume])
    assert list((created.root / "v").iterdir()) == []


def test_dots_do_not_leave_the_folder(tmp_path):
    created = mounted(
        tmp_path,
        [{"name": "v", "mountPath": "/../../../out"}],
        [{"name": "v", "configMap": {"name": "cm", "items": [{"key": "a", "path": "../../../evil"}]}}],
    )
    assert (created.root / "out/evil").read_text() == "1"
    assert not (tmp_path / "evil").exists()


def test_a_mount_without_volume_is_explained(tmp_path):
    with pytest.raises(ContainerError, match="no volume of that name"):
        mounted(tmp_path, [{"name": "x", "mountPath": "/x"}], [])
    with pytest.raises(ContainerError, match="mountPath /"):
        mounted(tmp_path, [{"name": "v", "mountPath": "/"}], [{"name": "v", "emptyDir": {}}])


def test_missing_keys_of_an_optional_source_are_left_out(tmp_path):
    items = [{"key": "a", "path": "a"}, {"key": "missing", "path": "m"}]
    for name, expected in (("cm", ["a"]), ("none", [])):
        source = {"name": name, "optional": True, "items": items}
        volumes = mounted(
            tmp_path, [{"name": "c", "mountPath": "/c"}], [{"name": "c", "configMap": source}], name
        )
        assert [path.name for path in (volumes.root / "c").iterdir()] == expected
