"""Ranks that fail, differ or hang."""

import json
import time

import pytest
from ranks import needs_mpi, run_text

pytestmark = needs_mpi

START = """
import os, sys, time, datetime
import torch
import torch.distributed as dist
limit = datetime.timedelta(seconds=int(os.environ.get("LIMIT", 60)))
dist.init_process_group("gloo", timeout=limit)
r = dist.get_rank()
x = torch.ones(3)
dist.all_reduce(x)
"""


@pytest.mark.parametrize(
    "fault, says",
    [
        ('raise ValueError("bad batch")', ["rank 1 failed at", "train.py:11", "bad batch"]),
        ("sys.exit(3)", ["rank 1 failed at", "SystemExit: 3"]),
        ("os.kill(os.getpid(), 9)", ["clew launch: rank 1 was killed"]),
        ("os.kill(os.getpid(), 11)", ["clew launch: rank 1 was killed"]),
    ],
)
def test_a_rank_that_fails_ends_the_others(tmp_path, fault, says):
    begin = "print(f'begin={time.time()}', flush=True); "
    done = run_text(tmp_path, 2, START + f"if r == 1:\n    {begin}{fault}\ndist.all_reduce(x)\n")
    began = float(done.stdout.partition("begin=")[2].split()[0])
    assert time.time() - began < 10 and done.returncode == 1
    for part in says:
        assert part in done.stderr, done.stderr
    if "kill" not in fault:  # then mpiexec may be quicker than rank 0's own words
        assert "clew: rank 0 ends at" in done.stderr, done.stderr
        assert "train.py:12, because rank 1" in done.stderr


def test_ranks_that_call_different_things(tmp_path):
    program = START + (
        "try:\n"
        "    if r == 0:\n"
        "        dist.all_reduce(x)\n"
        "    else:\n"
        "        dist.broadcast(x, 0)\n"
        "except RuntimeError as error:\n"
        "    print(error, file=open(sys.argv[1] + str(r), 'a'))\n"
        "try:\n"
        "    dist.all_reduce(torch.ones(3 + r))\n"
        "except RuntimeError as error:\n"
        "    print(error, file=open(sys.argv[1] + str(r), 'a'))\n"
    )
    done = run_text(tmp_path, 2, program, args=[tmp_path / "told"])
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        first, second = (tmp_path / f"told{rank}").read_text().splitlines()
        assert "train.py:12" in first and "train.py:14" in first and "broadcast" in first
        assert "(3,)" in second and "(4,)" in second


@pytest.mark.parametrize(
    "call, says",
    [
        (
            "dist.all_to_all_single(torch.empty(4), torch.ones(4), [2, 2], [2 - r, 2 + r])",
            "rank 1 sends rank 0 1 elements at",
        ),
        (
            "dist.all_to_all([torch.empty(2), torch.empty(3 - r)], [torch.ones(2)] * 2)",
            "rank 1 sends rank 0 2 elements at",
        ),
        (
            "t = torch.float64 if r else torch.float32\n"
            "dist.all_to_all_single(torch.empty(2, dtype=t), torch.ones(2, dtype=t))",
            "rank 1 calls all_to_all_single(float64) at",
        ),
    ],
)
def test_parts_that_do_not_fit(tmp_path, call, says):
    done = run_text(tmp_path, 2, START + call + "\n")
    assert done.returncode == 1
    assert says in done.stderr and "train.py:1" in done.stderr.partition(says)[2], done.stderr


def test_groups_of_different_ranks(tmp_path):
    done = run_text(tmp_path, 2, START + "dist.new_group([0] if r else [0, 1])\n")
    assert done.returncode == 1
    assert "rank 0 calls new_group([0, 1]) at" in done.stderr, done.stderr
    assert "rank 1 calls new_group([0]) at" in done.stderr


