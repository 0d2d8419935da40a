"""The answer to `stromboli explain` from a loaded cluster, a policy and the time: nothing outside is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stromboli.engine.catalog import Catalog
from stromboli.engine.cycle import Engine, Outcome
from stromboli.engine.explanation.event_history import History
from stromboli.engine.explanation.node_gates import LARGER_THAN_CLUSTER
from stromboli.engine.explanation.quantities import time_text
from stromboli.engine.waiting.room_waits import Waits
from stromboli.policy.policy import Policy
from stromboli.simulator.cluster_loading import Loaded
from stromboli.simulator.ephemeral_claims import make_ephemeral_claims
from stromboli.simulator.explain.explained_subject import explain_found
from stromboli.simulator.explain.explanation_document import (
    Explanation,
    JobExplanation,
    StartForecast,
    Subject,
)
from stromboli.simulator.explain.remedy_search import search_remedies
from stromboli.simulator.explain.start_forecast import forecast_starts
from stromboli.simulator.explain.subject_lookup import Found
from stromboli.simulator.explain.wait_clues import WaitClues, wait_clues
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.sources.usage_feed import LOCAL, UsageFeed

WITHOUT_REMEDIES = ("cycle", "pod-group", "pipeline")
"""Gates at which there is nothing to try: something is missing, or it starts anyway."""
NEVER = "It does not start by waiting: it requests more than all nodes have."
Histories = Mapping[str, History]
"""What is known of subjects besides their objects, by `namespace/name` of a PodGroup or the name of a queue or node."""


@dataclass(slots=True)
class ClusterExplainer:
    """Explains what a name means in a loaded cluster, which is used up by a forecast."""

    loaded: Loaded
    policy: Policy
    catalog: Catalog
    now: float
    histories: Histories = field(default_factory=dict)
    with_remedies: bool = True
    with_forecast: bool = True

    def explain(self, subjects: Sequence[Found], cluster: str = "") -> Explanation:
        """Explain all of these after one and the same cycle."""
        if self.loaded.expansion is not None:
            Rehearsal(self.loaded.intake, self.now).claims.make_from_templates()
            make_ephemeral_claims(self.loaded.intake)
        UsageFeed(LOCAL, lambda warning: None).refresh(
            self.loaded.intake.cluster, self.policy.metrics, self.now
        )
        explained, clues = self._look(subjects)
        if self.with_remedies:
            for place, clue in clues.items():
                self._add_remedies(explained[place], clue)
        if self.with_forecast:
            waits = next((clue.waits for clue in clues.values()), None)
            self._add_forecasts(explained, waits)
        for subject in explained:
            key = (
                f"{subject.namespace}/{subject.pod_group}"
                if isinstance(subject, JobExplanation)
                else subject.name
            )
            if key in self.histories:
                subject.history = subject.history.merged(self.histories[key])
        return Explanation(
            cluster=cluster,
            now=time_text(self.now),
            policy=self.policy.source_name,
            subjects=explained,
            warnings=[*self.policy.warnings],
        )

    def _look(self, subjects: Sequence[Found]) -> tuple[list[Subject], dict[int, WaitClues]]:
        """What the engine says after a cycle, which is taken back, and what is worth trying for those who wait."""
        clues: dict[int, WaitClues] = {}

        def look(outcome: Outcome) -> list[Subject]:
            explained = []
            for place, found in enumerate(subjects):
                explained.append(explain_found(outcome, found))
                wait = outcome.explain(found.job) if found.job is not None else None
                if found.job is not None and wait is not None and wait.gate not in WITHOUT_REMEDIES:
                    clues[place] = wait_clues(outcome, found.job, wait)
            return explained

        engine = Engine(self.policy, self.catalog, tells=False)
        return engine.rehearse(self.loaded.intake.cluster, self.now, look), clues

    def _add_remedies(self, subject: Subject, clues: WaitClues) -> None:
        if isinstance(subject, JobExplanation) and subject.state in ("waits", "empty"):
            found = search_remedies(self.loaded.intake, self.policy, self.catalog, self.now, clues)
            subject.remedies, subject.in_vain, subject.untried = found.helpful, found.in_vain, found.untried

    def _add_forecasts(self, explained: Sequence[Subject], waits: Waits | None) -> None:
        waiting = {
            f"{subject.namespace}/{subject.pod_group}": subject
            for subject in explained
            if isinstance(subject, JobExplanation) and subject.state == "waits" and subject.pods.waiting
        }
        too_large = [key for key, subject in waiting.items() if _is_too_large(subject)]
        for key in too_large:
            waiting.pop(key).forecast = StartForecast(NEVER)
        if waiting:
            starts = forecast_starts(self.loaded, self.policy, self.catalog, self.now, waiting, waits)
            for key, subject in waiting.items():
                subject.forecast = starts.get(key)


def _is_too_large(subject: JobExplanation) -> bool:
    return subject.wait is not None and subject.wait.code == LARGER_THAN_CLUSTER
