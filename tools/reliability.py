"""Try what should never go wrong, in clew and in PyTorch, and write docs/reliability.md.

    python tools/reliability.py [--torch-python .venv-parity/bin/python] [--only lock,interrupt]
                                [--fuzz NAME=report.json ...] [--files report.json ...]
                                [--suite report.xml ...]

Each trial is a program that runs in a process of its own and prints one line of JSON; the same
text runs with both libraries. Results are kept in docs/reliability.json, from which the page is
made: trials that were not run again keep their lines. `--fuzz` takes reports of tools.fuzz,
`--files` those of tools/fuzz_files.py, `--suite` those that pytest wrote (`--junitxml`) when it ran
the tests with the sanitizer build. Several reports of one name are added up.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import textwrap
import xml.etree.ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "reliability.json"
PAGE = ROOT / "docs" / "reliability.md"


@dataclass(frozen=True)
class Trial:
    """A program, what it shows, and how to read what it prints."""

    group: str
    name: str
    code: str
    seconds: float = 120


def lock(name: str, setup: str, work: str) -> Trial:
    """The longest time for which another thread cannot run, as a part of the operation's time."""
    code = f"""
    import os, sys, threading, time
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except (AttributeError, OSError):
        pass
    sys.setswitchinterval(1e-4)
    {setup}
    ticks, over = [], False
    def tick():
        while not over:
            ticks.append(time.perf_counter())
            time.sleep(0)
    thread = threading.Thread(target=tick); thread.start()
    best = 1.0
    for _ in range(15):
        ticks.clear()
        begin = time.perf_counter()
        {work}
        end = time.perf_counter()
        times = [begin, *(t for t in list(ticks) if begin < t < end), end]
        best = min(best, max(b - a for a, b in zip(times, times[1:])) / (end - begin))
    over = True; thread.join()
    print(json.dumps(round(best, 2)))
    """
    return Trial("lock", name, code)


def interrupt(name: str, setup: str, work: str) -> Trial:
    """Seconds from Ctrl-C to KeyboardInterrupt."""
    code = f"""
    import os, signal, threading, time
    {setup}
    def send():
        global sent
        time.sleep(1.5)
        sent = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send).start()
    try:
        while True:
            {work}
    except KeyboardInterrupt:
        print(json.dumps(round(time.monotonic() - sent, 2)))
    """
    return Trial("interrupt", name, code, 300)


