"""What a report of a fault should say about the machine.

The functions that ask programs take `run_lambda`, a function from a command to what `run` returns.
"""

from __future__ import annotations

import locale
import platform
import re
import subprocess
import sys
from collections.abc import Callable

import numpy

from clew.__config__ import show

__all__ = [
    "get_clang_version",
    "get_cmake_version",
    "get_cpu_info",
    "get_gcc_version",
    "get_gpu_info",
    "get_libc_version",
    "get_nvidia_driver_version",
    "get_platform",
    "get_pretty_env_info",
    "get_python_platform",
    "main",
    "run",
    "run_and_parse_first_match",
    "run_and_read_all",
    "run_and_return_first_line",
]

Command = str | list[str]
Run = Callable[[Command], tuple[int, str, str]]


def run(command: Command) -> tuple[int, str, str]:
    """Runs a command, a str in a shell: its status, what it wrote and its errors."""
    done = subprocess.run(command, capture_output=True, shell=isinstance(command, str), check=False)
    encoding = "oem" if get_platform() == "win32" else locale.getpreferredencoding()
    return (
        done.returncode,
        done.stdout.decode(encoding, "replace").strip(),
        done.stderr.decode(encoding, "replace").strip(),
    )


def run_and_read_all(run_lambda: Run, command: Command) -> str | None:
    """What a command wrote, None where it failed."""
    status, output, _ = run_lambda(command)
    return None if status else output


def run_and_parse_first_match(run_lambda: Run, command: Command, regex: str) -> str | None:
    """The first group of `regex` in what a command wrote, None where there is none."""
    output = run_and_read_all(run_lambda, command)
    match = None if output is None else re.search(regex, output)
    return None if match is None else match.group(1)


def run_and_return_first_line(run_lambda: Run, command: Command) -> str | None:
    """The first line that a command wrote, None where it failed."""
    output = run_and_read_all(run_lambda, command)
    return None if output is None else output.split("\n")[0]


def get_gcc_version(run_lambda: Run) -> str | None:
    """Which gcc is on the path."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda: Run) -> str | None:
    """Which clang is on the path."""
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda: Run) -> str | None:
    """Which cmake is on the path."""
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_nvidia_driver_version(run_lambda: Run) -> str | None:
    """Which driver nvidia-smi tells of."""
    return run_and_parse_first_match(run_lambda, "nvidia-smi", r"Driver Version: (.*?) ")


def get_gpu_info(run_lambda: Run) -> str | None:
    """The GPUs that nvidia-smi lists, a line each, without their identities."""
    listed = run_and_read_all(run_lambda, "nvidia-smi -L")
    return None if listed is None else re.sub(r" \(UUID: .+?\)", "", listed)


def get_cpu_info(run_lambda: Run) -> str:
    """What the system tells of the processor; empty where it tells nothing."""
    commands = {"linux": "lscpu", "darwin": "sysctl -n machdep.cpu.brand_string"}
    command = commands.get(get_platform())
    return platform.processor() if command is None else run_and_read_all(run_lambda, command) or ""


def get_platform() -> str:
    """The system: "linux", "darwin", "win32" or "cygwin"."""
    return "linux" if sys.platform.startswith("linux") else sys.platform


def get_python_platform() -> str:
    """The system, its version and the machine."""
    return platform.platform()


def get_libc_version() -> str:
    """The C library, "N/A" where it is not asked for."""
    return "-".join(platform.libc_ver()) if get_platform() == "linux" else "N/A"


def get_pretty_env_info() -> str:
    """How clew was built, and what it runs on."""
    return (
        f"{show().rstrip()}\n"
        f"Python version: {sys.version.splitlines()[0]}\n"
        f"OS: {platform.platform()}\n"
        f"NumPy version: {numpy.__version__}\n"
        "Is CUDA available: False"
    )


def main() -> None:
    """Prints it."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
