"""Who has to go: victim search, gang eviction, and the options that every evicting action shares."""
