"""The dashboard: a cluster in a browser, for `stromboli dashboard` and `stromboli up`.

`watched_cluster` is what is shown, from the records of `cli/live`; `viewers` who looks and what he may see; `pages`
turns both into HTML, and has no I/O of its own but requests with the viewer's rights; `actions` changes objects with
his rights; `server` listens, guards requests and keeps pages live; `assets` is what browsers load.
"""
