"""Options of `clew launch` that say where output goes and what a program is."""

import os
import sys
import time

import pytest
from ranks import launch, needs_mpi, run_text

from clew.distributed.run import main

pytestmark = needs_mpi

PROGRAM = """
    import os
    import sys
    rank = os.environ["RANK"]
    print("out", rank, flush=True)
    print("err", rank, file=sys.stderr, flush=True)
    os.system(f"echo from a shell {rank}")
    sys.stdout.write("no end of line")
"""
TEXTS = {"stdout": "out {}\nfrom a shell {}\nno end of line", "stderr": "err {}\n"}


def files(folder):
    """Ranks' files as {"rank/name": text}, of the one launch there was."""
    (run,) = folder.iterdir()
    made = {}
    for path in run.rglob("*.log"):
        attempt, rank, name = path.relative_to(run).parts
        made[f"{attempt}/{rank}/{name}"] = path.read_text()
    return made


def test_output_goes_to_files(tmp_path):
    done = run_text(tmp_path, 2, PROGRAM, "--log-dir", str(tmp_path / "logs"), "-r", "0:1,1:3")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "" and "err 0" in done.stderr and "err 1" not in done.stderr
    assert files(tmp_path / "logs") == {
        "attempt_0/0/stdout.log": TEXTS["stdout"].format(0, 0),
        "attempt_0/1/stdout.log": TEXTS["stdout"].format(1, 1),
        "attempt_0/1/stderr.log": TEXTS["stderr"].format(1),
    }


def test_lines_are_shown_too(tmp_path):
    done = run_text(tmp_path, 2, PROGRAM, "--log-dir", str(tmp_path / "logs"), "--tee", "3",
                    "--role", "t")  # fmt: skip
    assert done.returncode == 0, done.stderr
    for r in range(2):
        for word in (f"out {r}", f"from a shell {r}", "no end of line"):
            assert f"[t{r}]:{word}\n" in done.stdout
        assert f"[t{r}]:err {r}\n" in done.stderr
    assert len(files(tmp_path / "logs")) == 4


def test_a_failure_and_a_restart_in_files(tmp_path):
    text = """
        import os
        import sys
        import time
        attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
        print("attempt", attempt, flush=True)
        begun = sys.argv[1] + attempt
        if os.environ["RANK"] == "1":
            while not os.path.exists(begun):
                time.sleep(0.01)
            raise ValueError("on purpose")
        open(begun, "w").close()
        time.sleep(30)
    """
    begin = time.monotonic()
    done = run_text(tmp_path, 2, text, "--log-dir", str(tmp_path / "logs"), "-r", "3",
                    "--restarts", "1", args=(str(tmp_path / "begun"),))  # fmt: skip
    assert done.returncode == 1 and time.monotonic() - begin < 20
    assert "rank 1 failed at" in done.stderr and "ValueError: on purpose" in done.stderr
    found = files(tmp_path / "logs")
    assert [found[f"attempt_{k}/1/stdout.log"] for k in (0, 1)] == ["attempt 0\n", "attempt 1\n"]
    assert "ValueError: on purpose" in found["attempt_0/1/stderr.log"]
    assert "because rank 1 failed" in found["attempt_1/0/stderr.log"]


def test_only_some_ranks_are_shown(tmp_path):
    done = run_text(tmp_path, 2, PROGRAM, "--local-ranks-filter", "1")
    assert done.returncode == 0
    assert "out 1" in done.stdout and "out 0" not in done.stdout
    assert "err 1" in done.stderr and "err 0" not in done.stderr


@pytest.mark.parametrize(
    "options",
    [["-t", "4"], ["-r", "0:x"], ["-r", "2:1"], ["--local-ranks-filter", "one"],
     ["-m", "--no-python"]],
)  # fmt: skip
def test_options_that_do_not_fit(options):
    with pytest.raises(SystemExit, match="clew launch: "):
        main(["-n", "2", *options, "train.py"])


def test_a_command(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "import torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "told = [None, None]\n"
        "dist.all_gather_object(told, dist.get_rank())\n"
        "assert dist.get_rank() or print(told) is None\n"
    )
    done = launch(2, sys.executable, "--no-python", args=["-m", "clew", "run", str(path)])
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[0, 1]"]


@pytest.mark.parametrize(
    "fault, says",
    [("exit 3", "it ended with status 3"), ("kill -9 $$", "it was ended by SIGKILL")],
)
def test_a_command_that_fails(tmp_path, fault, says):
    other = f"sleep 60 & echo $! > {tmp_path}/pid; wait"
    text = f'while [ "$RANK" = 1 ] && [ ! -s {tmp_path}/pid ]; do sleep 0.05; done; '
    text += f'if [ "$RANK" = 1 ]; then {fault}; else {other}; fi'
    begin = time.monotonic()
    done = launch(2, "bash", "--no-python", args=["-c", text])
    assert done.returncode == 1 and time.monotonic() - begin < 10
    assert f"rank 1 failed at bash: {says}" in done.stderr
    pid = int((tmp_path / "pid").read_text())
    for _ in range(40):  # what the other rank's command started has ended, too
        if not os.path.exists(f"/proc/{pid}"):
            break
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{pid}")


def test_a_command_that_is_not_there():
    done = launch(2, "no-such-command", "--no-python")
    assert done.returncode == 1
    assert "failed at no-such-command: it could not be started" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_whose_python_raises(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "import torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "if dist.get_rank() == 1:\n"
        "    raise ValueError('on purpose')\n"
        "dist.barrier()\n"
    )
    begin = time.monotonic()
    done = launch(2, sys.executable, "--no-python", args=["-m", "clew", "run", str(path)])
    assert done.returncode == 1 and time.monotonic() - begin < 10
    assert f"rank 1 failed at {path}:4: ValueError: on purpose" in done.stderr


@pytest.mark.parametrize(
    "nodes, hosts, says",
    [
        ("1:4", "", None),  # as many machines as there are
        ("1:4", "localhost", None),
        ("2:4", "", "--nnodes 2:4 needs as many --hosts"),
        ("2:4", "localhost", "--nnodes 2:4 needs as many --hosts"),
        ("two", "", "must be a number or fewest:most; got 'two'"),
        ("1:", "", "must be a number or fewest:most; got '1:'"),
    ],
)
def test_a_range_of_machines(tmp_path, nodes, hosts, says):
    options = ["--nnodes", nodes, *(["--hosts", hosts] if hosts else [])]
    done = run_text(tmp_path, 2, "print('here')\n", *options)
    if says is None:
        assert done.returncode == 0 and done.stdout.count("here") == 2, done.stderr
    else:
        assert done.returncode == 1 and says in done.stderr, done.stderr


def test_options_of_a_rendezvous(tmp_path):
    text = "import os; print(os.environ['RANK'])"
    done = run_text(tmp_path, 1, text, "--rdzv-conf", "timeout=3,rank=0")
    assert done.returncode == 0 and done.stdout == "0\n", done.stderr
    done = run_text(tmp_path, 1, text, "--rdzv-conf", "rank=1")
    assert done.returncode == 1 and "--hosts for the others" in done.stderr