MEMORY = """
    import resource
    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * 4096 / 1e6
    before = resident()
"""
BIG = "x = torch.rand(30_000_000); m = x.reshape(-1, 1000); keep = x > 0.5"
TRIALS = [
    *[
        lock(work, BIG, f"y = {work}")
        for work in (
            "x.sum()",
            "m.mean(1)",
            "m.max(0)",
            "m.softmax(1)",
            "x.sort()",
            "m.topk(5)",
            "x.cumsum(0)",
            "x.clone()",
            "m.t().contiguous()",
            "x.to(torch.float64)",
            "torch.cat([x, x])",
            "x.var()",
            "torch.nn.functional.layer_norm(m, (1000,))",
            "torch.nn.functional.pad(m, (1, 1))",
            "keep.nonzero()",
            "x.masked_select(keep)",
            "torch.nn.functional.max_pool1d(x[:4_000_000].reshape(1, 1, -1), 3)",
            "torch.nn.functional.avg_pool1d(x[:4_000_000].reshape(1, 1, -1), 3)",
        )
    ],
    interrupt("product of 9000 x 9000", "a = torch.rand(9000, 9000)", "a @ a"),
    interrupt("sort of 60 million", "a = torch.rand(60_000_000)", "a.sort()"),
    interrupt(
        "backward of products",
        "w = torch.rand(5000, 5000, requires_grad=True)\n    y = (w @ w @ w).sum()",
        "y.backward(retain_graph=True)",
    ),
    interrupt("transform of 2^25 numbers", "a = torch.rand(1 << 25)", "torch.fft.fft(a)"),
    interrupt("permutation of 80 million", "a = 80_000_000", "torch.randperm(a)"),
    interrupt(
        "maxima of windows of 65 x 65",
        "a = torch.rand(8, 16, 256, 256)",
        "torch.nn.functional.max_pool2d(a, 65, 1, 32)",
    ),
    interrupt(
        "gradient of a convolution's weight, 32 images",
        "x = torch.rand(32, 128, 64, 64); w = torch.rand(128, 128, 5, 5, requires_grad=True)\n"
        "    y = torch.nn.functional.conv2d(x, w).sum()",
        "y.backward(retain_graph=True)",
    ),
    interrupt("svd of 2000 x 2000", "a = torch.rand(2000, 2000)", "torch.linalg.svd(a)"),
    interrupt("inverse of 5000 x 5000", "a = torch.rand(5000, 5000)", "torch.linalg.inv(a)"),
    Trial(
        "memory",
        "119 growing sizes, 380 MB live at most: resident MB",
        MEMORY
        + """
    for k in range(119):
        x = torch.rand((k + 1) * 400_000); y = x + 1
        del x, y
    print(json.dumps(round(resident() - before)))
    """,
    ),
    Trial(
        "memory",
        "200 MB of tensors of 3 kB freed, then 200 MB of 50 kB: resident MB",
        MEMORY
        + """
    for bytes in (3000, 50_000):
        x = [torch.empty(bytes, dtype=torch.uint8).fill_(1) for _ in range(200_000_000 // bytes)]
        del x
    print(json.dumps(round(resident() - before)))
    """,
    ),
    Trial(
        "memory",
        "300 steps of a Function that keeps its output of 4 MB on ctx: resident MB",
        MEMORY
        + """
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.result = x.exp()
            return ctx.result
        @staticmethod
        def backward(ctx, g):
            return g * ctx.result
    w = torch.rand(1_000_000, requires_grad=True)
    for _ in range(300):
        F.apply(w).sum()
    print(json.dumps(round(resident() - before)))
    """,
    ),
    Trial(
        "survival",
        "a chain of 500,000 tensors by .grad is freed",
        """
    x = torch.zeros(1)
    for _ in range(500_000):
        y = torch.zeros(1); y.grad = x; x = y
    del x, y
    print(json.dumps("whole"))
    """,
    ),
    Trial(
        "survival",
        "set_ with sizes whose product overflows",
        """
    x = torch.zeros(4)
    try:
        x.set_(torch.zeros(4), 0, (2**33, 2**33), (1, 1))
        x.sum()
        print(json.dumps("accepted"))
    except Exception as e:
        print(json.dumps(type(e).__name__))
    """,
    ),
    *[
        Trial(
            "survival",
            f"x.data = ... in another thread during {work}, 2 s",
            f"""
    import sys, threading, time
    sys.setswitchinterval(1e-5)
    x = torch.rand(1 << 20); over = False
    def meddle():
        k = 0
        while not over:
            k += 1
            x.data = torch.rand(1 << (k % 21))
    thread = threading.Thread(target=meddle); thread.start()
    stop = time.monotonic() + 2
    while time.monotonic() < stop:
        {work}
    over = True; thread.join()
    print(json.dumps("whole"))
    """,
        )
        for work in ("x.sum()", "x.exp()", "x.sort()")
    ],
    Trial(
        "survival",
        "the interpreter ends beside a daemon thread in a kernel, 3 times",
        """
    import subprocess, sys
    code = (
        f"import threading, time, {torch.__name__} as torch; x = torch.rand(1 << 22)\\n"
        "def loop():\\n    while True: (x.exp().sum(), x.sort())\\n"
        "for _ in range(2): threading.Thread(target=loop, daemon=True).start()\\n"
        "time.sleep(0.3)"
    )
    codes = [subprocess.run([sys.executable, "-c", code]).returncode for _ in range(3)]
    print(json.dumps("whole" if not any(codes) else f"exit {max(codes, key=abs)}"))
    """,
    ),
    Trial(
        "survival",
        "kill -9 while a good file of 40 MB is written over, 10 times: files that cannot be read",
        """
    import os, subprocess, sys, tempfile, time
    folder = tempfile.mkdtemp(); path = folder + "/model.pt"
    torch.save({"w": torch.rand(10_000_000)}, path)
    code = (
        f"import {torch.__name__} as torch; x = torch.rand(10_000_000); print('', flush=True)\\n"
        f"while True: torch.save({{'w': x}}, {path!r})"
    )
    broken = 0
    for k in range(10):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        child.stdout.readline(); time.sleep(0.05 + 0.013 * k); child.kill(); child.wait()
        try:
            torch.load(path)
        except Exception:
            broken += 1
            torch.save({"w": torch.rand(10_000_000)}, path)
    print(json.dumps(f"{broken} of 10"))
    """,
    ),
    Trial(
        "survival",
        "svd of a matrix with inf",
        """
    try:
        torch.linalg.svd(torch.full((5, 5), float("inf")))
        print(json.dumps("returned"))
    except Exception as e:
        print(json.dumps(type(e).__name__))
    """,
        30,
    ),
    Trial(
        "survival",
        "set_num_threads(100000), then a product",
        """
    torch.set_num_threads(100000)
    a = torch.rand(1000, 1000); a @ a; a.exp().sum()
    print(json.dumps("whole"))
    """,
    ),
    Trial(
        "survival",
        "SIGALRM every 10 ms during products of 3000 x 3000",
        """
    import signal
    signal.signal(signal.SIGALRM, lambda *a: None)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    a = torch.rand(3000, 3000)
    for _ in range(5): a @ a
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(json.dumps("whole"))
    """,
    ),
]
TITLES = {
    "lock": (
        "Other threads",
        "The longest time for which no other thread could run Python, as a part of the operation's "
        "time; 30 million elements, the least of several. At 1 the lock of the interpreter is "
        "held throughout. Where the system allows it the trials have real-time priority, so that "
        "other processes do not count.",
    ),
    "interrupt": (
        "Ctrl-C",
        "Seconds until KeyboardInterrupt. Kernels of clew look for signals between blocks. A call "
        "of LAPACK on one matrix and the gradient of a convolution's weight are one call of a "
        "library, which cannot be interrupted; on one thread such a call takes more than a second "
        "from about these sizes: eig 800, svd and inv 2300, eigh 3000, LU, solve and det 4500.",
    ),
    "memory": ("Memory", "Resident megabytes."),
    "survival": ("What is survived", "How each program ended."),
}


