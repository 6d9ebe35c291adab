"""Steps of many ranks, simulated: `python -m bench.scaling` writes docs/scaling.md.

A simulation goes through one training step of a transformer layer by layer and keeps two clocks: of
the processor, and of the channel between ranks. What the program does beside each other runs beside
each other here. Costs of collectives are those of the usual algorithms (Thakur, Rabenseifner and
Gropp, Optimization of Collective Communication Operations in MPICH, 2005).

B batch, T length, C channels. Times are in s, sizes in bytes, rates in 1/s.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FLOAT = 4
BUCKET = 4 << 20


@dataclass(frozen=True)
class Network:
    """A transformer: `layers` equal blocks, and embeddings of `V` symbols."""

    name: str
    layers: int
    C: int
    T: int
    V: int
    head: int  # channels of a head
    batch: int  # of all ranks together
    parts: int = 8  # of a batch in a pipeline

    @property
    def block(self) -> int:
        """Parameters of a block."""
        return 12 * self.C * self.C

    @property
    def parameters(self) -> int:
        return self.layers * self.block + (self.V + self.T) * self.C

    def work(self, samples: float) -> float:
        """Operations of a block's forward; backward takes twice as many."""
        return samples * self.T * (2 * self.block + 4 * self.T * self.C)

    def moved(self, samples: float) -> float:
        """Bytes of a block's norms and sums, which tensor parallelism does not divide."""
        return 10 * samples * self.T * self.C * FLOAT

    def kept(self, samples: float) -> float:
        """What a block saves for backward: some 18 activations of C channels a position."""
        return 18 * samples * self.T * self.C * FLOAT


@dataclass(frozen=True)
class Link:
    """A message of n bytes takes latency + n / bandwidth."""

    latency: float
    bandwidth: float


@dataclass(frozen=True)
class Machine:
    """Ranks, so many a node; links within it, and between nodes, which the ranks of one share."""

    name: str
    rate: float  # operations a second of a rank
    memory: float  # of a rank
    per_node: int
    near: Link
    far: Link
    traffic: float  # bytes a second of a rank's memory
    update: float = 0.0  # of the optimizer, s a parameter
    beside: bool = True  # communication takes no processor time
    copies: float = 0.0  # bytes a second of copies, where ranks of a node sum in shared memory

    def _levels(self, ranks: int, nbytes: float) -> list[tuple[int, float, Link]]:
        """(ranks, bytes, link): within nodes, then between them, each with a part of the bytes."""
        local = min(ranks, self.per_node)
        nodes = math.ceil(ranks / local)
        far = Link(self.far.latency, self.far.bandwidth / local)
        return [(local, nbytes, self.near), (nodes, nbytes / local, far)]

    def gather(self, ranks: int, nbytes: float) -> float:
        """Every rank gets all of nbytes, of which each has a part; a cut sum costs the same."""
        return sum(
            math.ceil(math.log2(p)) * link.latency + (p - 1) / p * n / link.bandwidth
            for p, n, link in self._levels(ranks, nbytes)
            if p > 1
        )

    def sum(self, ranks: int, nbytes: float) -> float:
        """All have the sum: halves are exchanged again and again, and back; small ones at once."""
        total = 0.0
        for p, n, link in self._levels(ranks, nbytes):
            if p > 1:
                turns = math.ceil(math.log2(p))
                halving = 2 * turns * link.latency + 2 * (p - 1) / p * n / link.bandwidth
                total += min(halving, turns * (link.latency + n / link.bandwidth))
        return total

    def gradients(self, ranks: int, nbytes: float) -> float:
        """A bucket's sum."""
        if self.copies and ranks <= self.per_node:
            return self.near.latency + (2 + ranks) * nbytes / self.copies
        return self.sum(ranks, nbytes)

    def block(self, net: Network, samples: float, divided: int = 1) -> float:
        """Seconds of a block's forward; backward takes twice as many."""
        return net.work(samples) / divided / self.rate + net.moved(samples) / self.traffic

    def message(self, near: bool, nbytes: float) -> float:
        link = self.near if near else self.far
        return link.latency + nbytes / link.bandwidth


