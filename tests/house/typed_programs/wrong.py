"""Mistakes that a checker must find: each marked line has one."""

from __future__ import annotations

import clew
import clew.nn.functional as F
from clew import Tensor, nn
from clew.utils.data import DataLoader, Dataset


class Words(Dataset[str]):
    def __getitem__(self, index: int) -> str:
        return "a" * index


x = clew.zeros(2, shape=3)  # wrong: no such argument
n: str = clew.ones(2).numel()  # wrong: an int
best: Tensor = clew.ones(2, 2).max(dim=0)  # wrong: a pair
low = clew.min(clew.ones(2), 0).value  # wrong: its field is values
clew.topk(clew.ones(3), k="2")  # wrong: k is an int
clew.arange(0, 1, dtype="float32")  # wrong: dtype is not a string
clew.sofmax(clew.ones(3), 0)  # wrong: misspelled
loader: DataLoader[int] = DataLoader(Words())  # wrong: a loader of str
flag: str = clew.ones(1).is_contiguous()  # wrong: a bool
clew.ones(1).shape = (1,)  # wrong: cannot be assigned
nn.Liner(2, 2)  # wrong: misspelled, as are those below
clew.optim.Adamm([])  # wrong: Adam
F.rellu(clew.ones(1))  # wrong: relu
nn.init.xavier_unifrm_(clew.ones(1, 1))  # wrong: xavier_uniform_
nn.utils.clip_grad_nrm_([], 1.0)  # wrong: clip_grad_norm_
clew.linalg.nrm(clew.ones(1))  # wrong: norm
clew.special.gama(clew.ones(1))  # wrong: gammaln
clew.distributions.Norml(0.0, 1.0)  # wrong: Normal
clew.func.gradd(F.relu)  # wrong: grad
clew.autograd.Funtion()  # wrong: Function
clew.distributed.all_redcue(clew.ones(1))  # wrong: all_reduce
clew.functional.einsumm("i", clew.ones(1))  # wrong: einsum
clew.hub.laod("a", "b")  # wrong: load
nn.modules.flaten.Flatten()  # wrong: flatten
clew.utils.chekpoint.checkpoint(F.relu)  # wrong: checkpoint
word: str = F.relu(clew.ones(1))  # wrong: a Tensor
one: Tensor = F.max_pool2d(clew.ones(1, 2, 2), 2, return_indices=True)  # wrong: a pair