def test_groups_in_another_order(tmp_path):
    program = START + (
        "one, other = dist.new_group([0, 1]), dist.new_group([0, 1])\n"
        "try:\n"
        "    for group in ((one, other), (other, one))[r]:\n"
        "        dist.all_reduce(x, group=group)\n"
        "except RuntimeError as error:\n"
        "    print(error, file=open(sys.argv[1] + str(r), 'w'))\n"
        "    for _ in range(100):\n"
        "        time.sleep(0.1 * (not os.path.exists(sys.argv[1] + str(1 - r))))\n"
        "    raise\n"
    )
    done = run_text(tmp_path, 2, program, args=[tmp_path / "told"])
    assert done.returncode == 1
    for rank in (0, 1):
        told = (tmp_path / f"told{rank}").read_text()
        for r, number in ((0, 1), (1, 2)):
            says = f"rank {r} calls all_reduce((3,), float32, SUM) of group 'group_{number}' at "
            assert "train.py:13" in told.partition(says)[2].partition(";")[0], told


def test_a_late_thread_is_no_other_order(tmp_path):
    program = START + (
        "one, other = dist.new_group([0, 1]), dist.new_group([0, 1])\n"
        "import threading\n"
        "if r:\n"  # rank 1 waits in one group, and another of its threads comes late to the other
        "    late = threading.Thread(\n"
        "        target=lambda: (time.sleep(7), dist.all_reduce(torch.ones(1), group=one)))\n"
        "    late.start()\n"
        "    dist.all_reduce(x, group=other)\n"
        "    late.join()\n"
        "else:\n"
        "    dist.all_reduce(torch.ones(1), group=one)\n"
        "    dist.all_reduce(x, group=other)\n"
        "print('through')\n"
    )
    done = run_text(tmp_path, 2, program)
    assert done.returncode == 0 and done.stdout.count("through") == 2, done.stderr


def test_sharded_modules_of_equal_sizes(tmp_path):
    program = START + (
        "from torch.distributed.fsdp import fully_shard\n"
        "blocks = [fully_shard(torch.nn.Linear(4, 4)) for _ in range(3)]\n"
        "y = torch.ones(2, 4)\n"
        "for b in ([0, 1], [2, 1])[r]:\n"
        "    y = blocks[b](y)\n"
    )
    done = run_text(tmp_path, 2, program)
    assert done.returncode == 1
    for rank, number in ((0, 1), (1, 3)):
        call = f"all_gather_into_tensor((10,), float32, Linear that was sharded as number {number})"
        assert f"rank {rank} calls {call} at" in done.stderr, done.stderr
    assert "train.py:14" in done.stderr


@pytest.mark.parametrize("sent", ["4", "2", "3, dtype=torch.float64", "3, dtype=torch.int16"])
@pytest.mark.parametrize("source", ["0", "None"])
def test_messages_of_another_size(tmp_path, sent, source):
    program = START + (
        f"if r == 0:\n    dist.send(torch.ones({sent}), 1)\n"
        f"else:\n    dist.recv(x, {source})\n"
        "dist.barrier()\n"
    )
    done = run_text(tmp_path, 2, program)
    assert done.returncode == 1
    assert "rank 1 failed at" in done.stderr and "train.py:13: RuntimeError" in done.stderr
    assert "a message must have the tensor's size and dtype, 12 bytes; got" in done.stderr
    assert "from rank 0 of the group" in done.stderr


def test_limits_and_early_ends(tmp_path):
    program = START + (
        "if r == 0:\n"
        "    try:\n"
        "        dist.monitored_barrier(timeout=datetime.timedelta(seconds=0.5))\n"
        "    except RuntimeError as error:\n"
        "        print(error)\n"
        "    try:\n"
        "        dist.recv(x, 1)\n"
        "    except RuntimeError as error:\n"
        "        print(error)\n"
        "else:\n"
        "    time.sleep(2.5)\n"
        "os._exit(0) if r else None\n"
    )
    done = run_text(tmp_path, 2, program, env={"LIMIT": "1"})
    assert "there came no word from rank 1" in done.stdout, done.stdout + done.stderr
    assert "more than the limit of 1 s" in done.stdout
    program = START + "if r == 0:\n    dist.all_reduce(x)\n"
    done = run_text(tmp_path, 2, program)
    assert done.returncode == 1 and "rank 1, which has ended" in done.stderr


