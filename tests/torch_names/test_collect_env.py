"""torch.utils.collect_env: commands are run, and their answers read."""

import sys

import pytest

from clew._torch.utils import collect_env
from clew._torch.utils.collect_env import run


def test_a_command_gives_its_status_its_output_and_its_errors():
    assert run("echo here") == (0, "here", "")
    assert run([sys.executable, "-c", "import sys; sys.exit('lost')"]) == (1, "", "lost")


def test_what_failed_has_no_answer():
    failing, saying = "exit 3", "echo one two"
    assert collect_env.run_and_read_all(run, failing) is None
    assert collect_env.run_and_return_first_line(run, failing) is None
    assert collect_env.run_and_parse_first_match(run, failing, "(.*)") is None
    assert collect_env.run_and_read_all(run, saying) == "one two"
    assert collect_env.run_and_return_first_line(run, saying) == "one two"
    assert collect_env.run_and_parse_first_match(run, saying, "one (.*)") == "two"
    assert collect_env.run_and_parse_first_match(run, saying, "three (.*)") is None


@pytest.mark.parametrize(
    "name, said, answer",
    [
        ("get_gcc_version", "gcc (Debian) 12.2.0\nmore", "(Debian) 12.2.0"),
        ("get_clang_version", "Debian clang version 14.0.6\nmore", "14.0.6"),
        ("get_cmake_version", "cmake version 4.1\n", "version 4.1"),
        ("get_nvidia_driver_version", "| Driver Version: 550.1   CUDA", "550.1"),
        ("get_gpu_info", "GPU 0: H1 (UUID: G-1)\nGPU 1: H2 (UUID: G-2)", "GPU 0: H1\nGPU 1: H2"),
    ],
)
def test_programs_are_asked(name, said, answer):
    ask = getattr(collect_env, name)
    assert ask(lambda command: (0, said, "")) == answer
    assert ask(lambda command: (127, "", "not found")) is None
