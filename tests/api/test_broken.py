"""Broken input gets a clear answer that names file, object and field: never a traceback, never a hang."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stromboli.api.errors import BadInput, InputProblem
from stromboli.api.manifests import manifest_sources
from stromboli.api.manifests.manifest_reader import open_paths

BROKEN = Path(__file__).parent / "data" / "broken"
REQUESTS = "spec.containers[0].resources.requests"
TOO_DEEP = "nested deeper than 200 levels, or an alias inside itself"

EXPECTED: dict[str, tuple[str, str, str]] = {
    "alias-inside-itself.yaml": ("", "", TOO_DEEP),
    "billion-laughs.yaml": ("", "", "aliases stand for more than 1000000 values"),
    "binary.yaml": ("", "", "not UTF-8 text: byte 0x90 at 10"),
    "containers-not-a-list.json": ("Pod web", "spec.containers", "expected array, got object"),
    "empty.json": ("", "", "not JSON: Input data was truncated"),
    "empty.yaml": ("", "", "holds no object"),
    "huge-number.yaml": ("Pod web", f"{REQUESTS}.memory", 'bad quantity "1e30": too large'),
    "items-not-a-list.yaml": ("", "", "items: expected array | null, got int"),
    "label-without-value.yaml": ("Node n1", "metadata.labels.zone", "expected str, got null"),
    "merge-bomb.yaml": ("", "", "merge keys << copy more than 20000 entries"),
    "min-member-text.yaml": ("PodGroup ml/train", "spec.minMember", 'expected int, got str "three"'),
    "min-member-too-large.json": ("PodGroup train", "spec.minMember", "expected int <= 2147483647"),
    "name-with-newline.json": ("Node n1\nn2", "metadata.name", "'n1\\nn2' is not a name"),
    "nameless.yaml": ("Pod shop", "metadata.name", "is missing"),
    "negative-request.yaml": ("Pod shop/web", f"{REQUESTS}.cpu", "must not be negative, got -1"),
    "no-kind.yaml": ("web", "kind", "missing, so this is no Kubernetes object"),
    "not-utf8.json": ("", "", "not UTF-8 text"),
    "not-utf8.yaml": ("", "", "not UTF-8 text: byte 0xff at 27"),
    "python-object.yaml": ("", "", "not YAML: could not determine a constructor"),
    "queue-weight-zero.yaml": ("Queue research", "spec.weight", "expected int >= 1, got 0"),
    "queues-in-a-circle.yaml": ("Queue b", "spec.parent", "queues in a circle: b -> c -> b"),
    "requests-overflow-together.yaml": ("Pod web", "spec.containers", "the requests add up to more than"),
    "second-item-broken.json": ("Node n2", "spec.unschedulable", 'expected bool, got str "yes"'),
    "tab.yaml": ("", "", "not YAML: found character that cannot start any token (line 4, column 1)"),
    "time-without-zone.yaml": ("Node n1", "metadata.creationTimestamp", "expected datetime with a timezone"),
    "truncated.json": ("", "", "not JSON: Input data was truncated"),
    "twice.yaml": ("Node n1", "metadata.name", "defined twice"),
    "unknown-phase.yaml": ("PodGroup train", "status.phase", "invalid enum value 'Sleeping'"),
    "unknown-suffix.yaml": (
        "Node n1",
        "status.allocatable.memory",
        'bad quantity "16GiB": expected a number',
    ),
    "unquoted-annotation.yaml": (
        "Pod web",
        "metadata.annotations.volcano.sh/preemptable",
        "expected str, got bool",
    ),
}


def only_problem(path: Path) -> InputProblem:
    with pytest.raises(BadInput) as caught:
        list(open_paths([str(path)]))
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize("file", sorted(EXPECTED))
def test_a_broken_manifest_is_explained(file: str) -> None:
    subject, field, text = EXPECTED[file]
    problem = only_problem(BROKEN / file)
    assert problem.file.partition("#")[0] == str(BROKEN / file)
    assert (problem.subject, problem.field) == (subject, field)
    assert problem.text.startswith(text)
    assert str(problem).isprintable()


def test_every_broken_manifest_is_expected_and_all_are_told_when_we_keep_going() -> None:
    assert {path.name for path in BROKEN.iterdir()} == set(EXPECTED)
    manifests = open_paths([str(BROKEN)], keep_going=True)
    assert list(manifests)
    blamed = {Path(problem.file.partition("#")[0]).name for problem in manifests.problems}
    assert blamed == set(EXPECTED)


def test_the_second_of_two_is_the_one_to_blame() -> None:
    assert only_problem(BROKEN / "twice.yaml").file.endswith("twice.yaml#1")
    assert only_problem(BROKEN / "second-item-broken.json").file.endswith("second-item-broken.json#1")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "- " * 100_000, "{a: " * 100_000, "[" * 100_000 + "]" * 100_000]
)
def test_deep_yaml_does_not_end_the_process(tmp_path: Path, text: str) -> None:
    (tmp_path / "deep.yaml").write_text(text)
    assert only_problem(tmp_path / "deep.yaml").text == TOO_DEEP


@pytest.mark.parametrize("text", ["[" * 100_000 + "]" * 100_000, '{"kind":' * 100_000 + "1" + "}" * 100_000])
def test_deep_json_does_not_end_the_process(tmp_path: Path, text: str) -> None:
    (tmp_path / "deep.json").write_text(text)
    assert only_problem(tmp_path / "deep.json").text == "nested too deeply"


@pytest.mark.parametrize("number", [".nan", "-.inf", "1.0e+400"])
def test_a_number_that_json_does_not_have_is_not_taken_for_nothing(tmp_path: Path, number: str) -> None:
    (tmp_path / "n.yaml").write_text(f"kind: Node\nmetadata: {{name: n}}\nspec: {{x: {number}}}\n")
    assert only_problem(tmp_path / "n.yaml").text == f'line 3: "{number}" is no number that JSON has'


def test_a_long_chain_of_aliases_is_as_bad_as_deep_nesting(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x]", *(f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 5000))]
    (tmp_path / "chain.yaml").write_text("\n".join(lines))
    assert only_problem(tmp_path / "chain.yaml").text == TOO_DEEP


def test_a_million_labels_are_too_many(tmp_path: Path) -> None:
    labels = ",".join(f'"l{i}":""' for i in range(1_000_000))
    (tmp_path / "n.json").write_text(f'{{"kind":"Node","metadata":{{"name":"n","labels":{{{labels}}}}}}}')
    problem = only_problem(tmp_path / "n.json")
    assert (problem.subject, problem.field) == ("Node n", "metadata.labels")
    assert problem.text == "1000000 entries, at most 1000 are allowed"


def test_metadata_has_a_limit_in_all(tmp_path: Path) -> None:
    text = "x" * 1_100_000
    (tmp_path / "n.json").write_text(
        f'{{"kind":"Node","metadata":{{"name":"n","annotations":{{"a":"{text}"}}}}}}'
    )
    assert only_problem(tmp_path / "n.json").field == "metadata"


def test_an_integer_of_thousands_of_digits_is_refused(tmp_path: Path) -> None:
    status = f'{{"capacity":{{"cpu":{"1" * 5000}}}}}'
    (tmp_path / "n.json").write_text(f'{{"kind":"Node","metadata":{{"name":"n"}},"status":{status}}}')
    assert only_problem(tmp_path / "n.json").subject == "Node n"


def test_random_bytes_are_only_ever_a_problem(tmp_path: Path) -> None:
    for index in range(200):
        suffix = ".json" if index % 2 else ".yaml"
        (tmp_path / f"{index}{suffix}").write_bytes(os.urandom(50))
    assert len(open_paths([str(tmp_path)], keep_going=True).problems) >= 200


def test_a_file_of_more_than_a_gibibyte_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "huge.json"
    with file.open("wb") as stream:
        stream.truncate(manifest_sources.MAX_FILE + 1)
    assert only_problem(file).text == f"larger than {manifest_sources.MAX_FILE} bytes"


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from Linux")
def test_a_hundred_thousand_pods_pass_through_little_memory(tmp_path: Path) -> None:
    container = '{"name":"main","image":"busybox","resources":{"requests":{"cpu":"1","memory":"2Gi"}}}'
    file = tmp_path / "pods.json"
    with file.open("w") as stream:
        stream.write('{"kind":"List","items":[')
        stream.write(
            ",".join(
                f'{{"kind":"Pod","metadata":{{"name":"p{i}"}},"spec":{{"containers":[{container}]}}}}'
                for i in range(100_000)
            )
        )
        stream.write("]}")
    script = (
        "import sys; from stromboli.api.manifests.manifest_reader import open_paths\n"
        "assert sum(1 for _ in open_paths([sys.argv[1]])) == 100_002\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 200 * 1024
