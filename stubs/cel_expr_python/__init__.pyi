"""The part of cel-expr-python that Stromboli uses; its own stubs ask for protobuf."""
