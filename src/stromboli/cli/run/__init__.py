"""`stromboli run` and `stromboli submit`: a command or a script as a Job on a cluster, followed to its end."""
