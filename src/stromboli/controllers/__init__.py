"""What turns the objects that users submit into pods, groups and states: one controller per kind.

A controller reads from shelves (what the API server has, kept up by watches), decides in a pure function, and writes
with the pen. `sync(key)` brings one object where it should be and may be called at any time, any number of times:
whatever it decides, it decides from what the cluster shows, never from what it remembers.

`workqueue` says which object is next, `shelf` holds what is known, `pen` writes, `voice` tells users, `controller` is
the shape of one, `crew` runs them all (in a process of their own, or inside another one), `process` is `stromboli
controllers`.
"""
