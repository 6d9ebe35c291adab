"""Whole programs without a mistake: noise, turns and choices among samples that are meant."""

from __future__ import annotations

SIXTH_CLEAN: dict[str, str] = {
    "momentum_and_warm_restarts": """
x = torch.randn(640, 8)
y = x.prod(1, keepdim=True).sign()
net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=2, T_mult=2)
for epoch in range(6):
    batches = torch.randperm(640).split(64)
    for number, i in enumerate(batches):
        loss = F.mse_loss(net(x[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        schedule.step(epoch + number / len(batches))
""",
    "attention_with_time_first": """
rnn, score, out = nn.LSTM(6, 24), nn.Linear(24, 1), nn.Linear(24, 3)
net = nn.ModuleList([rnn, score, out])
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(11, 16, 6)
    h, _ = rnn(x)
    w = F.softmax(score(h), dim=0)
    loss = F.cross_entropy(out((w * h).sum(0)), x[:, :, :3].sum(0).argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "experts_choose_samples": """
gate = nn.Linear(6, 3)
experts = nn.ModuleList(nn.Linear(6, 8) for _ in range(3))
out = nn.Linear(8, 1)
net = nn.ModuleList([gate, experts, out])
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(16, 6)
    w = F.softmax(gate(x), dim=0)
    h = torch.stack([expert(x) for expert in experts], dim=1)
    loss = F.mse_loss(out((w.unsqueeze(-1) * h).sum(1)), x.sum(1, keepdim=True))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "most_tokens_are_padding": """
embed = nn.Embedding(40, 16, padding_idx=0)
attention = nn.MultiheadAttention(16, 2, batch_first=True)
out = nn.Linear(16, 2)
net = nn.ModuleList([embed, attention, out])
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    lengths = torch.randint(2, 7, (16, 1))
    ids = torch.randint(1, 40, (16, 20)).masked_fill(torch.arange(20) >= lengths, 0)
    pad = ids.eq(0)
    x = embed(ids)
    h, _ = attention(x, x, x, key_padding_mask=pad, need_weights=False)
    h = (h * ~pad[..., None]).sum(1) / (~pad).sum(1, keepdim=True)
    loss = F.cross_entropy(out(h), (ids == 5).any(1).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "pairs_from_two_encoders": """
one, two = nn.Linear(12, 8), nn.Linear(9, 8)
opt = torch.optim.Adam([*one.parameters(), *two.parameters()], lr=1e-3)
mixing = torch.randn(12, 9)
for i in range(8):
    x = torch.randn(16, 12)
    u, v = F.normalize(one(x), dim=1), F.normalize(two(x @ mixing), dim=1)
    sim, own = u @ v.t() / 0.1, torch.arange(16)
    loss = (F.cross_entropy(sim, own) + F.cross_entropy(sim.t(), own)) / 2
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "as_many_classes_as_samples": """
net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(16, 12)
    loss = F.cross_entropy(net(x), (torch.arange(16) + 1) % 16)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "cosine_to_and_fro": """
x = torch.randn(64, 6)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=6)
for epoch in range(4):
    for a, b in loader:
        opt.zero_grad()
        F.mse_loss(net(a), b).backward()
        opt.step()
        schedule.step()
""",
    "warm_up_of_as_many_batches_as_epochs": """
x = torch.randn(64, 6)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.LinearLR(opt, 0.1, total_iters=4)
for epoch in range(4):
    for a, b in loader:
        opt.zero_grad()
        F.mse_loss(net(a), b).backward()
        opt.step()
        schedule.step()
""",
    "decay_by_hand": """
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(16, 6)
    opt.zero_grad()
    F.mse_loss(net(x), x.sum(1, keepdim=True)).backward()
    for p in net.parameters():
        p.data.add_(p.data, alpha=-1e-5)
    opt.step()
""",
    "teacher_is_a_noisy_average": """
student = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2))
teacher = copy.deepcopy(student).requires_grad_(False)
opt = torch.optim.Adam(student.parameters(), lr=1e-3)
for i in range(10):
    x = torch.randn(32, 6)
    out = student(x)
    with torch.no_grad():
        soft = teacher(x + 0.1 * torch.randn_like(x)).softmax(1)
    loss = F.cross_entropy(out[:8], (x[:8, 0] > 0).long()) + F.mse_loss(out.softmax(1), soft)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for p, q in zip(student.parameters(), teacher.parameters()):
            q.lerp_(p, 0.05)
""",
    "teacher_is_noisy_on_purpose": """
teacher = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2))
teacher.requires_grad_(False)
teacher.train()
student = nn.Linear(6, 2)
opt = torch.optim.Adam(student.parameters(), lr=1e-3)
for i in range(10):
    x = torch.randn(32, 6)
    loss = F.mse_loss(student(x).softmax(1), teacher(x).softmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
