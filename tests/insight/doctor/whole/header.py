import copy, math, random, time
from collections import deque
import numpy as np
import clew as torch
from clew import nn
from clew.nn import functional as F
from clew.utils.data import DataLoader, Dataset, TensorDataset, Subset, random_split
torch.manual_seed(0)
np.random.seed(0)
random.seed(0)
