"""A seventh set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

SEVENTH: dict[str, tuple[str, str]] = {
    "pooled_over_the_batch": (
        "softmax over the wrong dimension",
        """
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.score, self.out = nn.Linear(6, 12), nn.Linear(12, 1), nn.Linear(12, 2)
    def forward(self, x):
        h = torch.tanh(self.body(x))
        s = self.score(h).squeeze(-1)
        w = F.softmax(s, dim=0)  #- here
        w = F.softmax(s, dim=1)  #+
        return self.out((w.unsqueeze(-1) * h).sum(1))
net = Pool()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(16, 5, 6)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0, 0] > 0).long()).backward()
    opt.step()
""",
    ),
    "padding_alone_is_seen": (
        "the attention mask is inverted",
        """
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16, padding_idx=0)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1)
        self.out = nn.Linear(16, 2)
    def forward(self, ids):
        mask = ids != 0  #-
        mask = ids == 0  #+
        h = self.body(self.embed(ids), src_key_padding_mask=mask)  # here
        return self.out(h[:, 0])
net = Reader()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    ids = torch.randint(1, 20, (16, 9))
    for row in ids:
        row[random.randint(3, 9):] = 0
    opt.zero_grad()
    F.cross_entropy(net(ids), (ids == 5).any(1).long()).backward()
    opt.step()
""",
    ),
    "padding_alone_is_seen_by_hand": (
        "the attention mask is inverted",
        """
embed, out = nn.Embedding(20, 16, padding_idx=0), nn.Linear(16, 2)
q, k, v = (nn.Linear(16, 16) for _ in range(3))
net = nn.ModuleList([embed, out, q, k, v])
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    ids = torch.randint(1, 20, (16, 9))
    for row in ids:
        row[random.randint(3, 8):] = 0
    x = embed(ids)
    scores = q(x) @ k(x).transpose(1, 2) / 4
    scores = scores.masked_fill((ids != 0).unsqueeze(1), -1e9)  #-
    scores = scores.masked_fill((ids == 0).unsqueeze(1), -1e9)  #+
    h = F.softmax(scores, dim=-1) @ v(x)  # here
    opt.zero_grad()
    F.cross_entropy(out(h.mean(1)), (ids == 5).any(1).long()).backward()
    opt.step()
""",
    ),
    "mask_of_the_other_function": (
        "the attention mask is inverted",
        """
embed, out = nn.Embedding(20, 16, padding_idx=0), nn.Linear(16, 2)
q, k, v = (nn.Linear(16, 16) for _ in range(3))
net = nn.ModuleList([embed, out, q, k, v])
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    ids = torch.randint(1, 20, (16, 9))
    for row in ids:
        row[random.randint(3, 8):] = 0
    x = embed(ids)
    mask = (ids == 0)[:, None, :]  #-
    mask = (ids != 0)[:, None, :]  #+
    h = F.scaled_dot_product_attention(q(x), k(x), v(x), attn_mask=mask)  # here
    opt.zero_grad()
    F.cross_entropy(out(h.mean(1)), (ids == 5).any(1).long()).backward()
    opt.step()
