"""PyTorch's place of these classes; they are in reshaping.py."""

from .reshaping import CosineSimilarity as CosineSimilarity
from .reshaping import PairwiseDistance as PairwiseDistance
