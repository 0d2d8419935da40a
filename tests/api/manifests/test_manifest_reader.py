"""Objects from files, folders and standard input."""

import io
import sys
from pathlib import Path

import pytest

from stromboli.api.errors import BadInput
from stromboli.api.manifests.manifest_reader import open_paths
from stromboli.api.types.pod import Pod

NODE = "apiVersion: v1\nkind: Node\nmetadata: {{name: {}}}\n"


def names_in(*paths: Path, keep_going: bool = False) -> list[str]:
    objects = open_paths(map(str, paths), keep_going)
    return [obj.name for obj in objects if obj.name not in ("root", "default")]


def test_a_file_may_hold_many_documents(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("---\n" + NODE.format("a") + "---\n# nothing\n---\n" + NODE.format("b"))
    assert names_in(file) == ["a", "b"]


def test_lists_of_any_kind_are_opened(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(
        '{"kind": "NodeList", "items": [{"kind": "Node", "metadata": {"name": "a"}}]}'
    )
    (tmp_path / "two.yaml").write_text("kind: List\nitems:\n- {kind: Node, metadata: {name: b}}\n")
    (tmp_path / "three.json").write_text('[{"kind": "Node", "metadata": {"name": "c"}}]')
    assert sorted(names_in(tmp_path)) == ["a", "b", "c"]


def test_folders_are_read_in_order_of_name_without_what_is_hidden_or_foreign(tmp_path: Path) -> None:
    for path in ("b/x.yml", "a/z.json", "a/y.yaml", ".git/hidden.yaml", "a/readme.md"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(NODE.format(Path(path).stem) if not path.endswith(".json") else "[]")
    (tmp_path / "a/z.json").write_text('{"kind": "Node", "metadata": {"name": "z"}}')
    assert names_in(tmp_path) == ["y", "z", "x"]


def test_standard_input_is_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(NODE.format("n").encode())))
    assert names_in(Path("-")) == ["n"]


def test_flow_style_yaml_is_not_mistaken_for_json(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text("{kind: Node, metadata: {name: n}}")
    assert names_in(tmp_path / "n.yaml") == ["n"]


def test_each_object_knows_where_it_came_from(tmp_path: Path) -> None:
    single, several = tmp_path / "one.yaml", tmp_path / "two.yaml"
    single.write_text(NODE.format("a"))
    several.write_text(NODE.format("b") + "---\n" + NODE.format("c"))
    places = [item.where for item in open_paths([str(single), str(several)]).items()]
    assert places == [str(single), f"{several}#0", f"{several}#1", "(implied)", "(implied)"]


def test_other_kinds_are_counted_not_read(tmp_path: Path) -> None:
    file = tmp_path / "mixed.yaml"
    file.write_text(
        "kind: Secret\ndata: {}\n---\nkind: Deployment\n---\nkind: Secret\n---\n" + NODE.format("n")
    )
    manifests = open_paths([str(file)])
    assert manifests.skipped == {"Secret": 2, "Deployment": 1}
    assert next(iter(manifests)).name == "n"


def test_yaml_means_what_it_means_to_kubectl(tmp_path: Path) -> None:
    file = tmp_path / "n.yaml"
    file.write_text(
        "kind: Node\nmetadata:\n  name: n\n  creationTimestamp: 2026-08-01T00:00:00Z\n"
        "  annotations: {day: 2026-08-01, at: 12:30, version: v1}\n"
        "  labels: &l {zone: a}\nstatus: {capacity: {cpu: 1e3, memory: 0x10}}\n"
    )
    node = next(iter(open_paths([str(file)])))
    assert node.metadata.annotations == {"day": "2026-08-01", "at": "12:30", "version": "v1"}
    assert node.metadata.creation_timestamp is not None


def test_aliases_and_merge_keys_work_in_moderation(tmp_path: Path) -> None:
    file = tmp_path / "n.yaml"
    file.write_text(
        "kind: List\nitems:\n- kind: Node\n  metadata: {name: a, labels: &common {zone: z}}\n"
        "- kind: Node\n  metadata: {name: b, labels: *common}\n"
        "- kind: Node\n  metadata: {name: c, labels: {<<: *common, disk: ssd}}\n"
    )
    labels = [obj.metadata.labels for obj in list(open_paths([str(file)]))[:3]]
    assert labels == [{"zone": "z"}, {"zone": "z"}, {"zone": "z", "disk": "ssd"}]


def test_the_first_problem_stops_unless_we_keep_going(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: Node\nmetadata: {}\n")
    (tmp_path / "b.yaml").write_text(NODE.format("b"))
    (tmp_path / "c.yaml").write_text("[")
    with pytest.raises(BadInput) as caught:
        list(open_paths([str(tmp_path)]))
    assert len(caught.value.problems) == 1
    assert "--keep-going" in str(caught.value)

    manifests = open_paths([str(tmp_path)], keep_going=True)
    assert [obj.name for obj in manifests] == ["b", "root", "default"]
    assert {Path(problem.file).name for problem in manifests.problems} == {"a.yaml", "c.yaml"}


def test_what_comes_before_a_syntax_error_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "n.yaml"
    file.write_text(NODE.format("a") + "---\n[\n")
    assert names_in(file, keep_going=True) == ["a"]


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ('{"allocatedResources": {"cpu": "-1"}}', "status.allocatedResources.cpu"),
        ('{"resources": {"requests": {"cpu": "-1"}}}', "status.resources.requests.cpu"),
        (
            '{"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "-1"}}}]}',
            "status.containerStatuses[c].resources.requests.cpu",
        ),
    ],
)
def test_amounts_in_a_status_are_checked_too(tmp_path: Path, status: str, field: str) -> None:
    (tmp_path / "p.json").write_text(f'{{"kind": "Pod", "metadata": {{"name": "p"}}, "status": {status}}}')
    manifests = open_paths([str(tmp_path)], keep_going=True)
    list(manifests)
    (problem,) = manifests.problems
    assert (problem.subject, problem.field) == ("Pod p", field)


def test_a_missing_file_and_an_empty_folder_are_problems(tmp_path: Path) -> None:
    problems = open_paths([str(tmp_path), str(tmp_path / "gone.yaml")], keep_going=True).problems
    assert [problem.text for problem in problems] == [
        "no *.yaml, *.yml or *.json in this folder",
        "cannot be read: No such file or directory",
    ]


def test_objects_can_be_taken_one_at_a_time_and_again(tmp_path: Path) -> None:
    file = tmp_path / "pods.json"
    pods = ",".join(f'{{"kind": "Pod", "metadata": {{"name": "p{i}"}}}}' for i in range(100))
    file.write_text(f'{{"kind": "List", "items": [{pods}]}}')
    manifests = open_paths([str(file)])
    assert len(manifests) == 100
    first, second = next(iter(manifests)), next(iter(manifests))
    assert isinstance(first, Pod)
    assert first == second
    assert first is not second


def test_a_second_look_repeats_no_problem(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: Node\nmetadata: {}\n")
    manifests = open_paths([str(tmp_path)], keep_going=True)
    assert list(manifests) == list(manifests)
    assert len(manifests.problems) == 1
