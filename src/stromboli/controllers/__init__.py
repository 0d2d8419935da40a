"""The controllers of Volcano's kinds: they turn what users submit into pods, groups and states.

A controller reads from stores that reflectors fill, decides in a pure function, and writes with the API writer.
`sync(key)` reconciles one object and may be called at any time, any number of times: it decides by what the cluster
shows. `runner` runs all controllers on one event loop, `process` is `stromboli controllers`.
"""
