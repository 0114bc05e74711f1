"""`python -m gandiva_core`: the `gandiva` command of a given interpreter, whatever is on the path."""

from gandiva_core.cli.main import main

if __name__ == "__main__":
    main()
