"""Case files: a small cluster, a configuration, and what a real Volcano decided for it."""

import os
import re
from typing import Any, NamedTuple

from stromboli.api.errors import BadInput, InputProblem, InputProblems, Unreadable
from stromboli.api.manifests.manifest_reader import Manifests
from stromboli.api.manifests.manifest_sources import (
    CaseFile,
    Source,
    content_path,
    find_files,
    read_case_file,
    read_documents,
)

_PEEK = 64 * 1024
_OBJECTS = re.compile(rb'\s*\{.*?"(objects|kind)"\s*:', re.DOTALL)


class Case(NamedTuple):
    """A cluster (to be iterated), the text of its configuration if it brings one, and what was observed."""

    name: str
    config: str | None
    objects: Manifests
    observed: dict[str, Any] | None


def is_case(path: str) -> bool:
    """Whether a file, or the first file of a folder, is a case; reads only its beginning if that is enough."""
    try:
        file = find_files(path)[0]
        with open(content_path(file), "rb") as stream:
            start = stream.read(_PEEK)
        first_key = _OBJECTS.match(start)
        if first_key or len(start) < _PEEK or not start.lstrip().startswith(b"{"):
            return first_key is not None and first_key[1] == b"objects"
        _case_file(file)
        return True
    except (OSError, Unreadable):
        return False


def read_case(path: str, keep_going: bool = False) -> Case:
    """The case in a file; BadInput if it is none."""
    problems = InputProblems(keep_going)
    try:
        case = _case_file(path)
    except Unreadable as error:
        raise BadInput([InputProblem(path, str(error))]) from None
    sources = (Source(path, index, raw, of_case=True) for index, raw in enumerate(case.objects or ()))
    name = case.name or os.path.basename(path).removesuffix(".json")
    return Case(name, case.config, Manifests(sources, problems), case.observed)


def case_head(path: str) -> CaseFile | None:
    """A case, of which no object is decoded; None for a file that is none."""
    try:
        return _case_file(find_files(path)[0]) if is_case(path) else None
    except Unreadable:
        return None  # told when it is opened


def _case_file(path: str) -> CaseFile:
    for document in read_documents(path):
        case = read_case_file(document)
        if case is not None:
            return case
    raise Unreadable('no case: expected an object with "objects"')
