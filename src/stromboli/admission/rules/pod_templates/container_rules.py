"""Containers of a pod template, as far as they can be checked without an API server."""

from stromboli.admission.rules.field import Field
from stromboli.admission.rules.quantity_rules import check_resources
from stromboli.api.name_rules import dns_label_errors, port_name_errors

_PULL = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def check(container: Field, names: set[str], volumes: set[str], host_network: bool) -> None:
    """Report what is wrong; `names` are those of the containers before it, `volumes` those of the pod."""
    _check_name(container["name"], names)
    _check_image(container["image"])
    pull = container["imagePullPolicy"]
    if pull.text() and pull.text() not in _PULL:
        pull.unsupported(_PULL)
    check_resources(container["resources"])
    _check_ports(container["ports"], host_network)
    for variable in container["env"].items():
        _check_variable(variable)
    _check_mounts(container["volumeMounts"], volumes)


def _check_name(field: Field, names: set[str]) -> None:
    name = field.text()
    if not name:
        field.required()
    elif errors := dns_label_errors(name):
        field.invalid("; ".join(errors))
    elif name in names:
        field.duplicate()
    names.add(name)


def _check_image(field: Field) -> None:
    image = field.text()
    if not image:
        field.required()
    elif image != image.strip():
        field.invalid("must not have leading or trailing whitespace")


def _check_ports(ports: Field, host_network: bool) -> None:
    names: set[str] = set()
    for port in ports.items():
        name, number, host = port["name"], port["containerPort"], port["hostPort"]
        if name.text():
            if errors := port_name_errors(name.text()):
                name.invalid("; ".join(errors))
            elif name.text() in names:
                name.duplicate()
            names.add(name.text())
        if not number.number():
            number.required()
        elif not 0 < number.number() < 65536:
            number.invalid("must be between 1 and 65535, inclusive")
        if not 0 <= host.number() < 65536:
            host.invalid("must be between 1 and 65535, inclusive")
        elif host_network and host.number() not in (0, number.number()):
            number.invalid("must match `hostPort` when `hostNetwork` is true")
        if port["protocol"].text("TCP") not in _PROTOCOLS:
            port["protocol"].unsupported(_PROTOCOLS)


def _check_variable(variable: Field) -> None:
    name = variable["name"]
    if not name.text():
        name.required()
    elif "=" in name.text() or not (name.text().isascii() and name.text().isprintable()):
        name.invalid(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
        )
    source = variable["valueFrom"]
    if not source.given:
        return
    sources = [key for key in _SOURCES if source[key].given]
    if variable["value"].text():
        source.invalid("may not be specified when `value` is not empty")
    elif len(sources) != 1:
        source.invalid(
            f"must specify one of: {', '.join(_SOURCES)}"
            if not sources
            else "may not have more than one field specified at a time"
        )


def _check_mounts(mounts: Field, volumes: set[str]) -> None:
    paths: set[str] = set()
    for mount in mounts.items():
        name, path = mount["name"], mount["mountPath"]
        if not name.text():
            name.required()
        elif name.text() not in volumes:
            name.not_found("add a volume of that name to the pod")
        if not path.text():
            path.required()
        elif path.text() in paths:
            path.invalid("must be unique")
        paths.add(path.text())
