"""`stromboli policy`: policies that come along or are yours, checked, compared with the one in force, put in force."""
