"""`stromboli check`: is the installation on a cluster healthy?"""
