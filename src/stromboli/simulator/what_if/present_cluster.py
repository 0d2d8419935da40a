"""The cluster at the present moment, loaded as often as runs begin from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from stromboli.api.errors import InputProblem, InputProblems
from stromboli.api.manifests.manifest_reader import Manifests
from stromboli.api.manifests.manifest_sources import Source
from stromboli.simulator.cluster_loading import Loaded, Watch, load
from stromboli.simulator.what_if.submitted_objects import Refused, Submission

OpenSources = Callable[[InputProblems], Iterable[Source]]
"""Reads the objects anew; each `Source` is used up by a load."""


@dataclass(frozen=True, slots=True)
class PresentCluster:
    """Objects, and the moment at which they were so."""

    name: str
    open: OpenSources
    now: float
    """In seconds since 1970."""
    namespace: str = ""
    """Of what is submitted without one."""
    notes: tuple[str, ...] = ()
    """What could not be read of it, each in a sentence."""
    watch: Watch = field(default=lambda items, _: items)

    def load(self) -> Loaded:
        """The cluster as it is. What cannot be used is left out and listed; a file that cannot be read is an error."""
        loaded = self._load([])
        if unreadable := [problem for problem in loaded.problems if not problem.subject]:
            raise Refused(unreadable)
        return loaded

    def load_with(self, submitted: Sequence[Source], before: Loaded) -> Loaded:
        """The cluster with what is submitted, which must be in order; `before` is the cluster without it."""
        submission = Submission(before.intake.cluster, self.now, before.objects, self.namespace)
        prepared = submission.prepare(submitted)
        loaded = self._load(prepared)
        files = {source.file for source in prepared}
        if problems := [_told(problem, files) for problem in loaded.problems if _is_of(problem, files)]:
            raise Refused(problems)
        return loaded

    def _load(self, submitted: Sequence[Source]) -> Loaded:
        def open_manifests() -> Manifests:
            problems = InputProblems(keep_going=True)
            return Manifests(chain(self.open(problems), submitted), problems)

        return load(open_manifests, keep_going=True, watch=self.watch, now=self.now)


def _is_of(problem: InputProblem, files: set[str]) -> bool:
    return problem.file.rpartition("#")[0] in files or problem.file in files


def _told(problem: InputProblem, files: set[str]) -> InputProblem | str:
    """A problem with what is submitted; that an object of its name exists is told as an API server does."""
    defined, _, rest = problem.text.partition("defined twice: ")
    first = rest.removesuffix(" has it too")
    if not defined and rest and not _is_of(InputProblem(first, ""), files):
        return f"{problem.file}: {problem.subject} exists already in the cluster: give it another name"
    return problem
