"""What may be typed after the name of the program, and its help."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Sequence
from typing import Any

from .. import __version__
from . import _commands, _demo
from ._models import ALIGNERS, parse_aligner
from ._terminal import PROGRAM

_FORMATS = """\
files:
  .npy      one array; read through a memory map, so it may be larger than memory
  .npz      one array, or file.npz:NAME for one of several
  .csv      numbers, with or without a line of names
  .parquet  numeric columns; needs the extra 'io'
Row i of X belongs to row i of Y. A one-dimensional array is one column."""

_EXIT = """\
exit codes: 0 done; 1 a file, its content or a parameter's value will not do; 2 the command line is
not understood; 130 interrupted; 141 the reader of the output has gone; 143 terminated."""

_ALIGNER = f"one of {', '.join(ALIGNERS)}, with parameters after a colon: cca:direction=forward,shrinkage=0.1"


def parse(argv: Sequence[str]) -> Any:
    """Understand the arguments; without a command they are those of ``demo``."""
    parser, commands = _parser()
    words = set(argv)
    named = words & {*commands, "-h", "--help", "--version"}
    if not named and (not argv or argv[0].startswith("-")):
        argv = ["demo", *argv]
    return parser.parse_args(argv)


def _parser() -> tuple[ArgumentParser, Sequence[str]]:
    parser = ArgumentParser(
        PROGRAM,
        description="Align two embedding spaces with a map that can be walked back.",
        epilog=f"""\
examples:
  {PROGRAM}                                     the demonstration, on real embeddings
  {PROGRAM} compare X.npy Y.npy                 which aligner suits these arrays?
  {PROGRAM} fit X.npy Y.npy -o aligner.skops
  {PROGRAM} transform aligner.skops new_X.npy -o in_Y.npy
  {PROGRAM} inverse aligner.skops new_Y.npy -o in_X.npy
  {PROGRAM} COMMAND --help                      all options of a command

{_EXIT}""",
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    _add_quiet(parser, default=False)
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=True)
    _add_demo(commands)
    _add_compare(commands)
    _add_fit(commands)
    _add_convert(commands, "transform", "transform", "from X space to Y space", "in_Y.npy")
    _add_convert(
        commands, "inverse", "inverse_transform", "from Y space back to X space", "in_X.npy"
    )
    return parser, list(commands.choices)


def _add_command(commands: Any, name: str, run: Any, summary: str, epilog: str) -> ArgumentParser:
    parser: ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    # A default here would undo a --quiet before the command.
    _add_quiet(parser, default=SUPPRESS)
    return parser


def _add_quiet(parser: ArgumentParser, default: Any) -> None:
    parser.add_argument(
        "-q", "--quiet", action="store_true", default=default, help="no progress and no notes"
    )


def _add_demo(commands: Any) -> None:
    parser = _add_command(
        commands,
        "demo",
        _demo.demonstrate,
        "align two real embedding spaces, forwards and back (the default)",
        f"examples:\n  {PROGRAM}\n  {PROGRAM} demo --plot demo.pdf\n  {PROGRAM} demo --no-plot",
    )
    parser.add_argument(
        "--plot", metavar="PATH", default="alignment.png", help="the picture (%(default)s)"
    )
    parser.add_argument("--no-plot", action="store_true", help="draw no picture")


def _add_compare(commands: Any) -> None:
    parser = _add_command(
        commands,
        "compare",
        _commands.compare,
        "cross-validate aligners on your own arrays, in both directions",
        f"""\
examples:
  {PROGRAM} compare X.npy Y.npy
  {PROGRAM} compare X.npy Y.npy --aligner cca --aligner cca:shrinkage=0 --cv 10
  {PROGRAM} compare pairs.npz:x pairs.npz:y --csv table.csv --plot table.png

{_FORMATS}""",
    )
    _add_pair(parser)
    parser.add_argument(
        "--aligner",
        metavar="NAME[:PARAMETERS]",
        action="append",
        type=parse_aligner,
        help=f"{_ALIGNER}; may be repeated (all, as they are)",
    )
    parser.add_argument(
        "--cv", metavar="K", type=_folds, default=5, help="number of folds (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="shuffles the folds (%(default)s)")
    parser.add_argument(
        "--similarity",
        choices=("cosine", "centred-cosine", "csls"),
        default="cosine",
        help="how rows are compared for retrieval (%(default)s)",
    )
    parser.add_argument("--csv", metavar="PATH", help="write a line per aligner and fold")
    parser.add_argument("--plot", metavar="PATH", help="draw the table; needs the extra 'plot'")


def _add_fit(commands: Any) -> None:
    parser = _add_command(
        commands,
        "fit",
        _commands.fit,
        "fit an aligner on all rows and save it",
        f"""\
examples:
  {PROGRAM} fit X.npy Y.npy -o aligner.skops
  {PROGRAM} fit X.csv Y.csv -o aligner.skops --aligner procrustes:scale=False
  {PROGRAM} fit X.npy Y.npy -o aligner.skops --sample-weight weight.npy

{_FORMATS}""",
    )
    _add_pair(parser)
    _add_output(parser, "the fitted aligner")
    parser.add_argument(
        "--aligner",
        metavar="NAME[:PARAMETERS]",
        type=parse_aligner,
        default="cca",
        help=f"{_ALIGNER} (%(default)s)",
    )
    parser.add_argument("--sample-weight", metavar="W", help="a file with one weight per row")


def _add_convert(commands: Any, name: str, way: str, where: str, output: str) -> None:
    source = "X" if way == "transform" else "Y"
    parser = _add_command(
        commands,
        name,
        _commands.convert,
        f"map rows {where}",
        f"""\
examples:
  {PROGRAM} {name} aligner.skops new_{source}.npy -o {output}
  {PROGRAM} {name} aligner.skops new_{source}.csv -o {output.replace(".npy", ".csv")}

{_FORMATS}
A .npy file is also written in blocks of rows.""",
    )
    parser.set_defaults(way=way)
    parser.add_argument("model", metavar="ALIGNER", help="what 'fit' saved")
    parser.add_argument("input", metavar="IN", help=f"rows of {source} space")
    _add_output(parser, "the mapped rows, in the format of its ending")


def _add_pair(parser: ArgumentParser) -> None:
    parser.add_argument("X", help="rows of the first space")
    parser.add_argument("Y", help="the rows of the second space that belong to them")


def _add_output(parser: ArgumentParser, what: str) -> None:
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True, help=f"{what}; replaced if it exists"
    )


def _folds(text: str) -> int:
    if not text.isdecimal() or int(text) < 2:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 2")
    return int(text)
