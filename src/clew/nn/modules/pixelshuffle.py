"""PyTorch's place of these classes; they are in reshaping.py."""

from .reshaping import PixelShuffle as PixelShuffle
from .reshaping import PixelUnshuffle as PixelUnshuffle
