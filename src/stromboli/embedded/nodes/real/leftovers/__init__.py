"""What pods leave behind on a real node, and its removal."""
