"""Services: defaults, validation, and the fields that a server fills in."""
