"""Run the command line: ``python -m sklearn_bijection``, also installed as ``sklearn-bijection``."""

import sys

from ._cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
