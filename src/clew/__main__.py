"""The command line: run, doctor, launch, export, replay, alias, kernel and info."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import Any

_RUN = """usage: clew run [--doctor | --memory] script.py [args ...]
       clew run [--doctor | --memory] -m module [args ...]
       clew run [--doctor | --memory] -c "program" [args ...]
       clew run --ipython [args ...]
       clew run --check script.py

Runs a PyTorch program, or IPython, with `torch` and `torch.*` resolved to clew. With --doctor its
training is watched, and what is silently wrong with it is reported at the end (clew.debug.doctor).
With --memory the end tells the most memory that tensors took, and who held it then
(clew.debug.memory). With --check nothing runs: names of torch that clew lacks are listed, as by
`clew doctor script.py`.
"""


def _watch(option: str) -> Any:
    """What looks at the program while it runs, and tells at the end what it saw."""
    if option == "--doctor":
        from clew._insight.debug.doctor import doctor

        return doctor()
    from clew._insight.debug.peak import PeakWatch

    return PeakWatch()


def _run(args: list[str]) -> int:
    from clew._cli.run import run_command, run_module, run_script

    if args[:1] == ["--"]:
        args = args[1:]
    if not args or args[0] in ("-h", "--help"):
        print(_RUN, end="")
        return 0 if args else 2
    if args[0] in ("--doctor", "--memory"):
        if args[1:2] and args[1] in ("--doctor", "--memory"):
            print("clew run: give one of --doctor and --memory, once", file=sys.stderr)
            return 2
        with _watch(args[0]) as watch:
            status = _run(args[1:])
            if args[0] == "--memory":
                watch.ended(status)
        return status
    if args[0] == "--check":
        from clew._cli.check import main as check

        return check(args[1:])
    if args[0] == "--ipython":
        if importlib.util.find_spec("IPython") is None:
            print("clew run: --ipython needs the package: pip install ipython", file=sys.stderr)
            return 2
        return run_module("IPython", args[1:])
    if args[0] == "-m":
        if len(args) < 2:
            print("clew run: -m needs the name of a module", file=sys.stderr)
            return 2
        return run_module(args[1], args[2:])
    if args[0] == "-c":
        if len(args) < 2:
            print("clew run: -c needs the text of a program", file=sys.stderr)
            return 2
        return run_command(args[1], args[2:])
    if args[0].startswith("-"):
        print(f"clew run: unknown option {args[0]!r}\n{_RUN}", file=sys.stderr, end="")
        return 2
    return run_script(args[0], args[1:])


_REPLAY = """usage: clew replay [--no-debugger] crash.clew [script.py]

Runs the program again at the step that clew.debug.record saved: its models, optimizers, random
numbers and first batch are those of that step. A debugger opens where it fails.
"""


def _replay(args: list[str]) -> int:
    debugger = "--no-debugger" not in args
    args = [a for a in args if a != "--no-debugger"]
    if not 1 <= len(args) <= 2 or args[0].startswith("-"):
        print(_REPLAY, end="")
        return 0 if args[:1] in (["-h"], ["--help"]) else 2
    from clew._insight.debug.replaying import replay

    return replay(args[0], args[1] if args[1:] else None, debugger=debugger)


def _add_kernel(commands: Any) -> None:
    kernel = commands.add_parser("kernel", help="a Jupyter kernel in which torch is clew")
    actions = kernel.add_subparsers(dest="action", required=True)
    for action, what in (
        ("install", "install the kernel, in place of an older one of its name"),
        ("uninstall", "remove the kernel; give the same name and place"),
    ):
        parser = actions.add_parser(action, help=what, description=what)
        parser.add_argument("--name", default="clew", help="of the kernel (clew)")
        if action == "install":
            title = "Python 3 (torch is clew)"
            parser.add_argument("--display-name", default=title, help=f"in notebooks ({title})")
        place = parser.add_mutually_exclusive_group()
        place.add_argument("--user", action="store_true", help="in the user's data (the default)")
        place.add_argument("--sys-prefix", action="store_true", help="in this environment")
        place.add_argument("--prefix", help="in the environment of this folder")


def _kernel(parsed: argparse.Namespace) -> int:
    from clew._cli.kernel import install, uninstall

    prefix = sys.prefix if parsed.sys_prefix else parsed.prefix
    if parsed.action == "install":
        return install(parsed.name, parsed.display_name, prefix)
    return uninstall(parsed.name, prefix)


def _info() -> int:
    from clew.__config__ import show

    print(show(), end="")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """The `clew` command.

    Args:
        argv: the words after `clew`; None for `sys.argv`.

    Returns:
        The exit status.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    if args[:1] == ["run"]:  # what follows belongs to the program, options included
        if any(n in os.environ for n in ("PMI_RANK", "PMIX_RANK", "SLURM_PROCID")):
            from clew.distributed._mpi import fill_environment

            fill_environment()
        return _run(args[1:])
    if args[:1] == ["launch"]:
        from clew.distributed.run import main as launch

        return launch(args[1:])
    if args[:1] == ["doctor"]:
        from clew._cli.check import main as check

        return check(args[1:])
    if args[:1] == ["replay"]:
        return _replay(args[1:])
    if args[:1] == ["export"]:
        from clew.export._command import main as export

        return export(args[1:])
    parser = argparse.ArgumentParser(prog="clew", description="clew, with PyTorch's API")
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("run", help="run a PyTorch program on clew")
    commands.add_parser("doctor", help="list names of torch that a program needs and clew lacks")
    commands.add_parser("launch", help="start the ranks of a program through MPI")
    alias = commands.add_parser("alias", help="let `import torch` mean clew in this environment")
    alias.add_argument("action", choices=["on", "off", "status"])
    _add_kernel(commands)
    commands.add_parser("export", help="write a model of a Python file as ONNX or as a program")
    commands.add_parser("replay", help="run a program again at the step that debug.record saved")
    commands.add_parser("info", help="print how clew was built and what it runs on")
    parsed = parser.parse_args(args)
    if parsed.version:
        from clew import __version__

        print(f"clew {__version__}")
        return 0
    if parsed.command == "alias":
        from clew._cli.alias import alias as switch

        return switch(parsed.action)
    if parsed.command == "kernel":
        return _kernel(parsed)
    if parsed.command == "info":
        return _info()
    parser.print_help()
    return 2


if __name__ == "__main__":
    sys.exit(main())
