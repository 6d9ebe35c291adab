import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
teacher, student = nn.Linear(8, 3).eval(), nn.Linear(8, 3)
opt = torch.optim.Adam(student.parameters(), 1e-3)
for _step in range(8):
    x = torch.randn(32, 8)
    with torch.no_grad():
        soft = teacher(x).softmax(1)
    guess = F.softmax(student(x), 1)
    loss = F.kl_div(guess, soft, reduction="batchmean")
    opt.zero_grad()
    loss.backward()
    opt.step()
