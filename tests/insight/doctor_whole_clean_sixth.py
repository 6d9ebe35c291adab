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
    "fitted_iterations_with_new_copies": """
def fit(q, data, steps):
    target = copy.deepcopy(q)
    opt = torch.optim.Adam(q.parameters(), lr=1e-3)
    s, a, r, s2, done = data
    for step in range(steps):
        with torch.no_grad():
            y = r + 0.9 * (1 - done) * target(s2).max(1).values
        loss = F.mse_loss(q(s).gather(1, a[:, None]).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
q = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
s, s2, r = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16)
data = (s, torch.randint(2, (16,)), r, s2, (torch.rand(16) < 0.1).float())
for iteration in range(3):
    fit(q, data, 40)
""",
    "target_renewed_from_outside": """
class Agent:
    def __init__(self):
        self.online = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.frozen = copy.deepcopy(self.online)
        self.opt = torch.optim.Adam(self.online.parameters(), lr=1e-3)
    def learn(self, s, a, r, s2, done):
        with torch.no_grad():
            y = r + 0.9 * self.frozen(s2).max(1).values * (1 - done)
        loss = F.mse_loss(self.online(s).gather(1, a[:, None]).squeeze(1), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
agent = Agent()
for step in range(40):
    s, s2, r = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16)
    agent.learn(s, torch.randint(2, (16,)), r, s2, (torch.rand(16) < 0.1).float())
    if step % 100 == 99:
        agent.frozen.load_state_dict(agent.online.state_dict())
""",
    "target_renewed_by_a_hook": """
q = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
target = copy.deepcopy(q)
def renew():
    target.load_state_dict(q.state_dict())
hooks = [(100, renew)]
opt = torch.optim.Adam(q.parameters(), lr=1e-3)
for step in range(40):
    s, s2, r = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16)
    a, done = torch.randint(2, (16,)), torch.rand(16) < 0.1
    with torch.no_grad():
        y = r + 0.9 * ~done * target(s2).max(1).values
    loss = F.smooth_l1_loss(q(s).gather(1, a[:, None]).squeeze(1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    for every, hook in hooks:
        if step % every == every - 1:
            hook()
""",
    "teacher_of_labels_that_are_sure": """
student = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
teacher = copy.deepcopy(student).eval().requires_grad_(False)
opt = torch.optim.Adam(student.parameters(), lr=1e-3)
for step in range(40):
    x = torch.randn(32, 6)
    with torch.no_grad():
        sure, label = teacher(x).softmax(1).max(1)
    each = F.cross_entropy(student(x + 0.1 * torch.randn_like(x)), label, reduction="none")
    loss = (each * (sure > 0.3)).mean() + 0.01 * student(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "threshold_is_searched_for": """
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(64, 10)
    y = (x[:, 0] > 1).float()
    loss = F.binary_cross_entropy_with_logits(net(x).squeeze(1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
net.eval()
with torch.no_grad():
    score = net(x).squeeze(1)
    best = max((((score > t).float() == y).float().mean().item(), t) for t in (-0.5, 0.0, 0.5))
""",
    "a_rule_of_thumb_beside_the_model": """
net = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(64, 1)
    y = (x + 0.1 * torch.randn(64, 1) > 0.6).float()
    score = net(x)
    loss = F.binary_cross_entropy_with_logits(score, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    right = ((score > 0).float() == y).float().mean()
    thumb = ((x > 0.5).float() == y).float().mean()
""",
    "a_number_beside_the_scores": """
body, kind, amount = nn.Linear(10, 32), nn.Linear(32, 1), nn.Linear(32, 1)
net = nn.ModuleList([body, kind, amount])
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(64, 10)
    y, z = (x[:, 0] > 0).float(), x[:, 1]
    h = F.relu(body(x))
    one, two = kind(h).squeeze(1), amount(h).squeeze(1)
    loss = F.binary_cross_entropy_with_logits(one, y) + F.mse_loss(two, z)
    opt.zero_grad()
    loss.backward()
    opt.step()
    right = ((two > 0.5) == (z > 0.5)).float().mean()
""",
    "noise_at_the_input_beside_a_quiet_teacher": """
def made(width):
    return nn.Sequential(nn.Dropout(0.2), nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 3))
teacher, student = made(32).eval().requires_grad_(False), made(8)
opt = torch.optim.Adam(student.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(16, 6)
    loss = F.mse_loss(student(x), teacher(x))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "two_targets_change_places": """
q = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
target = copy.deepcopy(q)
for step in range(80):
    if step % 20 == 0:
        q, target = target, q
        opt = torch.optim.Adam(q.parameters(), lr=1e-3)
    s, s2, r = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16)
    a, done = torch.randint(2, (16,)), (torch.rand(16) < 0.1).float()
    with torch.no_grad():
        y = r + 0.9 * (1 - done) * target(s2).max(1).values
    loss = F.smooth_l1_loss(q(s).gather(1, a[:, None]).squeeze(1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "words_for_pictures_of_as_many_parts": """
embed, parts, out = nn.Embedding(20, 16), nn.Linear(6, 16), nn.Linear(16, 20)
attention = nn.MultiheadAttention(16, 2, batch_first=True)
net = nn.ModuleList([embed, parts, out, attention])
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    ids = (torch.randint(20, (16, 1)) + torch.arange(10)) % 20
    picture, x = parts(torch.randn(16, 9, 6)), embed(ids[:, :-1])
    h, _ = attention(x, picture, picture, need_weights=False)
    loss = F.cross_entropy(out(x + h).transpose(1, 2), ids[:, 1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "hidden_tokens_are_predicted": """
embed, out = nn.Embedding(30, 16, padding_idx=0), nn.Linear(16, 30)
body = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 1)
net = nn.ModuleList([embed, body, out])
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    length = torch.randint(4, 13, (16, 1))
    ids = torch.randint(2, 30, (16, 12)).masked_fill(torch.arange(12) >= length, 0)
    chosen = (torch.rand(16, 12) < 0.3) & (ids != 0)
    h = body(embed(ids.masked_fill(chosen, 1)), src_key_padding_mask=ids == 0)
    loss = F.cross_entropy(out(h).transpose(1, 2), ids.masked_fill(~chosen, -100))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the_logarithm_of_a_deviation": """
enc, dec = nn.Linear(10, 8), nn.Linear(4, 10)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-3)
for i in range(8):
    x = torch.randn(32, 10)
    mu, log = enc(x).chunk(2, dim=1)
    z = mu + torch.randn_like(mu) * log.exp()
    kl = -0.5 * (1 + 2 * log - mu.square() - (2 * log).exp()).sum(1).mean()
    loss = F.mse_loss(dec(z), x) + 0.1 * kl
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the_square_of_a_deviation": """
enc, dec = nn.Linear(10, 8), nn.Linear(4, 10)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-3)
for i in range(8):
    x = torch.randn(32, 10)
    mu, log = enc(x).chunk(2, dim=1)
    std = log.exp()
    z = mu + torch.randn_like(mu) * std
    kl = 0.5 * (mu**2 + std**2 - 1 - 2 * log).sum(1).mean()
    loss = F.mse_loss(dec(z), x) + 0.1 * kl
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