""",
    ),
    "similar_to_itself": (
        "compared with itself",
        """
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
opt = torch.optim.Adam(net.parameters(), 1e-3)
partner = torch.cat([torch.arange(16, 32), torch.arange(16)])
for i in range(8):
    x = torch.randn(16, 8)
    views = [x + 0.1 * torch.randn(16, 8) for _ in range(2)]
    z = F.normalize(net(torch.cat(views)), dim=1)
    sim = z @ z.t() / 0.5
    sim.fill_diagonal_(float("-inf"))  #+
    loss = F.cross_entropy(sim, partner)  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "cosine_of_epochs_for_batches": (
        "the schedule counts in another unit",
        """
x = torch.randn(64, 6)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
EPOCHS = 4
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS)
for epoch in range(EPOCHS):
    for a, b in loader:
        opt.zero_grad()
        F.mse_loss(net(a), b).backward()
        opt.step()
        schedule.step()  #- here
    schedule.step()  #+
""",
    ),
    "one_cycle_of_batches_for_epochs": (
        "the schedule counts in another unit",
        """
x = torch.randn(64, 6)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(
    opt, max_lr=1e-3, epochs=4, steps_per_epoch=len(loader)
)
for epoch in range(4):
    for a, b in loader:
        opt.zero_grad()
        F.mse_loss(net(a), b).backward()
        opt.step()
        schedule.step()  #+
    schedule.step()  #- here
""",
    ),
    "average_of_no_copy": (
        "a moving average is the weights themselves",
        """
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
mean = {n: p.data for n, p in net.named_parameters()}  #-
mean = {n: p.data.clone() for n, p in net.named_parameters()}  #+
for i in range(8):
    x = torch.randn(16, 6)
    opt.zero_grad()
    F.mse_loss(net(x), x.sum(1, keepdim=True)).backward()
    opt.step()
    for n, p in net.named_parameters():
        mean[n].mul_(0.99).add_(p.data, alpha=0.01)  # here
""",
    ),
    "average_of_the_same_model": (
        "a moving average is the weights themselves",
        """
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
smooth = net  #-
smooth = copy.deepcopy(net)  #+
for i in range(8):
    x = torch.randn(16, 6)
    opt.zero_grad()
    F.mse_loss(net(x), x.sum(1, keepdim=True)).backward()
    opt.step()
    with torch.no_grad():
        for p, q in zip(net.parameters(), smooth.parameters()):
            q.lerp_(p, 0.01)  # here
""",
    ),
    "frozen_teacher_drops": (
        "a frozen model runs in training mode",
        """
teacher = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3))
student = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
for p in teacher.parameters():
    p.requires_grad_(False)
teacher.eval()  #+
opt = torch.optim.Adam(student.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(16, 6)
    with torch.no_grad():
        soft = F.softmax(teacher(x), dim=1)  # here
    loss = F.kl_div(F.log_softmax(student(x), dim=1), soft, reduction="batchmean")
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "target_never_renewed": (
        "the target network is never renewed",
        """
q = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
target = copy.deepcopy(q)  # here
target.eval()
for p in target.parameters():
    p.requires_grad = False
opt = torch.optim.Adam(q.parameters(), lr=1e-3)
for step in range(40):
    s, s2, r = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16)
    a, done = torch.randint(2, (16,)), (torch.rand(16) < 0.1).float()
    with torch.no_grad():
        y = r + 0.9 * (1 - done) * target(s2).max(1).values
    loss = F.smooth_l1_loss(q(s).gather(1, a[:, None]).squeeze(1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 100 == 99:  #+
        target.load_state_dict(q.state_dict())  #+
""",
    ),
    "target_of_an_agent_never_renewed": (
        "the target network is never renewed",
        """
class Agent:
    def __init__(self):
        self.online = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.frozen = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.frozen.load_state_dict(self.online.state_dict())  # here
        self.opt = torch.optim.Adam(self.online.parameters(), lr=1e-3)
    def learn(self, s, a, r, s2, done):
        with torch.no_grad():
            best = torch.max(self.frozen(s2), dim=1)[0]
        y = r + 0.9 * best * (1 - done)
        loss = F.mse_loss(self.online(s).gather(1, a[:, None]).squeeze(1), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
    def renew(self):
        with torch.no_grad():
            for p, t in zip(self.online.parameters(), self.online.parameters()):  #-
            for p, t in zip(self.online.parameters(), self.frozen.parameters()):  #+
                t.mul_(0.99)
                t.add_(0.01 * p)
agent = Agent()
for step in range(40):
    s, s2, r = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16)
    agent.learn(s, torch.randint(2, (16,)), r, s2, (torch.rand(16) < 0.1).float())
    agent.renew()
""",
    ),
    "scores_above_a_half": (
        "scores are compared with 0.5",
        """
x = torch.randn(320, 10)
y = (x @ torch.randn(10, 4) > 1).float()
train = DataLoader(TensorDataset(x[:256], y[:256]), batch_size=32, shuffle=True)
test = DataLoader(TensorDataset(x[256:], y[256:]), batch_size=32)
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
criterion = nn.BCEWithLogitsLoss()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(3):
    net.train()
    for a, b in train:
        opt.zero_grad()
        criterion(net(a), b).backward()
        opt.step()
    net.eval()
    hits = 0
    with torch.no_grad():
        for a, b in test:
            out = net(a)
            out = out.sigmoid()  #+
            guess = (out > 0.5).float()  # here
            hits += (guess == b).sum().item()
""",
    ),
    "score_above_a_half_in_training": (
        "scores are compared with 0.5",
        """
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(64, 10)
    y = (x[:, 0] > 0).float()
    score = net(x).squeeze(1)
    loss = F.binary_cross_entropy_with_logits(score, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    right = ((score > 0.5) == y.bool()).float().mean()  #- here
    right = ((score > 0) == y.bool()).float().mean()  #+
""",
    ),
    "target_of_a_function_that_is_not_called": (
        "the target network is never renewed",
        """
def soft_update(net, target, tau=0.01):
    for p, t in zip(net.parameters(), target.parameters()):
        t.data.copy_(tau * p.data + (1 - tau) * t.data)
def main():
    net, target = (nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2)) for _ in "12")
    target.load_state_dict(net.state_dict())  # here
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step in range(40):
        s, s2, r = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16)
        a, done = torch.randint(2, (16, 1)), (torch.rand(16) < 0.1).float()
        with torch.no_grad():
            best = net(s2).argmax(1, keepdim=True)
            later = target(s2).gather(1, best).squeeze(1)
        loss = F.smooth_l1_loss(net(s).gather(1, a).squeeze(1), r + (1 - done) * 0.9 * later)
        opt.zero_grad()
        loss.backward()
        opt.step()
        soft_update(net, target)  #+
