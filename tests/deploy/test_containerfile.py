"""The image cannot be built in a test; what makes it safe and repeatable can be read."""

from __future__ import annotations

import re
from typing import NamedTuple

from stromboli import __version__
from tests.deploy.manifests import DEPLOY, ROOT, STANDALONE, only

FILE = DEPLOY / "Containerfile"


class Step(NamedTuple):
    instruction: str
    text: str


def _steps() -> list[Step]:
    lines = re.sub(r"^#.*\n", "", FILE.read_text(), flags=re.M).replace("\\\n", " ").splitlines()
    return [Step(*line.split(maxsplit=1)) for line in lines if line.strip()]


STEPS = _steps()
LAST_STAGE = STEPS[max(i for i, step in enumerate(STEPS) if step.instruction == "FROM") :]


def _all(instruction: str) -> list[str]:
    return [step.text for step in STEPS if step.instruction == instruction]


def test_only_known_instructions() -> None:
    known = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "EXPOSE", "ENTRYPOINT"}
    assert {step.instruction for step in STEPS} <= known


def test_one_base_with_a_full_name_and_version() -> None:
    (argument,) = _all("ARG")
    assert re.fullmatch(r"PYTHON=[a-z.]+\.[a-z]+/\w+/python:3\.\d+\.\d+-slim-[a-z]+", argument)
    assert {text.split()[0] for text in _all("FROM")} == {"${PYTHON}"}
    assert "latest" not in FILE.read_text()


def test_whatever_is_installed_is_pinned_by_a_lock_file() -> None:
    installs = re.findall(r"pip (?:install|wheel)[^&]*", " && ".join(_all("RUN")))
    assert len(installs) == 4
    for install in installs:
        locked = "--require-hashes -r requirements" in install
        assert locked or "--no-deps" in install
        assert locked or "--no-index" in install or "--no-build-isolation" in install


def test_nothing_is_fetched_by_hand() -> None:
    assert not re.search(r"\b(curl|wget|apt|apt-get|apk|git|sudo|ADD)\b|https?:", FILE.read_text())


def test_it_runs_as_the_user_of_the_manifest_and_starts_our_program() -> None:
    pod = only(STANDALONE, "Deployment")["spec"]["template"]["spec"]
    last = {step.instruction: step.text for step in LAST_STAGE}
    user = pod["securityContext"]
    assert last["USER"] == f"{user['runAsUser']}:{user['runAsGroup']}"
    assert last["ENTRYPOINT"] == '["stromboli"]'
    assert last["EXPOSE"].split() == [str(port["containerPort"]) for port in pod["containers"][0]["ports"]]
    assert "RUN" not in last


def test_what_it_copies_is_there_and_reaches_the_builder() -> None:
    own = [text.split()[:-1] for text in _all("COPY") if not text.startswith("--from")]
    copied = {source for sources in own for source in sources}
    assert all((ROOT / source).exists() for source in copied)
    allowed = re.findall(r"^!(.+)$", (DEPLOY / "Containerfile.dockerignore").read_text(), re.M)
    assert set(allowed) == copied


def test_the_command_in_its_head_makes_the_image_of_the_manifest() -> None:
    assert f"-t stromboli:{__version__} ." in FILE.read_text().splitlines()[0]
