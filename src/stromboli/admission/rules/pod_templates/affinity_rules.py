"""Where a pod may run: node selectors, affinities, tolerations and topology spread constraints."""

from stromboli.admission.rules.field import Field
from stromboli.api import names
from stromboli.api.name_rules import label_value_errors, qualified_name_errors
from stromboli.api.types.pod import PREFERRED, REQUIRED

_LABEL_OPERATORS = ("DoesNotExist", "Exists", "In", "NotIn")
_NODE_OPERATORS = ("DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn")
_EFFECTS = (names.NO_SCHEDULE, names.PREFER_NO_SCHEDULE, names.NO_EXECUTE)


def check_placement(spec: Field) -> None:
    """Report the problems of a pod's placement constraints."""
    check_labels(spec["nodeSelector"])
    affinity = spec["affinity"]
    _check_node_affinity(affinity["nodeAffinity"])
    for kind in ("podAffinity", "podAntiAffinity"):
        for term in affinity[kind][REQUIRED].items():
            _check_pod_term(term)
        for preference in affinity[kind][PREFERRED].items():
            _check_weight(preference["weight"])
            _check_pod_term(preference["podAffinityTerm"])
    for toleration in spec["tolerations"].items():
        _check_toleration(toleration)
    for constraint in spec["topologySpreadConstraints"].items():
        _check_spread_constraint(constraint)


def check_labels(labels: Field) -> None:
    for key, value in labels.entries():
        if errors := qualified_name_errors(key):
            Field(key, labels.report, labels.path, labels.shown_path).invalid("; ".join(errors))
        if errors := label_value_errors(value.text()):
            Field(value.value, labels.report, value.path, labels.shown_path).invalid("; ".join(errors))


def _check_node_affinity(affinity: Field) -> None:
    required = affinity[REQUIRED]
    terms = required["nodeSelectorTerms"]
    if required.given and not terms.items():
        terms.required("must have at least one node selector term")
    preferences = affinity[PREFERRED].items()
    for preference in preferences:
        _check_weight(preference["weight"])
    for term in (*terms.items(), *(preference["preference"] for preference in preferences)):
        for requirement in term["matchExpressions"].items():
            _check_requirement(requirement, _NODE_OPERATORS)


def _check_requirement(requirement: Field, operators: tuple[str, ...]) -> None:
    operator, values = requirement["operator"], requirement["values"]
    count = len(values.items())
    if operator.text() not in operators:
        operator.unsupported(operators)
    elif operator.text() in ("In", "NotIn") and not count:
        values.required("must be specified when `operator` is 'In' or 'NotIn'")
    elif operator.text() in ("Exists", "DoesNotExist") and count:
        values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator.text() in ("Gt", "Lt") and count != 1:
        values.required("must be specified single value when `operator` is 'Lt' or 'Gt'")
    if errors := qualified_name_errors(requirement["key"].text()):
        requirement["key"].invalid("; ".join(errors))


def _check_selector(selector: Field) -> None:
    check_labels(selector["matchLabels"])
    for requirement in selector["matchExpressions"].items():
        _check_requirement(requirement, _LABEL_OPERATORS)


def _check_pod_term(term: Field) -> None:
    key = term["topologyKey"]
    if not key.text():
        key.required("can not be empty")
    elif errors := qualified_name_errors(key.text()):
        key.invalid("; ".join(errors))
    _check_selector(term["labelSelector"])
    _check_selector(term["namespaceSelector"])


def _check_weight(weight: Field) -> None:
    if not 1 <= weight.number() <= 100:
        weight.invalid("must be in the range 1-100")


def _check_toleration(toleration: Field) -> None:
    key, operator, value, effect = (toleration[name] for name in ("key", "operator", "value", "effect"))
    if key.text() and (errors := qualified_name_errors(key.text())):
        key.invalid("; ".join(errors))
    if not key.text() and operator.text() != "Exists":
        operator.invalid(
            'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        )
    if operator.text() == "Exists":
        if value.text():
            toleration.invalid("value must be empty when `operator` is 'Exists'")
    elif operator.text() not in ("", "Equal", "Gt", "Lt"):
        operator.unsupported(("Equal", "Exists"))
    if effect.text() and effect.text() not in _EFFECTS:
        effect.unsupported(_EFFECTS)
    if toleration["tolerationSeconds"].given and effect.text() != names.NO_EXECUTE:
        effect.invalid("effect must be 'NoExecute' when `tolerationSeconds` is set")


def _check_spread_constraint(constraint: Field) -> None:
    if constraint["maxSkew"].number() <= 0:
        constraint["maxSkew"].invalid("must be greater than zero")
    if not constraint["topologyKey"].text():
        constraint["topologyKey"].required("can not be empty")
    choices = (names.DO_NOT_SCHEDULE, names.SCHEDULE_ANYWAY)
    if constraint["whenUnsatisfiable"].text() not in choices:
        constraint["whenUnsatisfiable"].unsupported(choices)
    _check_selector(constraint["labelSelector"])
