"""Volcano's command line: `vcctl` and the single commands, with its words, flags, columns and texts (spec 07 13-17).

The package `packages/vcctl` alone installs the programs, so that they do not shadow an installed `vcctl`.
"""
