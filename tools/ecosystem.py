"""Writes docs/ecosystem.md: which libraries written for PyTorch import on clew.

Run in an environment that has the libraries: `PYTHONPATH=src python tools/ecosystem.py` (names of
libraries: only those, printed and not written). Each is imported in a process of its own by
`clew run`.

`python tools/ecosystem.py suites FOLDER` reads what libraries' own tests gave and writes their rows
of tools/ecosystem_suites.json and the page's second table, which is made of it. The folder holds
pairs of pytest's reports, `LIBRARY-PART.torch.xml` and `LIBRARY-PART.clew.xml`, made with the same
versions and time limits by `python -m pytest --junitxml=... -o junit_family=xunit1 PATHS` with
PyTorch and by `python -m clew run -m pytest ...` with clew.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "ecosystem.md"
SHARES = ROOT / "tools" / "ecosystem_suites.json"
# The name of each distribution, and of the module it installs where that is another one.
LIBRARIES = """
accelerate
adabelief-pytorch=adabelief_pytorch
ax-platform=ax
backpack-for-pytorch=backpack
blitz-bayesian-pytorch=blitz
botorch
captum
cvxpylayers
deepxde
denoising-diffusion-pytorch=denoising_diffusion_pytorch
dgl
diffusers
e3nn
einops=einops.layers.torch
ema-pytorch=ema_pytorch
encodec
entmax
evotorch
facenet-pytorch=facenet_pytorch
fairscale
fastai=fastai.vision.all

fvcore=fvcore.nn
geoopt
gpytorch
higher
info-nce-pytorch=info_nce
julius
kornia
laplace-torch=laplace
learn2learn
lightning
linear_operator
local-attention=local_attention
lpips
monai
neuraloperator=neuralop
nflows
normflows
open_clip_torch=open_clip
openai-whisper=whisper
opacus
optimum
peft
piq
pyro-ppl=pyro
pytorch-fid=pytorch_fid
pytorch-forecasting=pytorch_forecasting
pytorch-ignite=ignite.engine
pytorch-lightning=pytorch_lightning
pytorch-metric-learning=pytorch_metric_learning.losses
pytorch-msssim=pytorch_msssim
pytorch-optimizer=pytorch_optimizer
pytorch-tabnet=pytorch_tabnet.tab_model
pytorch-ranger=pytorch_ranger
pytorch-widedeep=pytorch_widedeep
pytorch_revgrad
ptflops
rotary-embedding-torch=rotary_embedding_torch
safetensors=safetensors.torch
sbi
segmentation-models-pytorch=segmentation_models_pytorch
sentence-transformers=sentence_transformers
skorch
snntorch
spikingjelly=spikingjelly.activation_based.neuron
stable-baselines3=stable_baselines3
tab-transformer-pytorch=tab_transformer_pytorch
tensordict
thop
tianshou
timm
torch_geometric
torch-ema=torch_ema
torch-fidelity=torch_fidelity
torch-optimizer=torch_optimizer
torch-pruning=torch_pruning
torchaudio
torchcde
torchdata=torchdata.stateful_dataloader
torchdiffeq
torchinfo
torchio
torchjd
torchmetrics
torchrl
torchsde
torchvision
transformers
trl
vector-quantize-pytorch=vector_quantize_pytorch
vit-pytorch=vit_pytorch
x-transformers=x_transformers
zuko
"""
TEXT = """# PyTorch's libraries on clew

`clew run script.py` makes `import torch` mean clew, in the program and in the processes that it
starts; `clew alias on` does so for every Python of an environment. The table says which libraries
import so; `make ecosystem` writes it. That a library imports does not say that all of it runs; what
tests/ecosystem holds runs with the numbers that PyTorch gives.

Texts are PyTorch's there: `str(x.dtype)` is `torch.float32`, `x.type()` is `torch.FloatTensor`.

`clew kernel install` adds a Jupyter kernel in which `import torch` means clew, for the user or,
with `--sys-prefix` or `--prefix FOLDER`, for one environment; `--name` and `--display-name` say
what it is called, and `clew kernel uninstall` with the same name and place removes it. It needs
`pip install ipykernel jupyter_client` in the environment that has clew.

`clew doctor script.py` (or `clew run --check script.py`) reads a program and the modules that it
imports, runs nothing, and lists the names of torch that clew lacks, each with its line and what to
do. Its status is 1 when something that the program needs is missing. Calls of names that can only
be imported, such as those of torch.distributed.rpc, are told, too: they raise, and say why.

