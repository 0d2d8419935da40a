"""A client of an API server: access, requests, watches, events, leases. Of our packages it knows `api` alone.

`cluster_access` finds the server and our credentials, `api_client` makes requests, `api_resources` knows what the
server has, `reflector` lists and watches one kind, `event_recorder` writes events, `election` holds a lease.
"""
