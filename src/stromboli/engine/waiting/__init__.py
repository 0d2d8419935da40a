"""Who is not tried again: jobs and whole cycles that could only come to what they came to before."""
