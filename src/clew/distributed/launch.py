"""PyTorch's older launcher: `run`, whose programs are told their number in an argument."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from clew.distributed.run import get_args_parser, run

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> int:
    """Starts ranks, each with `--local-rank=N` before its own arguments.

    Args:
        args: options of `clew.distributed.run`, and `--use-env`, with which the number is in the
            variable LOCAL_RANK alone.

    Returns:
        The exit status: 0, or 1 where a rank failed.

    Example:
        >>> from clew.distributed.launch import main
        >>> main(["--nproc-per-node", "many", "train.py"])
        Traceback (most recent call last):
        SystemExit: clew launch: --nproc-per-node must be a number or auto; got 'many'
    """
    parser = get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true")
    parsed = parser.parse_args(args)
    parsed.tell_local_rank = not parsed.use_env
    return run(parsed)


if __name__ == "__main__":
    sys.exit(main())
