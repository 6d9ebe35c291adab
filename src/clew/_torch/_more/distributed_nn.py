"""What differentiable collectives take."""

from clew.distributed import ReduceOp as ReduceOp
from clew.distributed import group as group