class Clocks:
    """When the processor and the channel are free."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.now, self.channel = machine, 0.0, 0.0

    def compute(self, took: float) -> None:
        self.now += took

    def start(self, took: float) -> float:
        """Begins a transfer; gives when it ends."""
        if not self.machine.beside:
            self.now += took
            return self.now
        self.channel = max(self.channel, self.now) + took
        return self.channel

    def wait(self, end: float) -> None:
        self.now = max(self.now, end)


@dataclass(frozen=True)
class Step:
    """What a step takes, and the memory of a rank."""

    seconds: float
    memory: float


STATE = 4 * FLOAT  # parameter, gradient, two moments


# Each way takes the batch in so many pieces, one after another, if it does not fit at once.


def data(
    net: Network, machine: Machine, ranks: int, pieces: int = 1, divided: int = 1
) -> Step | None:
    """The batch divided over ranks; each block perhaps cut over `divided` ranks of a node."""
    replicas = ranks // divided
    if ranks % divided or replicas > net.batch:
        return None
    B = net.batch / replicas / pieces
    clocks = Clocks(machine)
    work = machine.block(net, B, divided)
    crossing = machine.sum(divided, B * net.T * net.C * FLOAT) if divided > 1 else 0.0
    # The replicas of a part lie on different nodes once parts fill a node.
    spread = dataclasses.replace(machine, per_node=max(1, machine.per_node // divided))
    # Gradients of the first pieces stay here.
    clocks.compute((pieces - 1) * net.layers * (3 * work + 4 * crossing))
    clocks.compute(net.layers * (work + 2 * crossing))
    bucket, ends = 0.0, []
    for _ in range(net.layers):
        clocks.compute(2 * work + 2 * crossing)
        bucket += net.block * FLOAT / divided
        while bucket >= BUCKET and replicas > 1:
            ends.append(clocks.start(spread.gradients(replicas, BUCKET)))
            bucket -= BUCKET
    rest = bucket + (net.V + net.T) * net.C * FLOAT / divided
    if replicas > 1:
        ends.append(clocks.start(spread.gradients(replicas, rest)))
    for end in ends:
        clocks.wait(end)
    clocks.compute(net.parameters / divided * machine.update)
    memory = net.parameters * (STATE + FLOAT) / divided + net.layers * net.kept(B) / divided
    return Step(clocks.now, memory)


def tensor(net: Network, machine: Machine, ranks: int, pieces: int = 1) -> Step | None:
    """Blocks cut over the ranks of a node, the batch over nodes."""
    divided = min(ranks, machine.per_node, net.C // net.head)
    return data(net, machine, ranks, pieces, divided)


def sharded(net: Network, machine: Machine, ranks: int, pieces: int = 1) -> Step | None:
    """Parameters in parts on all ranks, gathered block by block one ahead; the batch is divided."""
    if ranks > net.batch:
        return None
    B = net.batch / ranks / pieces
    clocks = Clocks(machine)
    work, nbytes = machine.block(net, B), net.block * FLOAT
    gather = machine.gather(ranks, nbytes)
    around = machine.gather(ranks, (net.V + net.T) * net.C * FLOAT)  # the ends: kept for backward
    for turns in (1, 2):  # forward, backward
        if turns == 1:
            clocks.wait(clocks.start(around))
        there = clocks.start(gather)
        sums = []
        for layer in range(net.layers):
            clocks.wait(there)
            if layer + 1 < net.layers:
                there = clocks.start(gather)
            clocks.compute(turns * work)
            if turns == 2:
                sums.append(clocks.start(gather))
        if turns == 2:
            sums.append(clocks.start(around))
        for end in sums:
            clocks.wait(end)
    clocks.now *= pieces  # each ends before the next begins
    clocks.compute(net.parameters / ranks * machine.update)
    ends = (net.V + net.T) * net.C * FLOAT
    memory = net.parameters * STATE / ranks + 3 * nbytes + ends + net.layers * net.kept(B)
    return Step(clocks.now, memory)


def turns(stages: int, M: int, forward: float, hop: float, beside: bool) -> float:
    """When the last stage has ended M parts, each stage in turn one forward and one backward."""
    if M > 8 * stages:  # from here on every part takes as long as the one before
        four, eight = (turns(stages, k * stages, forward, hop, beside) for k in (4, 8))
        return eight + (M - 8 * stages) * (eight - four) / (4 * stages)
    # What each stage does, in its order, each as soon as what it needs has come.
    plan = []
    for s in range(stages):
        ahead = min(stages - s - 1, M)
        order = [("F", m) for m in range(ahead)]
        for m in range(M):
            if m + ahead < M:
                order.append(("F", m + ahead))
            order.append(("B", m))
        plan.append(order)
    ended: dict[tuple[str, int, int], float] = {}
    clock, place = [0.0] * stages, [0] * stages
    moved = True
    while moved:
        moved = False
        for s in range(stages):
            while place[s] < len(plan[s]):
                kind, m = plan[s][place[s]]
                before = s - 1 if kind == "F" else s + 1
                came = 0.0
                if 0 <= before < stages:
                    if (kind, before, m) not in ended:
                        break
                    came = ended[kind, before, m] + hop
                elif kind == "B":
                    came = ended["F", s, m]
                took = forward if kind == "F" else 2 * forward
                if not beside:
                    took += hop
                clock[s] = max(clock[s], came) + took
                ended[kind, s, m] = clock[s]
                place[s] += 1
                moved = True
    return max(clock)


def pipeline(net: Network, machine: Machine, ranks: int, pieces: int = 1) -> Step | None:
    """Stages one after another, a batch in parts, one forward and one backward in turn.

    Stages are as many as divide the layers and the ranks; the batch is divided over copies.
    """
    stages = math.gcd(ranks, net.layers)
    replicas = ranks // stages
    if stages == 1 or replicas > net.batch:
        return data(net, machine, ranks, pieces)
    B = net.batch / replicas
    M = int(min(pieces * max(net.parts, 4 * stages if machine.beside else 0), B))
    own = net.layers / stages
    forward = own * machine.block(net, B / M)
    hop = machine.message(stages <= machine.per_node, B / M * net.T * net.C * FLOAT)
    total = turns(stages, M, forward, hop, machine.beside)
    mine = net.parameters / stages
    if replicas > 1:
        total += machine.sum(replicas, mine * FLOAT)
    total += mine * machine.update
    kept = min(M, stages) * own * net.kept(B / M)
    return Step(total, mine * (STATE + FLOAT * (replicas > 1)) + kept)


def fitting(way: Any, net: Network, machine: Machine, ranks: int) -> Step | None:
    """A step in as few pieces as memory allows; of one sample each where it never suffices."""
    pieces = 1
    while True:
        step = way(net, machine, ranks, pieces)
        if step is None or step.memory <= machine.memory or 2 * pieces * ranks > net.batch * 8:
            return step
        pieces *= 2


WAYS = {"data": data, "sharded": sharded, "tensor": tensor, "pipeline": pipeline}

# What is measured here, and predicted: small, so that communication counts.
HERE = Network("GPT, 4 layers of 256", 4, 256, 64, 96, 32, batch=16, parts=4)
SMALL = Network("GPT of 124 million", 12, 768, 1024, 50257, 64, batch=4096)
LARGE = Network("GPT of 13 billion", 40, 5120, 2048, 50257, 128, batch=4096)
ETHERNET = Link(latency=2e-5, bandwidth=3.1e9)  # 25 Gb/s
INFINIBAND = Link(latency=5e-6, bandwidth=2e11)  # eight times 200 Gb/s
MACHINES = (
    Machine(
        "processors on Ethernet", 1.5e12, 128e9, 2, Link(2e-6, 2e10), ETHERNET, 1e11, update=4e-10
    ),
    Machine(
        "GPUs on InfiniBand", 1.5e14, 8e10, 8, Link(5e-6, 3e11), INFINIBAND, 2e12, update=2e-11
    ),
)
RANKS = [4**i for i in range(7)]


def measure(ranks: int) -> dict[str, Any]:
    """What the first of so many ranks of this machine found."""
    program = Path(__file__).parent / "scaling_ranks.py"
    command = [sys.executable, "-m", "clew", "launch", "-n", str(ranks), str(program)]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if run.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{run.stdout}{run.stderr}")
    return json.loads(run.stdout.splitlines()[-1])


def here(found: dict[str, Any]) -> Machine:
    """This machine with so many ranks: what they cost each other is in what was measured."""
    costs, count = found["costs"], found["ranks"]
    turns = max(1, math.ceil(math.log2(count)))
    blocks = (found["step"] - found["update"]) / HERE.layers / 3
    rate = HERE.work(HERE.batch) / (blocks - HERE.moved(HERE.batch) / costs["copies"])
    near = Link(costs.get("meet", 0.0) / turns, costs.get("sums", 1.0))
    return Machine(
        "here", rate, math.inf, count, near, near, costs["copies"],
        update=found["update"] / HERE.parameters, beside=False, copies=costs["copies"],
    )  # fmt: skip


def predicted(found: dict[str, Any]) -> dict[str, float]:
    """Seconds a step of each way on this machine."""
    machine = here(found)
    latency, costs = machine.near.latency, found["costs"]
    gathers, messages = (
        dataclasses.replace(machine, near=Link(latency, costs.get(name, 1.0)))
        for name in ("gathers", "messages")
    )
    machines = {"data": machine, "sharded": gathers, "tensor": machine, "pipeline": messages}
    made = {}
    for name, way in WAYS.items():
        step = way(HERE, machines[name], found["ranks"])
        assert step is not None
        made[name] = step.seconds
    return made


def table(net: Network, machine: Machine) -> list[str]:
    """Samples a second of each way, by ranks; in brackets where memory does not suffice."""
    lines = [
        f"| ranks | {' | '.join(WAYS)} | choose |",
        "| ---: |" + " ---: |" * len(WAYS) + " --- |",
    ]
    for ranks in RANKS:
        cells, fits = [], {}
        for name, way in WAYS.items():
            step = fitting(way, net, machine, ranks)
            if step is None:
                cells.append("")
                continue
            speed = net.batch / step.seconds
            text = f"{speed:,.0f}" if speed >= 10 else f"{speed:.2f}"
            if step.memory > machine.memory:
                text = f"({text})"
            else:
                fits[name] = speed
            cells.append(text)
        best = max(fits.values(), default=0.0)
        chosen = [name for name, speed in fits.items() if speed >= 0.98 * best]
        lines.append(f"| {ranks:,} | {' | '.join(cells)} | {', '.join(chosen) or 'none fits'} |")
    return lines


def page(records: list[dict[str, Any]]) -> str:
    text = (Path(__file__).parent / "scaling.md.in").read_text()
    costs = ["| ranks | a step of each, alone (ms) | to meet (us) | sums | gathers | messages |",
             "| ---: | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    check = [
        "| ranks | way | predicted (ms) | measured (ms) | predicted / measured |",
        "| ---: | --- | ---: | ---: | ---: |",
    ]
    for found in records:
        c = found["costs"]
        row = [str(found["ranks"]), f"{1e3 * found['step']:.0f}"]
        row += [f"{1e6 * c['meet']:.0f}"] if "meet" in c else [""]
        row += [f"{c[k] / 1e9:.1f} GB/s" if k in c else "" for k in ("sums", "gathers", "messages")]
        costs.append(f"| {' | '.join(row)} |")
        if "ways" not in found:
            check.append(
                f"| 1 | all | {1e3 * predicted(found)['data']:.0f} | {1e3 * found['step']:.0f} | "
                "taken from it |"
            )
            continue
        for name, value in predicted(found).items():
            took = found["ways"][name]
            check.append(
                f"| {found['ranks']} | {name} | {1e3 * value:.0f} | {1e3 * took:.0f} | "
                f"{value / took:.2f} |"
            )
    parts = {"COSTS": "\n".join(costs), "CHECK": "\n".join(check)}
    tables = []
    for machine in MACHINES:
        for net in (SMALL, LARGE):
            tables += ["", f"### {net.name}, {machine.name}", "", *table(net, machine)]
    parts["TABLES"] = "\n".join(tables).strip()
    for name, made in parts.items():
        text = text.replace(f"@{name}@", made)
    return text


def main() -> None:
    results = ROOT / "bench" / "results" / "scaling.json"
    if "--again" not in sys.argv:  # else: from what was measured before
        results.write_text(json.dumps([measure(n) for n in (1, 2, 4)], indent=1) + "\n")
    (ROOT / "docs" / "scaling.md").write_text(page(json.loads(results.read_text())))


if __name__ == "__main__":
    main()
