"""The steps of a cycle, one function per file. An action knows the engine and the model, never a plugin."""
