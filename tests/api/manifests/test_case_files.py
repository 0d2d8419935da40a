"""Case files load without problems and bring what they say."""

from pathlib import Path

import pytest

from stromboli.api.errors import BadInput
from stromboli.api.manifests.case_files import is_case, read_case
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import Queue

DATA = Path(__file__).parents[1] / "data" / "cases"
ALL_CASES = Path(__file__).parents[2] / "conformance" / "cases"
CASES = sorted(path for folder in (DATA, ALL_CASES) for path in folder.rglob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_case_loads_whole(path: Path) -> None:
    case = read_case(str(path))
    objects = list(case.objects)
    assert case.objects.problems == []
    assert case.config is not None
    assert case.observed is not None
    assert is_case(str(path))
    assert {obj.name for obj in objects if isinstance(obj, Queue)} >= {"root", "default"}
    assert all(obj.spec.scheduler_name for obj in objects if isinstance(obj, Pod))


def test_a_folder_of_cases_is_recognised_by_its_first_file(tmp_path: Path) -> None:
    assert is_case(str(DATA))
    assert not is_case(str(tmp_path))


def test_a_case_may_leave_out_everything_but_its_objects(tmp_path: Path) -> None:
    file = tmp_path / "small.json"
    file.write_text('{"objects": [{"kind": "Node", "metadata": {"name": "n"}}]}')
    case = read_case(str(file))
    assert (case.name, case.config, case.observed) == ("small", None, None)
    assert next(iter(case.objects)).name == "n"


def test_a_case_with_a_long_preface_is_still_recognised(tmp_path: Path) -> None:
    file = tmp_path / "wordy.json"
    file.write_text(f'{{"about": "{"x" * 100_000}", "objects": []}}')
    assert is_case(str(file))


def test_manifests_are_no_case(tmp_path: Path) -> None:
    for name, text in {
        "a.json": '{"kind": "List", "objects": []}',
        "b.yaml": "kind: Pod\n",
        "c.json": "{",
    }.items():
        (tmp_path / name).write_text(text)
        assert not is_case(str(tmp_path / name))
    assert not is_case(str(tmp_path / "gone.json"))
    with pytest.raises(BadInput, match='expected an object with "objects"'):
        read_case(str(tmp_path / "b.yaml"))


def test_a_broken_object_of_a_case_is_named(tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text(
        '{"objects": [{"kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "x"}}}]}'
    )
    with pytest.raises(BadInput, match=r"bad\.json#0: Node n: status\.capacity\.cpu"):
        list(read_case(str(file)).objects)
    kept = read_case(str(file), keep_going=True)
    node, *others = kept.objects
    assert isinstance(node, Node)
    assert (node.status.capacity, [obj.name for obj in others]) == ({}, ["root", "default"])
    assert len(kept.objects.problems) == 1
