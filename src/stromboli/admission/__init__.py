"""Volcano's admission: defaults and checks of every kind (`rules`), and the webhook server around them.

The embedded API server and `stromboli lint` use the same rules.
"""