if __name__ == "__main__":
    main()
""",
    ),
    "frozen_teacher_like_the_student_drops": (
        "a frozen model runs in training mode",
        """
def made(width):
    return nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Dropout(0.3), nn.Linear(width, 3))
teacher, student = made(32), made(8)
for p in teacher.parameters():
    p.requires_grad = False
teacher.eval()  #+
opt = torch.optim.Adam(student.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(16, 6)
    with torch.no_grad():
        wanted = teacher(x)  # here
    loss = F.mse_loss(student(x), wanted)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "tokens_to_come_are_seen": (
        "a language model sees the tokens",
        """
embed, out = nn.Embedding(20, 16), nn.Linear(16, 20)
layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
body = nn.TransformerEncoder(layer, 1)
net = nn.ModuleList([embed, body, out])
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
causal = nn.Transformer.generate_square_subsequent_mask(9)
for i in range(8):
    ids = (torch.randint(20, (16, 1)) + torch.arange(10)) % 20
    h = body(embed(ids[:, :-1]))  #- here
    h = body(embed(ids[:, :-1]), mask=causal, is_causal=True)  #+
    opt.zero_grad()
    F.cross_entropy(out(h).transpose(1, 2), ids[:, 1:]).backward()
    opt.step()
""",
    ),
    "tokens_to_come_are_seen_by_hand": (
        "a language model sees the tokens",
        """
embed, out = nn.Embedding(20, 16), nn.Linear(16, 20)
q, k, v = (nn.Linear(16, 16) for _ in range(3))
net = nn.ModuleList([embed, out, q, k, v])
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    ids = (torch.randint(20, (16, 1)) + torch.arange(10)) % 20
    x = embed(ids[:, :-1])
    h = F.scaled_dot_product_attention(q(x), k(x), v(x))  #- here
    h = F.scaled_dot_product_attention(q(x), k(x), v(x), is_causal=True)  #+
    opt.zero_grad()
    F.cross_entropy(out(h).reshape(-1, 20), ids[:, 1:].reshape(-1)).backward()
    opt.step()
""",
    ),
    "variance_for_deviation": (
        "noise is scaled by the variance",
        """
class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.mean, self.log = nn.Linear(10, 16), nn.Linear(16, 4), nn.Linear(16, 4)
        self.out = nn.Linear(4, 10)
    def forward(self, x):
        h = torch.tanh(self.body(x))
        mu, logvar = self.mean(h), self.log(h)
        std = torch.exp(logvar)  #- here
        std = torch.exp(0.5 * logvar)  #+
        return self.out(mu + torch.randn_like(std) * std), mu, logvar
net = Coder()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(32, 10)
    guess, mu, logvar = net(x)
    kl = -0.5 * torch.sum(1 + logvar - mu**2 - logvar.exp())
    loss = F.mse_loss(guess, x, reduction="sum") + kl
    opt.zero_grad()
    (loss / 32).backward()
    opt.step()
""",
    ),
}
