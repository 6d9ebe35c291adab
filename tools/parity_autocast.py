"""Records which dtypes PyTorch's operations give inside autocast, for tests/amp.

    python tools/parity_autocast.py            compares clew with PyTorch
    python tools/parity_autocast.py --record   writes tests/amp/autocast_dtypes.json

Needs torch==2.13.0 beside clew.
"""

from __future__ import annotations

import json
import pathlib
import sys

import torch

import clew

HERE = pathlib.Path(__file__).resolve().parent.parent / "tests" / "amp"
sys.path.insert(0, str(HERE))

from autocast_cases import CASES, INPUTS, outcome  # noqa: E402


def main() -> None:
    table = {
        name: {
            f"{inputs} in {dtype}": outcome(torch, case, inputs, dtype)
            for inputs in INPUTS
            for dtype in ("bfloat16", "float16")
        }
        for name, case in CASES.items()
    }
    if "--record" in sys.argv:
        lines = [f"{json.dumps(k)}: {json.dumps(table[k])}" for k in sorted(table)]
        (HERE / "autocast_dtypes.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return
    for name, rows in table.items():
        for how, want in rows.items():
            inputs, dtype = how.split(" in ")
            got = outcome(clew, CASES[name], inputs, dtype)
            if got != want:
                print(f"{name}, {how}: PyTorch {want}, clew {got}")


if __name__ == "__main__":
    main()
