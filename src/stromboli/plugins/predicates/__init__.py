"""The plugin `predicates`: Kubernetes' own node filters, in Volcano's order (spec 04 1, 2).

One module per family of filters; `plugin` puts them together.
"""
