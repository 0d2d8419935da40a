"""Expressions in CEL, the Common Expression Language: compiled and type-checked, and evaluated at a bounded cost.

`expression` is the way in: an `Environment` declares variables and compiles expressions, which are then evaluated, and
which an `ExpressionCache` keeps.
"""
