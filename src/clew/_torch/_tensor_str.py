"""``torch._tensor_str``: how tensors are written out."""

from __future__ import annotations

from clew._tensor.text import PRINT_OPTS as PRINT_OPTS
from clew._tensor.text import _str as _str
from clew._tensor.text import _tensor_str as _tensor_str
from clew._tensor.text import get_printoptions as get_printoptions
from clew._tensor.text import printoptions as printoptions
from clew._tensor.text import set_printoptions as set_printoptions
