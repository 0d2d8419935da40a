"""JobFlows: jobs that wait for jobs, but not for each other."""

from stromboli.admission.rules import dependency_cycles
from stromboli.admission.rules.field import Place
from stromboli.admission.rules.rule_context import Context

_NOT_A_DAG = "jobflow Flow is not DAG"


def check(flow: Place, context: Context) -> None:
    """Report what is wrong with a flow."""
    flows = flow["spec"]["flows"]
    steps = flows.items()
    needs = {step["name"].text(): step["dependsOn"]["targets"].texts() for step in steps}
    for step in steps:
        for target in step["dependsOn"]["targets"].items():
            if target.text() not in needs:
                target.wrong(
                    f"{_NOT_A_DAG}: vertex is not defined: {target.text()}",
                    f"the flows are {', '.join(list(needs)[:10])}",
                )
    found = dependency_cycles.circle(needs)
    if found:
        flows.wrong(_NOT_A_DAG, f"break the circle {' -> '.join([*found, found[0]])}")
