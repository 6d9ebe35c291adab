"""What differentiable collectives take."""

from clew.distributed import group as group
