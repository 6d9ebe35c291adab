"""Two tensors that change places."""

from clew._tensor.swapping import swap_tensors as swap_tensors
