import stat

import pytest

from stromboli.embedded.nodes.real.container_environment import ContainerError
from stromboli.embedded.nodes.real.pod_volumes import PodVolumes
from tests.embedded.nodes.node_pods import pod

OBJECTS = {
    ("ConfigMap", "cm"): {"metadata": {"name": "cm"}, "data": {"a": "1", "b": "2"}},
    ("Secret", "s"): {"metadata": {"name": "s"}, "data": {"key": "cGFzcw=="}},
}


def mounted(folder, mounts, volumes, name="p", objects=None):
    spec = {"containers": [{"name": "main", "volumeMounts": mounts}], "volumes": volumes}
    created = PodVolumes(
        pod(name, spec=spec), folder / name, folder / "claims", lambda *key: (objects or OBJECTS).get(key)
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


CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
MOUNT = {"name": "v", "mountPath": "/d"}


def bound(folder, source):
    """What a node reads of a claim that is bound to a volume."""
    return {("PersistentVolume", "data"): {"spec": source}, ("PersistentVolume", "a-v"): {"spec": source}}


def made_by_us(folder):
    return bound(folder, {"hostPath": {"path": str(folder / "volumes/pvc-1"), "type": "DirectoryOrCreate"}})


def test_a_bound_claim_is_the_folder_of_its_volume_and_outlives_its_pod(tmp_path):
    objects = made_by_us(tmp_path)
    first = mounted(tmp_path, [MOUNT], [CLAIM], "a", objects)
    (first.root / "d/file").write_text("kept")
    assert (tmp_path / "volumes/pvc-1/file").read_text() == "kept"
    second = mounted(tmp_path, [MOUNT], [CLAIM], "b", objects)
    assert (second.root / "d/file").read_text() == "kept"


def test_an_ephemeral_volume_is_that_of_its_own_claim(tmp_path):
    created = mounted(tmp_path, [MOUNT], [{"name": "v", "ephemeral": {}}], "a", made_by_us(tmp_path))
    (created.root / "d/file").write_text("x")
    assert (tmp_path / "volumes/pvc-1/file").read_text() == "x"


def test_what_lies_in_a_claim_from_before_volumes_is_kept(tmp_path):
    (tmp_path / "claims/default_data").mkdir(parents=True)
    (tmp_path / "claims/default_data/file").write_text("kept")
    (tmp_path / "a/root").mkdir(parents=True)
    (tmp_path / "a/root/d").symlink_to(tmp_path / "claims/default_data")  # the pod ran already
    created = mounted(tmp_path, [MOUNT], [CLAIM], "a", made_by_us(tmp_path))
    assert (created.root / "d/file").read_text() == "kept"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"nfs": {"server": "s", "path": "/"}}, "no folder of this machine"),
        ({"hostPath": {"path": "/no/such/folder"}}, "does not exist"),
        ({"local": {"path": "relative"}}, "is not absolute"),
    ],
)
def test_a_volume_that_is_not_there_is_named(tmp_path, source, problem):
    with pytest.raises(ContainerError, match=problem):
        mounted(tmp_path, [MOUNT], [CLAIM], "a", bound(tmp_path, source))


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


def test_hosts_of_a_job_are_this_machine_and_other_files_stay_as_they_are(tmp_path):
    hosts = "torch-worker-0.torch\ntorch-worker-1.torch"
    volumes = {"torch-svc": "/etc/volcano", "mine": "/mine"}
    objects = {
        ("ConfigMap", name): {"metadata": {"name": name}, "data": {"worker.host": hosts}} for name in volumes
    }
    mounts = [{"name": name, "mountPath": path} for name, path in volumes.items()]
    spec = {
        "hostname": "torch-worker-0",
        "subdomain": "torch",
        "containers": [{"name": "main", "volumeMounts": mounts}],
        "volumes": [{"name": name, "configMap": {"name": name}} for name in volumes],
    }
    member = pod("torch-worker-0", spec=spec, meta={"labels": {"volcano.sh/job-name": "torch"}})
    created = PodVolumes(member, tmp_path, tmp_path / "claims", lambda *key: objects.get(key))
    created.create()
    assert (created.root / "etc/volcano/worker.host").read_text() == "127.0.0.1\n127.0.0.1"
    assert (created.root / "mine/worker.host").read_text() == hosts
