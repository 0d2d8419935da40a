"""Pod templates: what Kubernetes would refuse in the first pod, refused already when the job is submitted."""

from stromboli.admission.rules.field import Field
from stromboli.api.schemas.pods.pod_validation import template_problems


def check(template: Field) -> bool:
    """Report what is wrong with a pod template, and say whether nothing is."""
    problems = template_problems(template.value, template.shown_path)
    for problem in problems:
        path = template.path + problem.field.removeprefix(template.shown_path)
        template.report.add(problem._replace(field=path, shown_path=problem.field))
    return not problems
