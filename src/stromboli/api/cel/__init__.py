"""Expressions in CEL, the Common Expression Language: compiled and type-checked, and evaluated at a bounded cost.

`expression` is the way in: an `Environment` declares variables and compiles expressions, which are then evaluated, and
which an `expression_cache` keeps. The work is done by cel-cpp, through cel-expr-python; what that leaves unbounded is
bounded here, before an expression runs.
"""
