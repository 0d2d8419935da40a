"""HorizontalPodAutoscalers, which are refused; stored ones can be deleted."""

from stromboli.embedded.kinds.kind import IN_ALL, STATUS, builtin
from stromboli.embedded.kinds.strategy import Strategy

KIND = builtin(
    "autoscaling",
    "horizontalpodautoscalers",
    "HorizontalPodAutoscaler",
    "hpa",
    STATUS,
    version="v2",
    strategy=Strategy(
        refusal="HorizontalPodAutoscaler is not supported: set the number of pods with `kubectl scale`"
    ),
    **IN_ALL,
)
