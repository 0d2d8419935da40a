"""The plugin `deviceshare`: parts of GPUs and NPUs, card by card (spec 04 10)."""
