"""Pod templates: what Kubernetes would refuse in the first pod, refused already when the job is submitted.

The rules of Kubernetes that need nothing but the object; the API server checks the rest.
"""

from stromboli.admission.rules.field import Field
from stromboli.admission.rules.pod_templates import container_rules
from stromboli.admission.rules.pod_templates.affinity_rules import check_labels, check_placement
from stromboli.api.name_rules import dns_label_errors, qualified_name_errors

_RESTART = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")


def check(template: Field) -> bool:
    """Report what is wrong with a pod template, and say whether nothing is."""
    before = len(list(template.report)) + template.report.omitted
    check_labels(template["metadata"]["labels"])
    annotations = template["metadata"]["annotations"]
    for key, value in annotations.entries():
        if errors := qualified_name_errors(key.lower()):
            value.invalid("; ".join(errors))
    check_spec(template["spec"])
    return len(list(template.report)) + template.report.omitted == before


def check_spec(spec: Field) -> None:
    """Report what is wrong with the specification of a pod."""
    volumes = _check_volumes(spec["volumes"])
    if not spec["containers"].items():
        spec["containers"].required(way_out="a pod needs at least one container")
    seen: set[str] = set()
    host_network = spec["hostNetwork"].boolean()
    for key in ("containers", "initContainers"):
        for container in spec[key].items():
            container_rules.check(container, seen, volumes, host_network)
    for key, choices in (("restartPolicy", _RESTART), ("dnsPolicy", _DNS)):
        if spec[key].text() and spec[key].text() not in choices:
            spec[key].unsupported(choices)
    check_placement(spec)
    _check_numbers(spec)


def _check_numbers(spec: Field) -> None:
    deadline, grace = spec["activeDeadlineSeconds"], spec["terminationGracePeriodSeconds"]
    if deadline.given and not 1 <= deadline.number() < 2**31:
        deadline.invalid("must be between 1 and 2147483647, inclusive")
    if grace.number() < 0:
        grace.invalid("must be greater than or equal to 0")
    for key in ("hostname", "subdomain"):
        if spec[key].text() and (errors := dns_label_errors(spec[key].text())):
            spec[key].invalid("; ".join(errors))


def _check_volumes(volumes: Field) -> set[str]:
    """The names of the volumes."""
    seen: set[str] = set()
    for volume in volumes.items():
        name = volume["name"]
        if not name.text():
            name.required()
        elif errors := dns_label_errors(name.text()):
            name.invalid("; ".join(errors))
        elif name.text() in seen:
            name.duplicate()
        seen.add(name.text())
        sources = [key for key, value in volume.entries() if key != "name" and value.given]
        if len(sources) > 1:
            volume[sources[1]].forbidden("may not specify more than 1 volume type")
    return seen
