"""The plugin `nodeorder`: Kubernetes' own node scores, with Volcano's weights (spec 04 3).

One module per family of scores; `plugin` combines them.
"""
