"""How commands ask the leading scheduler of a cluster what it knows of an object."""
