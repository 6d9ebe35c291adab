"""Call everything public with random arguments, and count what went wrong.

    python -m tools.fuzz --calls 100000 --seed 1 [--threads] [--only add,nn.LSTM] [--private]

Every call must return or raise an ordinary exception; so must the backward passes, first and
second, through what it returns. Calls run in processes of their own: one that dies or hangs leaves
its call in the report, and the next one goes on after it. `--replay SEED NUMBER` makes one call
again, in this process. `make fuzzasan` runs it with the sanitizer build.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from .processes import seconds_of

BATCH = 5000
WAITING = 10  # times as long as it may work, a call may stand still


def watched(command: list[str], log: Path, patience: float) -> tuple[int, str, str, bool]:
    """Exit status, output and errors of a process, and whether it stood still for too long."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(command, stdout=out, stderr=errors)
        last, since, used, hung = "", time.monotonic(), 0.0, False
        while child.poll() is None:
            time.sleep(0.2)
            now = log.read_text(encoding="utf-8")
            if now != last:
                last, since, used = now, time.monotonic(), seconds_of(child.pid)
                continue
            # Seconds of the processor: others may use it, too. One that waits for ever uses none.
            working = seconds_of(child.pid) - used > patience + (0 if now else 60)
            if working or time.monotonic() - since > WAITING * patience:
                hung = True
                child.send_signal(signal.SIGABRT)  # faulthandler says where it is
                time.sleep(1)
                child.kill()
        out.seek(0)
        errors.seek(0)
        return child.wait(), out.read(), errors.read(), hung


def telling(errors: str) -> str:
    """What a sanitizer found, or else the end of what was written."""
    found = re.search("ERROR: AddressSanitizer|runtime error:", errors)
    return errors[found.start() :][:3000] if found else errors[-1500:]


def attempt(seed: int, first: int, calls: int, options: dict[str, Any]) -> dict[str, Any]:
    """Calls first ... calls - 1 in a process, and how it ended."""
    log = Path(options["log"])
    log.write_text("", encoding="utf-8")
    work = json.dumps([seed, calls, first, options])
    status, out, errors, hung = watched(
        [sys.executable, "-m", "tools.fuzz", "--worker", work], log, options["hang"]
    )
    if status == 0:
        result: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
        return result
    last = log.read_text(encoding="utf-8")
    if not last:
        sys.exit(f"no call was made: {errors}")
    number, text = json.loads(last)
    sort = "hangs" if hung else "deaths"
    why = "hang" if hung else f"exit {status}"
    return {
        "calls": number - first + 1,
        "returned": 0,
        "next": number + 1,
        sort: [f"--replay {seed} {number}: {why}: {text[:500]}"],
        "trace": telling(errors),
    }


def main() -> int:
    """Return 1 if a call did what none may do."""
    parser = argparse.ArgumentParser(description="Call everything with random arguments.")
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="names, with commas between them")
    parser.add_argument("--private", action="store_true", help="operations named _... too")
    parser.add_argument("--threads", action="store_true", help="another one changes operands")
    parser.add_argument("--hostility", type=float, default=0.02, help="share of such arguments")
    parser.add_argument("--hang", type=float, default=20, help="seconds that a call may compute")
    parser.add_argument("--report", default="", help="a file for the findings, as JSON")
    parser.add_argument("--replay", type=int, nargs=2, metavar=("SEED", "NUMBER"))
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        from .worker import run

        run(*json.loads(chosen.worker))
        return 0
    options = {
        name: getattr(chosen, name) for name in ("only", "private", "threads", "hostility", "hang")
    }
    with tempfile.TemporaryDirectory() as folder:
        options["log"] = f"{folder}/call.json"
        if chosen.replay:
            from .worker import run

            seed, number = chosen.replay
            run(seed, number + 1, number, options)
            return 0
        total: Counter[str] = Counter()
        found: dict[str, list[str]] = {"deaths": [], "hangs": []}
        unexpected: Counter[str] = Counter()
        first, batch = 0, 0
        while first < chosen.calls:
            until = min((batch + 1) * BATCH, chosen.calls)
            result = attempt(chosen.seed, first, until, options)
            total["calls"] += result["calls"]
            total["returned"] += result["returned"]
            unexpected.update(result.get("unexpected", {}))
            for sort in found:
                found[sort] += result.get(sort, [])
                for text in result.get(sort, []):
                    print(f"  {text}\n{result['trace']}", flush=True)
            first = result.get("next", until)
            if first >= until:
                batch += 1
    summary = {
        "seed": chosen.seed,
        "threads": chosen.threads,
        **total,
        **{sort: len(texts) for sort, texts in found.items()},
        "unexpected": sum(unexpected.values()),
    }
    for text, count in unexpected.most_common(60):
        print(f"  {count}x {text}")
    print(json.dumps(summary))
    if chosen.report:
        text = json.dumps({**summary, "found": found, "messages": dict(unexpected)}, indent=1)
        Path(chosen.report).write_text(text, encoding="utf-8")
    return 1 if unexpected or any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
