"""Volcano's command line: `vcctl` and the single commands, with its words, flags, columns and texts (spec 07 13-17).

The programs are installed by the extra `stromboli[vcctl]` alone, so that nobody's own `vcctl` is shadowed.
"""
