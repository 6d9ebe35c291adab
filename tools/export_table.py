"""Writes into docs/export.md who exports what, and in how many seconds.

The models of tests/export/export_models.py are exported by PyTorch 2.13 and by clew. In an
environment with torch, onnx, onnxscript and onnxruntime:

    python tools/export_table.py run torch.json

and beside clew, where `import torch` is clew:

    clew run tools/export_table.py run clew.json
    clew run tools/export_table.py write torch.json clew.json

A model counts as exported when the program, or the file in onnxruntime, gives what the model gives
on inputs of sizes and values unseen at export.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "export.md"
MARK = "<!-- who exports what -->"


def models() -> Any:
    """The models; where torch is PyTorch, they are PyTorch's."""
    try:
        import clew  # noqa: F401
    except ImportError:
        for name in ("", ".nn", ".export"):
            sys.modules[f"clew{name}"] = importlib.import_module(f"torch{name}")
    sys.path.insert(0, str(ROOT / "tests" / "export"))
    return importlib.import_module("export_models")


def leaves(x: Any) -> list[Any]:
    """Tensors and numbers of a result, as arrays."""
    if isinstance(x, (tuple, list)):
        return [y for part in x for y in leaves(part)]
    if isinstance(x, dict):
        return [y for part in x.values() for y in leaves(part)]
    return [torch.as_tensor(x).detach().numpy()]


def same(a: list[Any], b: list[Any]) -> bool:
    """Whether two results agree within 1e-5."""
    import numpy as np

    return len(a) == len(b) and all(
        np.shape(x) == np.shape(y) and np.allclose(x, y, rtol=1e-5, atol=1e-5) for x, y in zip(a, b)
    )


def program_of(model: Any, example: Any, shapes: Any) -> Any:
    """The exported program as a function of the inputs."""
    module = torch.export.export(model, example, dynamic_shapes=shapes, strict=False).module()
    return lambda inputs: leaves(module(*inputs))


def file_of(model: Any, example: Any, shapes: Any) -> Any:
    """The ONNX file as a function of the inputs."""
    import onnx
    import onnxruntime

    made = torch.onnx.export(model, example, dynamo=True, dynamic_shapes=shapes, verbose=False)
    file = io.BytesIO()
    onnx.save(made.model_proto, file)

    def run(inputs: Any) -> list[Any]:
        session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
        names = [i.name for i in session.get_inputs()]
        every = [i.name for i in made.model_proto.graph.input]
        feed = {n: x.numpy() for n, x in zip(every, inputs) if n in names}
        return list(session.run(None, feed))

    return run


def automatic(shapes: Any) -> Any:
    """The same dims, of which the exporter may say how they depend on each other."""
    auto = torch.export.Dim.AUTO
    return tuple(None if s is None else dict.fromkeys(s, auto) for s in shapes)


def tried(make: Any, case: Any, model: Any, example: Any, unseen: Any) -> dict[str, Any]:
    """How an export went: named dims first, automatic ones where these fail."""
    found: dict[str, Any] = {}
    for shapes in (case.shapes, automatic(case.shapes)):
        begin = time.perf_counter()
        try:
            run = make(model, example, shapes)
        except Exception as e:
            result = {"says": f"raises {type(e).__name__}", "why": " ".join(str(e).split())[:300]}
        else:
            seconds = time.perf_counter() - begin
            result = {"says": compared(run, model, unseen), "seconds": seconds}
        found = found or result
        if result["says"] == "ok":
            return result
    return found


def compared(run: Any, model: Any, unseen: Any) -> str:
    """What a program does on unseen inputs."""
    wrong = failed = 0
    for inputs in unseen:
        with torch.no_grad():
            expected = leaves(model(*[x.clone() for x in inputs]))
            try:
                wrong += not same(expected, run([x.clone() for x in inputs]))
            except Exception:
                failed += 1
    if wrong:
        return f"wrong for {wrong} of {len(unseen)} inputs"
    return f"fails for {failed} of {len(unseen)} inputs" if failed else "ok"


def measure() -> dict[str, Any]:
    """Exports every model both ways."""
    made = models()
    table: dict[str, Any] = {}
    first = True
    for name in made.CASES:
        case, model, example, unseen = made.make(name)
        row = {}
        for kind, make in (("program", program_of), ("file", file_of)):
            if first:  # what is loaded and compiled once does not count
                tried(make, case, model, example, unseen)
            row[kind] = tried(make, case, model, example, unseen)
        first = False
        table[name] = row
        print(name, row, file=sys.stderr)
    return table


def cell(result: dict[str, Any]) -> str:
    """A result in the table."""
    seconds = result.get("seconds")
    return result["says"] + ("" if seconds is None else f", {seconds:.2f} s")


def page(text: str, torch_table: dict[str, Any], clew_table: dict[str, Any]) -> str:
    """The page with the table."""
    rows = ["| model | clew, own format | clew, ONNX | PyTorch's program | PyTorch's ONNX |",
            "|---|---|---|---|---|"]  # fmt: skip
    for name, ours in clew_table.items():
        parts = [
            ours["program"],
            ours["file"],
            *(torch_table[name][k] for k in ("program", "file")),
        ]
        rows.append(f"| {name} | {' | '.join(map(cell, parts))} |")
    for who, table in (("clew", clew_table), ("PyTorch", torch_table)):
        for kind in ("program", "file"):
            good = sum(row[kind]["says"] == "ok" for row in table.values())
            rows.append(f"{who} exports {good} of {len(table)} as a {kind}.")
            rows.insert(-1, "") if rows[-2].startswith("|") else None
    before, _, after = text.split(MARK)
    return f"{before}{MARK}\n" + "\n".join(rows) + f"\n{MARK}{after}"


def main() -> None:
    """Measures, or writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["run", "write"])
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    if options.what == "run":
        warnings.simplefilter("ignore")
        options.files[0].write_text(json.dumps(measure(), indent=1), encoding="utf-8")
        return
    tables = [json.loads(f.read_text(encoding="utf-8")) for f in options.files]
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), *tables), encoding="utf-8")


if __name__ == "__main__":
    main()
