"""ValidatingWebhookConfigurations."""

from stromboli.embedded.kinds.builtin.mutating_webhook_configuration import WebhookConfigurationStrategy
from stromboli.embedded.kinds.kind import EXTENSION, builtin

KIND = builtin(
    "admissionregistration.k8s.io",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    strategy=WebhookConfigurationStrategy(),
    **EXTENSION,
)
