"""Kubernetes objects and our CRDs as typed structs, quantities, and every label, annotation and message text.

Only the fields that are read are decoded. Plain data: no I/O, no arrays, nothing from the rest of Stromboli.
"""