`torch.compile(backend=function)` gives the function a graph of the operations and example inputs.
It is recorded once for each set of sizes, dtypes and modes; a function whose way elements decide,
or that sets attributes of modules, has no such graph and raises. Other backends run the function as
it is written.

A library that is not here, or that fails: please open an issue with its name and version, the
program, and the whole message. Where clew lacks a name that the library imports, the message says
which.

"""

SUITES_TITLE = "\n## Their own tests\n\n"
SUITES_TEXT = """Parts of the libraries' test suites, run on the same machine with PyTorch 2.13 and
with `clew run -m pytest`. A test with subtests counts once; tests that PyTorch does not pass there
do not count. `python tools/ecosystem.py suites FOLDER` counts the reports.

"""


def libraries() -> dict[str, str]:
    """Distribution: module."""
    pairs = (line.partition("=") for line in LIBRARIES.split())
    return {name: module or name.replace("-", "_") for name, _, module in pairs}


def version(name: str) -> str | None:
    """The installed version; None where it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def try_import(module: str) -> tuple[str, float]:
    """An empty text, or the last line of what went wrong; and how long it took."""
    begun = time.perf_counter()
    environment = {**os.environ, "MPLBACKEND": "agg", "CUDA_VISIBLE_DEVICES": ""}
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "clew", "run", "-c", f"import {module}"],
            capture_output=True,
            text=True,
            timeout=300,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return "takes more than five minutes", 300.0
    taken = time.perf_counter() - begun
    if done.returncode == 0:
        return "", taken
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith(" ")]
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Exit)\b", line)]
    return (errors or lines or ["no message"])[-1][:300], taken


def passed(report: Path) -> set[tuple[str, str]]:
    """The tests that passed, by class and name; a name may hold the text of a dtype."""
    good, bad = set(), set()
    for case in ElementTree.parse(report).iter("testcase"):
        name = (case.get("classname", ""), case.get("name", "").replace("clew.", "torch."))
        other = any(part.tag in ("failure", "error", "skipped") for part in case)
        (bad if other else good).add(name)
    return good - bad


def count_suites(folder: Path) -> int:
    """Write how many tests PyTorch passes, and how many of those clew passes, by library.

    Libraries without a report in the folder keep their rows.
    """
    rows: dict[str, list[Any]] = defaultdict(lambda: [0, 0])
    for report in sorted(folder.glob("*.torch.xml")):
        part = report.name.removesuffix(".torch.xml")
        expected = passed(report)
        row = rows[part.partition("-")[0]]
        row[0] += len(expected)
        row[1] += len(expected & passed(folder / f"{part}.clew.xml"))
    made = {
        name: {"version": version(name), "torch": row[0], "clew": row[1]}
        for name, row in rows.items()
    }
    kept = json.loads(SHARES.read_text()) if SHARES.exists() else {}
    SHARES.write_text(json.dumps(dict(sorted((kept | made).items())), indent=2) + "\n")
    PAGE.write_text(PAGE.read_text().partition(SUITES_TITLE)[0] + suites_table())
    return 0


def suites_table() -> str:
    """What the file of shares says, as a part of the page."""
    if not SHARES.exists():
        return ""
    text = SUITES_TITLE + SUITES_TEXT
    text += "| library | version | PyTorch passes | of these clew passes | share |\n"
    text += "| --- | --- | --- | --- | --- |\n"
    for name, row in json.loads(SHARES.read_text()).items():
        share = 1000 * row["clew"] // row["torch"] / 10  # 100 % where all pass only
        text += f"| {name} | {row['version']} | {row['torch']} | {row['clew']} | {share:.1f} % |\n"
    return text


def main(names: list[str]) -> int:
    """Try the libraries; write the page when none is named."""
    if names[:1] == ["suites"]:
        return count_suites(Path(names[1]))
    known = libraries()
    rows, good, tried = [], 0, 0
    for name, module in known.items():
        if names and name not in names:
            continue
        found = version(name)
        if found is None:
            rows.append((name, "", "not installed"))
            continue
        tried += 1
        error, taken = try_import(module)
        good += not error
        print(f"{name:28} {found:12} {taken:6.1f} s  {error or 'imports'}", flush=True)
        # Messages name paths of the machine that the page was made on; the kind is enough.
        rows.append((name, found, error or "imports"))
    print(f"{good} of {tried} installed libraries import")
    if not names:
        table = "| library | version | import |\n| --- | --- | --- |\n"
        for name, found, what in rows:
            if what != "not installed":
                text = what.replace("|", "\\|")
                table += f"| {name} | {found} | {text} |\n"
        PAGE.write_text(TEXT + f"{good} of {tried} libraries import.\n\n" + table + suites_table())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
