import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
words, out = nn.Embedding(20, 8), nn.Linear(8, 3)
params = [*words.parameters(), *out.parameters()]
opt = torch.optim.AdamW(params, lr=1e-2, weight_decay=0.1)
for _step in range(6):
    ids = torch.randint(0, 20, (32,))
    opt.zero_grad()
    F.cross_entropy(out(words(ids)), ids % 3).backward()
    words.weight.grad.zero_()
    opt.step()
