"""The HTTP side of the API server: authentication, routing, request bodies, representations, watches."""
