"""What a viewer may change with his own rights: each action a page that says what it does, and a form."""
