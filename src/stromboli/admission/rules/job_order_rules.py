"""Annotations of ours on jobs: the jobs that one waits for, and how many of its pods run at a time."""

from stromboli.admission.rules.field import Field
from stromboli.api import names
from stromboli.api.job_annotations import is_parallelism
from stromboli.api.predecessors import BadPredecessors, parse_predecessors


def check_order(job: Field) -> None:
    """Report what the job controller could not read, or could never do."""
    metadata = job["metadata"]
    annotations = metadata["annotations"].mapping()
    if names.AFTER in annotations:
        _check_after(metadata["annotations"][names.AFTER], metadata["name"].text())
    if names.PARALLELISM in annotations:
        _check_parallelism(metadata["annotations"][names.PARALLELISM], job["spec"]["minAvailable"].number())


def _check_after(field: Field, name: str) -> None:
    try:
        predecessors = parse_predecessors(field.text())
    except BadPredecessors as error:
        field.wrong(str(error), "name jobs as in afterok:prepare,afterany:clean")
        return
    if name and any(each.name == name for each in predecessors):
        field.wrong("a job can not wait for itself", f"leave out {name}")


def _check_parallelism(field: Field, minimum: int) -> None:
    text = field.text()
    if not is_parallelism(text):
        field.wrong("must be a number of pods, at least 1", 'such as "3"')
    elif int(text) < minimum:
        field.wrong(f"fewer than the {minimum} pods that must start together", "lower spec.minAvailable")
