"""Runs side by side: configurations with several seeds each, their differences, and whether chance explains them."""
