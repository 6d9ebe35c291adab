"""Writes into docs/export.md which operations of the table go through an ONNX file.

Run as `python tools/export_coverage.py` beside the onnx and onnxruntime packages. Each operation
with samples (tests/samples) is exported as a model of its own, which compares the file with the
model in onnxruntime, on the sample and on further ones. `--check` only says where the page and the
results differ; `--part K/N` looks at every N-th operation; names look at these alone.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import clew
from clew import _C

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "export.md"
MOST_SAMPLES = 4
LEAST_SHARE = 0.95

COMPLEX = "complex numbers, which ONNX does not have"
MATRICES = "decompositions, inverses and solutions of matrices, for which ONNX has no operator"
SPECIAL = "special functions that ONNX's operators do not give to the precision of the dtype"
BITS = "the bits of floating-point numbers"
DRAWS = "random numbers of a distribution that ONNX does not have"

_MATRIX_OPS = """
cholesky cholesky_inverse cholesky_solve geqrf inverse linalg.cholesky linalg.cholesky_ex
linalg.cond linalg.eigh linalg.eigvalsh linalg.householder_product linalg.inv linalg.inv_ex
linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve linalg.lstsq linalg.lu linalg.lu_factor
linalg.lu_factor_ex linalg.lu_solve linalg.matrix_exp linalg.matrix_rank linalg.pinv linalg.qr
linalg.slogdet linalg.solve linalg.solve_ex linalg.solve_triangular linalg.svd linalg.svdvals
linalg.tensorinv linalg.tensorsolve lobpcg logdet lu lu_solve matrix_exp orgqr ormqr pca_lowrank
pinverse qr slogdet svd svd_lowrank triangular_solve
"""
_SPECIAL_OPS = """
digamma i0 igamma igammac polygamma special.airy_ai special.bessel_j0 special.bessel_j1
special.bessel_y0 special.bessel_y1 special.chebyshev_polynomial_t special.chebyshev_polynomial_u
special.chebyshev_polynomial_v special.chebyshev_polynomial_w special.digamma special.erfcx
special.gammainc special.gammaincc special.hermite_polynomial_h special.hermite_polynomial_he
special.i0 special.i0e special.i1 special.i1e special.laguerre_polynomial_l
special.legendre_polynomial_p special.log_ndtr special.modified_bessel_i0
special.modified_bessel_i1 special.modified_bessel_k0 special.modified_bessel_k1 special.ndtri
special.polygamma special.psi special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1
special.shifted_chebyshev_polynomial_t special.shifted_chebyshev_polynomial_u
special.shifted_chebyshev_polynomial_v special.shifted_chebyshev_polynomial_w
special.spherical_bessel_j0 special.zeta
"""
_COMPLEX_OPS = """
complex fft.fft fft.fft2 fft.fftn fft.hfft fft.hfft2 fft.hfftn fft.ifft fft.ifft2 fft.ifftn
fft.ihfft fft.ihfft2 fft.ihfftn fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn imag
istft linalg.eig linalg.eigvals polar stft view_as_complex view_as_complex_copy view_as_real
view_as_real_copy
"""
APART: dict[str, str] = {
    **dict.fromkeys(_COMPLEX_OPS.split(), COMPLEX),
    **dict.fromkeys(_MATRIX_OPS.split(), MATRICES),
    **dict.fromkeys(_SPECIAL_OPS.split(), SPECIAL),
    **dict.fromkeys(("frexp", "hash_tensor", "nextafter"), BITS),
    **dict.fromkeys(("binomial", "poisson"), DRAWS),
}
# Samples that ask an operation for what cannot be written; its other samples count.
OUTSIDE = (
    r"in training mode",
    r"no way to write ops\._(svd|inverse|qr|lu_factor|lu_permutation|solve)\(\)",
    r"no way to write feature_alpha_dropout\(\)",  # which is always in training mode then
)


def operations() -> dict[str, Any]:
    """The entries of the operator tests, by name; inner operations are none of a model's."""
    sys.path.insert(0, str(ROOT / "tests"))
    import samples

    return {n: entry for n, entry in sorted(samples.load().items()) if not n.startswith("_")}


def function_of(name: str) -> Any:
    """What a name calls."""
    found = _C.functions.get(name) or getattr(_C.ops, name, None)
    if found is None:
        found = clew
        for part in name.split("."):
            found = getattr(found, part)
    return found


