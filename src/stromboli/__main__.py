"""`python -m stromboli` is the `stromboli` command."""

from stromboli.cli.main import app

if __name__ == "__main__":
    app()
