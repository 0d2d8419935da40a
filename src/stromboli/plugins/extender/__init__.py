"""The plugin `extender`: questions to a server of the user (plugin), how they are put (wire) and asked (line)."""
