"""An own action, an own plugin and an own extension point between them, in one file.

The action asks "what is there to say about this job?", and every plugin that overrides `print_job` answers.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from stromboli.engine.catalog import action
from stromboli.engine.plugin import Plugin
from stromboli.engine.points import gather, point
from stromboli.engine.session import Session
from stromboli.model.job import Job
from stromboli.policy.arguments import arg


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of the print-job plugin."""

    namespace: bool = arg("print-job.namespace", True, "Whether to put the namespace before the name.")


class PrintJob(Plugin):
    """Says which jobs take part in a cycle."""

    name = "print-job"
    Arguments = Arguments

    @point(gather, "enablePrintJob")
    def print_job(self, job: Job) -> Iterator[str]:
        """Lines about a job; those of all plugins, one after the other."""
        yield f"{job.id.namespace}/{job.id.name}" if self.arguments.namespace else job.id.name


@action("print-jobs")
def print_jobs(session: Session) -> None:
    """Print what plugins have to say about every job."""
    for job in session.jobs():
        for line in session.rules.ask("print_job", job):
            print(line)
