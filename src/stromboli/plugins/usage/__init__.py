"""The plugin `usage`: what it decides (plugin), and what it expects of pods that measurements do not show yet."""
