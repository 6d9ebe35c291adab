"""Ragged tensors: batches of rows that differ in length, without padding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew import _namespace
from clew.nested import _rules as _rules
from clew.nested import _strided_rules as _strided_rules
from clew.nested import _vmap as _vmap
from clew.nested._construct import as_nested_tensor as as_nested_tensor
from clew.nested._construct import masked_select as masked_select
from clew.nested._construct import narrow as narrow
from clew.nested._construct import nested_tensor as nested_tensor
from clew.nested._construct import nested_tensor_from_jagged as nested_tensor_from_jagged
from clew.nested._construct import to_padded_tensor as to_padded_tensor
from clew.nested._modules import collate as collate
from clew.nested._modules import from_packed_sequence as from_packed_sequence
from clew.nested._modules import to_packed_sequence as to_packed_sequence

__all__ = [
    "as_nested_tensor",
    "collate",
    "from_packed_sequence",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_packed_sequence",
    "to_padded_tensor",
]
if not TYPE_CHECKING:  # else checkers take any name to be there
    __getattr__ = _namespace.module_getattr(__name__, globals())