def tensors(x: Any) -> Any:
    """A sample's arrays as tensors."""
    if isinstance(x, np.ndarray):
        return clew.tensor(x.astype(np.float32) if x.dtype.kind == "f" else x)
    return type(x)(map(tensors, x)) if isinstance(x, (list, tuple)) else x


def has_complex(x: Any) -> bool:
    """Whether there is a complex number in it."""
    if isinstance(x, (list, tuple)):
        return any(map(has_complex, x))
    return isinstance(x, complex) or (isinstance(x, np.ndarray) and x.dtype.kind == "c")


def fault(function: Any, sample: Any) -> str:
    """Why a sample does not go through a file; empty where it does."""
    args = tuple(map(tensors, sample.args))
    kwargs = {k: tensors(v) for k, v in sample.kwargs.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # conditions of functions that check values
            clew.onnx.export(lambda *a, **k: function(*a, **k), args, kwargs=kwargs)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return ""


def missing(name: str, entry: Any) -> str:
    """What an operation lacks: the fault of its first sample that has one; empty for none."""
    import samples

    given = [s for s in entry.samples(samples.Rng(name))
             if not has_complex([*s.args, *s.kwargs.values()])]  # fmt: skip
    function = function_of(name)
    faults = [fault(function, s) for s in given[:MOST_SAMPLES]]
    within = [f for f in faults if not any(re.search(p, f) for p in OUTSIDE)]
    if not within:
        return faults[0] if faults else "all samples are complex"
    return next(filter(None, within), "")


def short(reason: str) -> str:
    """The gist of an error."""
    line = reason.splitlines()[0].removeprefix("OnnxExporterError: onnx.export: ")
    line = re.sub(
        r"^ExportError: export: ", "", re.sub(r",? (in Python )?at [/~\w.-]+:.*", "", line)
    )
    line = re.sub(r" \[ONNXRuntimeError\].*Status Message: (/\S+ )?", " ", line)
    return line if len(line) <= 120 else line[:117] + "..."


def sections(lacking: dict[str, str]) -> dict[str, str]:
    """The generated parts of the page."""
    expressible = [n for n in lacking if n not in APART]
    through = [n for n in expressible if not lacking[n]]
    share = len(through) / len(expressible)
    rows = "".join(f"- `{n}`: {short(lacking[n])}\n" for n in expressible if lacking[n])
    if rows:
        rows = f" The others do not with some of them:\n\n{rows}"
    apart = ""
    for reason in dict.fromkeys(APART.values()):
        names = " ".join(n for n in lacking if APART.get(n) == reason)
        apart += f"\n{reason[0].upper()}{reason[1:]}:\n\n{_filled(names)}\n"
    return {
        "operators": _filled(" ".join(through)) + "\n",
        "share": f"Of {len(lacking)} operations ONNX can express {len(expressible)}, of which "
        f"{len(through)} ({share:.1%}) go through a file with all samples tried, up to four each."
        f"{rows or chr(10)}",
        "apart": apart,
    }  # fmt: skip


def _filled(names: str) -> str:
    return textwrap.fill(names, 120, break_long_words=False, break_on_hyphens=False)


def listed(text: str) -> list[str]:
    """The operations that the page lists."""
    return re.findall(r"[\w.]+", text.split("<!-- operators -->")[1])


def main() -> int:
    """Writes the page, or compares it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--part", default="0/1", metavar="K/N")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    table = operations()
    chosen = options.names or list(table)[part::parts]
    lacking = {n: missing(n, table[n]) for n in chosen}
    text = PAGE.read_text(encoding="utf-8")
    if options.check or options.names or parts > 1:
        on_page, wrong = set(listed(text)), 0
        for name, why in lacking.items():
            if (name in on_page) == bool(why or name in APART):
                print(f"{name}: docs/export.md is out of date ({short(why) if why else 'goes'})")
                wrong += 1
            elif options.names:
                print(f"{name}: {why or 'goes'}")
        return min(wrong, 1)
    for mark, content in sections(lacking).items():
        before, _, after = text.split(f"<!-- {mark} -->")
        text = f"{before}<!-- {mark} -->\n{content}<!-- {mark} -->{after}"
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
