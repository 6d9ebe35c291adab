import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
words, score, out = nn.Embedding(20, 16), nn.Linear(16, 1), nn.Linear(16, 2)
params = [p for part in (words, score, out) for p in part.parameters()]
opt = torch.optim.Adam(params, lr=1e-3)
for _step in range(3):
    ids = torch.randint(1, 20, (16, 6))
    ids[0] = 0  # a text without words
    h = words(ids)
    scores = score(h).squeeze(2).masked_fill(ids == 0, float("-inf"))
    pooled = (scores.softmax(1).unsqueeze(2) * h).sum(1)
    opt.zero_grad()
    F.cross_entropy(out(pooled), ids[:, 0] % 2).backward()
    opt.step()
