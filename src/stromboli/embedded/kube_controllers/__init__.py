"""The controllers that Kubernetes itself would run: garbage collection, namespaces, definitions, quotas, budgets."""
