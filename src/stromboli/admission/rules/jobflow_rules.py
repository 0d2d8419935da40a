"""JobFlows: dependencies that exist and have no cycles."""

from stromboli.admission.rules.field import Field
from stromboli.admission.rules.rule_context import Context
from stromboli.api.name_cycles import find_cycle, format_cycle
from stromboli.api.object_bounds import MAX_STEPS

_NOT_A_DAG = "jobflow Flow is not DAG"


def check(flow: Field, context: Context) -> None:
    """Report what is wrong with a flow."""
    flows = flow["spec"]["flows"]
    steps = flows.items()
    if len(steps) > MAX_STEPS:
        flows.wrong(f"the flow has {len(steps)} steps, at most {MAX_STEPS} are allowed", "use several flows")
        return
    dependencies = {step["name"].text(): step["dependsOn"]["targets"].texts() for step in steps}
    for step in steps:
        for target in step["dependsOn"]["targets"].items():
            if target.text() not in dependencies:
                target.wrong(
                    f"{_NOT_A_DAG}: vertex is not defined: {target.text()}",
                    f"the flows are {', '.join(list(dependencies)[:10])}",
                )
    cycle = find_cycle(dependencies)
    if cycle:
        flows.wrong(_NOT_A_DAG, f"break the circle {format_cycle(cycle)}")
