"""ServiceAccounts."""

from stromboli.embedded.kinds.kind import Subresource, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.table_printer import count_printer

KIND = builtin(
    "",
    "serviceaccounts",
    "ServiceAccount",
    "sa",
    Subresource("token", ("create",), "TokenRequest", "authentication.k8s.io", "v1"),
    strategy=Strategy(printer=count_printer("Name | Secrets# | Age", "secrets")),
)
