"""PyTorch's place of these classes; they are in reshaping.py."""

from .reshaping import Flatten as Flatten
from .reshaping import Unflatten as Unflatten
