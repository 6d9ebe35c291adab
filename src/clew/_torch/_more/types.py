"""Names for annotations of sizes, which are numbers here."""

from __future__ import annotations

from clew import Size as Size
from clew._torch.names import SymBool as SymBool
from clew._torch.names import SymFloat as SymFloat
from clew._torch.names import SymInt as SymInt

BoolLikeType = bool | SymBool
FloatLikeType = float | SymFloat
IntLikeType = int | SymInt
PySymType = SymInt | SymFloat | SymBool
py_sym_types = (SymInt, SymFloat, SymBool)
