"""What may be done with stored objects, and what happens to them by themselves. No HTTP here."""
