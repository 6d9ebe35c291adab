import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def build(hidden):
    return nn.Sequential(nn.Linear(8, hidden), nn.ReLU(), nn.Dropout(0.5), nn.Linear(hidden, 3))


teacher, student = build(64), build(8)
opt = torch.optim.Adam(student.parameters(), 1e-3)
for _step in range(8):
    x = torch.randn(32, 8)
    with torch.no_grad():
        soft = F.softmax(teacher(x) / 2, 1)
    loss = F.kl_div(F.log_softmax(student(x) / 2, 1), soft, reduction="batchmean")
    opt.zero_grad()
    loss.backward()
    opt.step()
