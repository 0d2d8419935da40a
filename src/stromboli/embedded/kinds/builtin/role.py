"""Roles."""

from stromboli.embedded.kinds.kind import builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.table_printer import CREATION_TIMES

KIND = builtin("rbac.authorization.k8s.io", "roles", "Role", strategy=Strategy(printer=CREATION_TIMES))
