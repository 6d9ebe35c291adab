"""The named tuples that functions with several results return: ``clew.return_types.max`` ..."""

from __future__ import annotations

import importlib
from typing import Any

from clew import _C
from clew._base import dtypes as _dtypes

# Those of linear algebra, which is written in Python: where the class is.
_LINALG = {
    "geqrf": "_qr.Geqrf",
    "linalg_cholesky_ex": "_common.CholeskyEx",
    "linalg_eig": "_common.Eigen",
    "linalg_eigh": "_common.Eigen",
    "linalg_inv_ex": "_common.InvEx",
    "linalg_ldl_factor": "_ldl.LDLFactor",
    "linalg_ldl_factor_ex": "_ldl.LDLFactorEx",
    "linalg_lstsq": "_lstsq.Lstsq",
    "linalg_lu": "_lu.LU",
    "linalg_lu_factor": "_lu.LUFactor",
    "linalg_lu_factor_ex": "_lu.LUFactorEx",
    "linalg_qr": "_common.QR",
    "linalg_slogdet": "_common.SlogDet",
    "linalg_solve_ex": "_common.SolveEx",
    "linalg_svd": "_common.SVD",
    "lu_unpack": "_lu.LU",
    "qr": "_common.QR",
    "slogdet": "_common.SlogDet",
    "svd": "_toplevel.SVDOfOld",
    "triangular_solve": "_triangular.TriangularSolve",
}


def __getattr__(name: str) -> Any:
    if name in _LINALG:
        module, _, cls = _LINALG[name].partition(".")
        return getattr(importlib.import_module(f"clew.linalg.{module}"), cls)
    known = _C.__dict__.get("_return_types", {})
    if name not in known and not name.startswith("_"):
        _call(name)
        known = _C.__dict__.get("_return_types", {})
    try:
        return known[name]
    except KeyError:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'") from None


# Arguments with which functions give each of the core's own types, beside a matrix.
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys("max min median nanmedian mode sort cummax cummin".split(), (0,)),
    "topk": (1,),
    "kthvalue": (1,),
    "aminmax": (),
}


_own_texts: dict[str, Any] = {}


def _show_lines(on: bool) -> None:
    """Shows results of the core's own types as PyTorch does, a line for each field, or not."""
    x = _C.empty(1, 1).fill_(1)
    for name, args in _ARGUMENTS.items():
        kind: Any = type(_C.functions[name](x, *args))
        own = _own_texts.setdefault(name, kind.__repr__)
        kind.__repr__ = _lines if on else own


def _lines(result: Any) -> str:
    fields = ",\n".join(f"{name}={getattr(result, name)!r}" for name in result.__match_args__)
    return f"{_dtypes.home}.return_types.{type(result).__name__}(\n{fields})"


def _call(name: str) -> None:
    """Calls the function once: its tuple is made by its first result."""
    functions = [f for full, f in _C.functions.items() if full.rsplit(".", 1)[-1] == name]
    x = _C.functions["ones"](1, 1) if "ones" in _C.functions else _C.empty(1, 1).fill_(1)
    for function in functions:
        for args in ((x,), (x, 0), (x, 1, 0)):
            try:
                function(*args)
            except (TypeError, RuntimeError, ValueError, IndexError):
                continue
