import numpy as np
import clew
from clew import nn
from clew.nn import functional as F
from clew.utils.data import DataLoader, Dataset, TensorDataset, Subset
clew.manual_seed(0)
x = clew.randn(64, 4)
labels = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
target = x @ clew.tensor([[1.0], [-2.0], [0.5], [0.0]])
