"""The command line: a demonstration, and aligning arrays that lie in files."""

from ._run import main

__all__ = ["main"]