BARE = """
import os
import torch
import torch.distributed as dist
r = int(os.environ["RANK"])
"""


@pytest.mark.parametrize(
    "rest, where",
    [
        # What MPI can only do in a call that blocks: its start, another communicator, a group.
        ("if r == 0:\n    dist.init_process_group()\n", "init_process_group"),
        ("dist.init_process_group()\nif r == 0:\n    dist.barrier()\n", "barrier"),
        ("dist.init_process_group()\nif r == 0:\n    dist.new_group([0, 1])\n", "new_group"),
    ],
)
def test_a_rank_that_never_comes(tmp_path, rest, where):
    done = run_text(tmp_path, 2, BARE + rest, timeout=40)
    assert done.returncode == 1
    assert f"distributed.{where}: rank 0 waits at" in done.stderr, done.stderr
    assert "for rank 1, which has ended" in done.stderr


def test_two_processes_with_one_rank(tmp_path):
    done = run_text(tmp_path, 2, BARE + "dist.init_process_group(rank=0)\n", timeout=40)
    assert done.returncode == 1
    assert "two processes say that they are 0" in done.stderr, done.stderr


def test_restarts(tmp_path):
    program = START + (
        "if r == 1 and os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n"
        "    raise ValueError('once')\n"
        "dist.barrier()\n"
        "told = open(sys.argv[1] + os.environ['LOCAL_RANK'], 'w')\n"
        "print(os.environ['RANK'], os.environ['WORLD_SIZE'], file=told)\n"
    )
    done = run_text(tmp_path, 2, program, "--restarts", "1", args=[tmp_path / "told"])
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / f"told{r}").read_text() for r in (0, 1)] == ["0 2\n", "1 2\n"]
    assert "restart 1 of 1" in done.stderr


def test_restarts_go_on_from_the_last_checkpoint(tmp_path):
    program = (
        START
        + """
import json, signal
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

folder, killed = sys.argv[1], int(sys.argv[2])
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
fully_shard(net)
opt = torch.optim.Adam(net.parameters(), 0.05)
begin = 0
if os.path.exists(folder + "/.metadata"):
    m, o = get_state_dict(net, opt)
    state = {"model": m, "optim": o, "step": 0}
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(net, opt, model_state_dict=state["model"], optim_state_dict=state["optim"])
    begin = state["step"]
losses = []
for step in range(begin, 8):
    torch.manual_seed(step)
    x = torch.randn(4, 3)
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    opt.zero_grad()
    loss.backward()
    if step == killed and r == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)
    opt.step()
    m, o = get_state_dict(net, opt)
    dcp.save({"model": m, "optim": o, "step": step + 1}, checkpoint_id=folder)
    losses.append(loss.item())
if r == 0:
    print(json.dumps([begin, losses]))
"""
    )
    whole = run_text(tmp_path, 2, program, args=[tmp_path / "a", "-1"])
    again = run_text(tmp_path, 2, program, "--restarts", "3", args=[tmp_path / "b", "5"])
    assert whole.returncode == again.returncode == 0, whole.stderr + again.stderr
    (_, losses), (begin, rest) = (json.loads(d.stdout.splitlines()[-1]) for d in (whole, again))
    assert begin == 5 and rest == losses[5:] and len(losses) == 8


def test_a_rank_that_waits_leaves_the_processor(tmp_path):
    program = START + (
        "if r == 0:\n"
        "    time.sleep(0.15)\n"
        "used, began = time.process_time(), time.perf_counter()\n"
        "dist.barrier()\n"
        "if r:\n"
        "    print((time.process_time() - used) / (time.perf_counter() - began))\n"
    )
    done = run_text(tmp_path, 2, program)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.4
