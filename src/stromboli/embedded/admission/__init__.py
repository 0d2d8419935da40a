"""What is decided about an object before it is stored."""