def run(python: str, library: str, trial: Trial) -> Any:
    """What the program printed, or how it ended."""
    head = f"import json\nimport {library} as torch\n"
    with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as f:
        f.write(head + textwrap.dedent(trial.code))
        f.flush()
        try:
            done = subprocess.run(
                [python, f.name], capture_output=True, text=True, timeout=trial.seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return f"no end in {trial.seconds:.0f} s"
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return f"exit {done.returncode}" if done.returncode < 0 else last[:80]
    return json.loads(done.stdout.strip().splitlines()[-1])


def page(kept: dict[str, Any]) -> str:
    """The text of docs/reliability.md."""
    lines = [
        "# Reliability",
        "",
        "What was tried to break clew, how often, and how it ended, with PyTorch 2.13 beside it. "
        "This page is made by `python tools/reliability.py`; `make fuzz` repeats the random calls.",
        "",
        f"Machine of the last run: {kept.get('machine', '?')}.",
        "",
    ]
    for group, (title, text) in TITLES.items():
        lines += [f"## {title}", "", text, "", "| | clew | PyTorch 2.13 |", "| --- | --- | --- |"]
        for trial in TRIALS:
            result = kept["trials"].get(trial.name)
            if trial.group == group and result:
                name = f"`{trial.name}`" if group == "lock" else trial.name
                lines.append(f"| {name} | {result.get('clew', '')} | {result.get('torch', '')} |")
        lines.append("")
    lines += [
        "## Random calls",
        "",
        "`python -m tools.fuzz` calls all operations, public functions, methods and modules with "
        "sensible and hostile arguments (empty and 0-d tensors, overlapping memory, the meta "
        "device, extreme integers, sequences that lie about their length, subclasses, "
        "hooks that raise or return garbage), goes backward through what they return, once and "
        "twice, and where it says so has another thread change the operands meanwhile. A death is "
        "a process that ended, a hang a call that computed for more than 20 s (120 s in the "
        "sanitizer build) or stood still for ten times that, an unexpected error one that speaks "
        "of clew's inside.",
        "",
        "| run | seeds | calls | returned | deaths | hangs | unexpected errors |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, r in sorted(kept.get("fuzz", {}).items()):
        lines.append(
            f"| {name} | {', '.join(map(str, r['seeds']))} | {r['calls']:,} | {r['returned']:,} | "
            f"{r['deaths']} | {r['hangs']} | {r['unexpected']} |"
        )
    if files := kept.get("files"):
        lines += [
            "",
            "## Damaged files",
            "",
            "`python tools/fuzz_files.py` writes damaged and hostile files (bytes, structure with "
            "right checksums, directories, random pickles, safetensors) and loads each in three "
            "ways in a watched process. Bad is a file at which the process died or computed for "
            "more than 20 s, or whose error was of another type than promised or longer than "
            "2,000 characters.",
            "",
            "| seeds | files | bad | slowest | most memory |",
            "| --- | --- | --- | --- | --- |",
            f"| {', '.join(map(str, files['seeds']))} | {files['files']:,} | {files['bad']} | "
            f"{files['slowest']} s | {files['peak']} MB |",
        ]
    if suite := kept.get("suite"):
        lines += [
            "",
            "## The tests with sanitizers",
            "",
            "`make sanitize` runs the tests with AddressSanitizer and UndefinedBehaviorSanitizer.",
            "",
            "| tests | failures | skipped |",
            "| --- | --- | --- |",
            f"| {suite['tests']:,} | {suite['failures']} | {suite['skipped']} |",
        ]
    lines += [
        "",
        "## Other passes",
        "",
        "- The random calls ran in the sanitizer build too (`make fuzzasan`): 20,000 alone without "
        "a finding; 20,000 beside a second thread found three faults (a use after free in a "
        "message, "
        "two overflows of integers), and 10,000 after they were mended none.",
        "- Of the second 500,000 calls four ended badly: histogram with weights on the meta "
        "device, "
        "twice a stack of recurrent layers without weights, and trunc_normal_ with a mean that is "
        "NaN. All four raise now; calls since then found adaptive pooling to no outputs, which is "
        "mended, too.",
        "- All samples of operations (687) with one argument replaced at a time (the meta device, "
        "other dtypes, no elements, extreme numbers): scatter of an empty source. All of them with "
        "14 sorts of garbage from unpack hooks (78,000 calls, first and second order), and "
        "42,000 calls with text that UTF-8 cannot express: no finding.",
        "- The tests of autograd, of hostile arguments and of hostile files (602) ran with "
        "sanitizers in base, tensor, graph and most of python, not in operations and kernels: none "
        "found anything. The row of random calls that says so was made with the same build.",
        "- `make tsan` runs the thread pool and the kernels that work without the interpreter "
        "under "
        "ThreadSanitizer: no race.",
        "- 146 mutations, one slip each (107 in Python, 39 in native gradients and batch "
        "rules): 62 "
        "were noticed by no test. About 60 tests came of them.",
    ]
    return "\n".join(lines) + "\n"


def added(reports: list[str], sums: tuple[str, ...], most: tuple[str, ...]) -> dict[str, Any]:
    """The numbers of several reports of one kind as those of one run."""
    read = [json.loads(Path(path).read_text(encoding="utf-8")) for path in reports]
    return {
        "seeds": [r["seed"] for r in read],
        **{key: sum(r[key] for r in read) for key in sums},
        **{key: max(r[key] for r in read) for key in most},
    }


def tested(reports: list[str]) -> dict[str, int]:
    """The numbers of pytest's reports."""
    total = dict.fromkeys(("tests", "failures", "skipped"), 0)
    for path in reports:
        for suite in xml.etree.ElementTree.parse(path).getroot().iter("testsuite"):
            total["tests"] += int(suite.get("tests", 0))
            total["failures"] += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            total["skipped"] += int(suite.get("skipped", 0))
    return total


def main() -> None:
    """Run trials, keep their results, write the page."""
    parser = argparse.ArgumentParser(description="Write docs/reliability.md.")
    parser.add_argument("--torch-python", default="", help="an interpreter that has PyTorch")
    parser.add_argument("--only", default="", help="groups, with commas between them")
    parser.add_argument("--fuzz", nargs="*", default=[], help="NAME=report.json of tools.fuzz")
    parser.add_argument("--files", nargs="*", default=[], help="reports of tools/fuzz_files.py")
    parser.add_argument("--suite", nargs="*", default=[], help="reports of pytest --junitxml")
    chosen = parser.parse_args()
    kept = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {"trials": {}}
    groups = set(chosen.only.split(",")) if chosen.only else set(TITLES)
    for trial in TRIALS:
        if trial.group not in groups:
            continue
        results = kept["trials"].setdefault(trial.name, {})
        results["clew"] = run(sys.executable, "clew", trial)
        if chosen.torch_python:
            results["torch"] = run(chosen.torch_python, "torch", trial)
        print(trial.group, trial.name, results, flush=True)
        kept["machine"] = f"{platform.machine()}, Python {platform.python_version()}"
    runs: dict[str, list[str]] = {}
    for entry in chosen.fuzz:
        name, _, path = entry.partition("=")
        runs.setdefault(name, []).append(path)
    for name, paths in runs.items():
        counts = ("calls", "returned", "deaths", "hangs", "unexpected")
        kept.setdefault("fuzz", {})[name] = added(paths, counts, ())
    if chosen.files:
        kept["files"] = added(chosen.files, ("files", "loaded", "bad"), ("slowest", "peak"))
    if chosen.suite:
        kept["suite"] = tested(chosen.suite)
    names = {trial.name for trial in TRIALS}
    kept["trials"] = {name: r for name, r in kept["trials"].items() if name in names}
    DATA.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(kept), encoding="utf-8")


if __name__ == "__main__":
    main()
