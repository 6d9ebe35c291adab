"""Whole programs without a mistake, with habits that look like one."""

from __future__ import annotations

from doctor_whole_clean_fifth import FIFTH_CLEAN
from doctor_whole_clean_seventh import SEVENTH_CLEAN
from doctor_whole_clean_sixth import SIXTH_CLEAN

FOURTH_CLEAN: dict[str, str] = {
    "physics_with_lbfgs_in_double": """
torch.set_default_dtype(torch.float64)
net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
opt = torch.optim.LBFGS(net.parameters(), lr=1, max_iter=8, line_search_fn="strong_wolfe")
t = torch.linspace(0, 2, 40)[:, None].requires_grad_()
start = torch.zeros(1, 1)

def closure():
    opt.zero_grad()
    y = net(t)
    (dy,) = torch.autograd.grad(y.sum(), t, create_graph=True)
    loss = (dy + y).pow(2).mean() + (net(start) - 1).pow(2).mean()
    loss.backward()
    return loss

for step in range(6):
    opt.step(closure)
torch.set_default_dtype(torch.float32)
""",
    "views_that_are_meant": """
class Shuffle(nn.Module):
    def __init__(self, c, groups):
        super().__init__()
        self.groups = groups
        self.conv = nn.Conv2d(c, c, 3, padding=1, groups=groups)

    def forward(self, x):
        b, c, h, w = self.conv(x).shape
        y = self.conv(x).view(b, self.groups, c // self.groups, h, w)
        return F.relu(y.transpose(1, 2).reshape(b, c, h, w))

class Patches(nn.Module):
    def __init__(self, c, p, d):
        super().__init__()
        self.p, self.lin = p, nn.Linear(c * p * p, d)

    def forward(self, x):
        b, c, h, w = x.shape
        y = x.view(b, c, h // self.p, self.p, w // self.p, self.p)
        y = y.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * self.p * self.p)
        return self.lin(y)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 1)
        self.shuffle = Shuffle(8, 2)
        self.patches = Patches(8, 4, 16)
        self.query = nn.Parameter(torch.randn(4, 16))
        self.fc = nn.Linear(64, 5)

    def forward(self, x):
        t = self.patches(self.shuffle(self.stem(x)))
        b, n, d = t.shape
        h = t.view(b, n, 4, d // 4).transpose(1, 2)
        h = (h @ h.transpose(-1, -2)).softmax(-1) @ h
        h = h.transpose(1, 2).contiguous().view(b, n, d)
        a = (self.query @ h.transpose(1, 2)).softmax(-1) @ h
        return self.fc(a.view(b, -1))

net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(10):
    x, y = torch.randn(8, 3, 8, 8), torch.randint(0, 5, (8,))
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "gan_with_penalty_and_average": """
class G(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 8 * 4 * 4)
        self.conv = nn.ConvTranspose2d(8, 1, 4, 2, 1)
        self.bn = nn.BatchNorm2d(8)

    def forward(self, z):
        x = self.fc(z).view(-1, 8, 4, 4)
        return torch.tanh(self.conv(F.relu(self.bn(x))))

class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 4, 2, 1)
        self.fc = nn.Linear(8 * 16, 1)

    def forward(self, x):
        return self.fc(F.leaky_relu(self.conv(x), 0.2).flatten(1)).view(-1)

g, d = G(), D()
average = copy.deepcopy(g).eval().requires_grad_(False)
opt_g = torch.optim.Adam(g.parameters(), 1e-3, betas=(0.0, 0.99))
opt_d = torch.optim.Adam(d.parameters(), 1e-3, betas=(0.0, 0.99))
data = torch.tanh(torch.randn(96, 1, 8, 8))
for step in range(12):
    real = data[torch.randint(0, 96, (16,))].requires_grad_()
    scores = d(real)
    (grad,) = torch.autograd.grad(scores.sum(), real, create_graph=True)
    penalty = grad.pow(2).sum((1, 2, 3)).mean()
    with torch.no_grad():
        fake = g(torch.randn(16, 4))
    loss_d = F.softplus(-scores).mean() + F.softplus(d(fake)).mean() + 5 * penalty
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    d.requires_grad_(False)
    loss_g = F.softplus(-d(g(torch.randn(16, 4)))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    d.requires_grad_(True)
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), g.parameters()):
            slow.lerp_(fast, 0.05)
        for slow, fast in zip(average.buffers(), g.buffers()):
            slow.copy_(fast)
""",
    "gan_with_one_pass_through_the_generator": """
g = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 6))
d = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.RMSprop(g.parameters(), lr=5e-4)
opt_d = torch.optim.RMSprop(d.parameters(), lr=5e-4)
data = torch.randn(128, 6)
for step in range(15):
    real = data[torch.randint(0, 128, (32,))]
    fake = g(torch.randn(32, 4))
    opt_d.zero_grad()
    (d(fake.detach()).mean() - d(real).mean()).backward()
    opt_d.step()
    with torch.no_grad():
        for p in d.parameters():
            p.clamp_(-0.05, 0.05)
    if step % 3 == 0:
        opt_g.zero_grad()
        (-d(fake).mean()).backward()
        opt_g.step()
""",
    "slots_compete_for_inputs": """
class Slots(nn.Module):
    def __init__(self, d, slots):
        super().__init__()
        self.init = nn.Parameter(torch.randn(1, slots, d) * 0.5)
        self.q, self.k, self.v = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.gru = nn.GRUCell(d, d)
        self.norm = nn.LayerNorm(d)

    def forward(self, x):
        b, n, d = x.shape
        slots = self.init.expand(b, -1, -1)
        k, v = self.k(x), self.v(x)
        for _ in range(2):
            dots = self.q(self.norm(slots)) @ k.transpose(1, 2) * d**-0.5
            attention = dots.softmax(dim=1) + 1e-8
            attention = attention / attention.sum(-1, keepdim=True)
            update = attention @ v
            slots = self.gru(update.reshape(-1, d), slots.reshape(-1, d)).view(b, -1, d)
        return slots

class LinearAttention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        context = torch.einsum("bnd,bne->bde", k.softmax(dim=1), v)
        return torch.einsum("bnd,bde->bne", q.softmax(dim=-1), context)

net, mix, head = Slots(12, 3), LinearAttention(12), nn.Linear(12, 12)
opt = torch.optim.Adam([*net.parameters(), *mix.parameters(), *head.parameters()], lr=1e-3)
for step in range(12):
    x = torch.randn(8, 10, 12)
    out = head(net(x + mix(x))).mean(1)
    loss = F.mse_loss(out, x.mean(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "recurrent_nets_in_both_layouts": """
class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(5, 12)
        self.fc = nn.Linear(12, 2)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.fc(out[-1])

class Second(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(5, 12, batch_first=True)
        self.fc = nn.Linear(12, 2)

    def forward(self, x):
        _, h = self.rnn(x)
        return self.fc(h[-1])

class Letters(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.rnn = nn.LSTM(8, 16)
        self.out = nn.Linear(16, 20)

    def forward(self, x, state):
        y, state = self.rnn(self.embed(x).view(len(x), 1, -1), state)
        return self.out(y.view(len(x), -1)), tuple(s.detach() for s in state)

one, two, three = First(), Second(), Letters()
opt = torch.optim.Adam([p for m in (one, two, three) for p in m.parameters()], lr=2e-3)
text = torch.randint(0, 20, (400,))
state = None
for step in range(12):
    x = torch.randn(16, 9, 5)
    y = (x.sum((1, 2)) > 0).long()
    chunk = text[step * 20 : step * 20 + 21]
    logits, state = three(chunk[:-1], state)
    loss = F.cross_entropy(one(x.transpose(0, 1)), y) + F.cross_entropy(two(x), y)
    loss = loss + F.cross_entropy(logits, chunk[1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "lazy_layers_and_results_nobody_needs": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.LazyConv2d(8, 3)
        self.bn = nn.BatchNorm2d(8)
        self.fc = nn.LazyLinear(3)
        self.kept = {}
        self.conv.register_forward_hook(lambda m, i, o: self.kept.update(conv=o.detach()))

    def forward(self, x):
        return self.fc(F.relu(self.bn(self.conv(x))).flatten(1))

net = Net()
net(torch.zeros(2, 1, 8, 8))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
x, y = torch.randn(48, 1, 8, 8), torch.randint(0, 3, (48,))
x.requires_grad_(False)
x.sub_(x.mean()).div_(x.std())
batches = iter(DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True))
next(batches)
for a, b in batches:
    pass
for step in range(8):
    i = torch.randint(0, 48, (16,))
    opt.zero_grad()
    loss = F.cross_entropy(net(x[i]), y[i])
    loss.backward()
    opt.step()
    net.kept["conv"].abs().mean().item()
    torch.rand(1)
with torch.no_grad():
    net.eval()
    net(x[:1])
    net.kept["conv"].shape
""",
    "text_autoencoder_and_copies": """
class Auto(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 12)
        self.enc = nn.GRU(12, 24, batch_first=True)
        self.dec = nn.GRU(12, 24, batch_first=True)
        self.out = nn.Linear(24, 20)

    def forward(self, x):
        _, h = self.enc(self.embed(x))
        start = torch.zeros(len(x), 1, dtype=torch.long)
        y, _ = self.dec(self.embed(torch.cat([start, x[:, :-1]], 1)), h)
        return self.out(y)

class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(21, 16)
        self.pos = nn.Parameter(torch.zeros(1, 10, 16))
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.out = nn.Linear(16, 20)

    def forward(self, x):
        return self.out(self.layer(self.embed(x) + self.pos))

auto, masked = Auto(), Masked()
opt = torch.optim.Adam([*auto.parameters(), *masked.parameters()], lr=1e-3)
for step in range(12):
    x = torch.randint(1, 20, (16, 10))
    hidden = torch.rand(16, 10) < 0.2
    seen = x.masked_fill(hidden, 20)
    labels = x.masked_fill(~hidden, -100)
    loss = F.cross_entropy(auto(x).flatten(0, 1), x.flatten())
    loss = loss + F.cross_entropy(masked(seen).flatten(0, 1), labels.flatten(), ignore_index=-100)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "double_where_it_is_needed": """
class Density(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 6))

    def forward(self, x):
        raw = self.net(x).double()
        low = torch.diag_embed(F.softplus(raw[:, :3]) + 1e-3)
        low[:, 1, 0], low[:, 2, 0], low[:, 2, 1] = raw[:, 3], raw[:, 4], raw[:, 5]
        return low @ low.transpose(1, 2)

net = Density()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(15):
    x = torch.randn(32, 3)
    target = (x * (1 + x[:, :1].abs())).double()
    S = net(x)
    solved = torch.linalg.solve(S, target.unsqueeze(-1)).squeeze(-1)
    loss = 0.5 * ((target * solved).sum(-1) + torch.logdet(S)).mean()
    opt.zero_grad()
    loss.float().backward()
    opt.step()
""",
    "sampler_with_epochs": """
from clew.utils.data.distributed import DistributedSampler

data = TensorDataset(torch.randn(96, 6), torch.randint(0, 3, (96,)))
test = TensorDataset(torch.randn(40, 6), torch.randint(0, 3, (40,)))
sampler = DistributedSampler(data, num_replicas=2, rank=1, shuffle=True, seed=3)
loader = DataLoader(data, batch_size=12, sampler=sampler, drop_last=True)
valid = DataLoader(test, batch_size=20, sampler=DistributedSampler(test, 2, 0, shuffle=False))
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
best, waited = 1e9, 0
for epoch in range(5):
    sampler.set_epoch(epoch)
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    with torch.no_grad():
        score = sum(F.cross_entropy(net(x), y).item() for x, y in valid)
    waited = 0 if score < best else waited + 1
    best = min(best, score)
    if waited >= 3:
        break
""",
    "shared_layers_on_purpose": """
class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.tower = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.cls, self.box = nn.Conv2d(8, 2, 1), nn.Conv2d(8, 4, 1)

    def forward(self, x):
        x = F.relu(self.stem(x))
        levels = [x, F.avg_pool2d(x, 2), F.avg_pool2d(x, 4)]
        towers = [self.tower(level) for level in levels]
        scores = [self.cls(t).mean((2, 3)) for t in towers]
        return scores, [self.box(t).mean((2, 3)) for t in towers]

class Twins(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
        self.layer = nn.Linear(4, 4)

    def forward(self, a, b):
        left = self.f(a)
        right = self.f(b)
        for _ in range(3):
            left, right = torch.tanh(self.layer(left)), torch.tanh(self.layer(right))
        return (left - right).pow(2).sum(1)

net, twins = Pyramid(), Twins()
opt = torch.optim.Adam([*net.parameters(), *twins.parameters()], lr=1e-3)
for step in range(10):
    x, y = torch.randn(8, 3, 8, 8), torch.randint(0, 2, (8,))
    scores, boxes = net(x)
    loss = sum(F.cross_entropy(s, y) for s in scores)
    loss = loss + sum(F.smooth_l1_loss(b, x.mean((2, 3))[:, :1].expand(-1, 4)) for b in boxes)
    d = twins(torch.randn(8, 6), torch.randn(8, 6))
    same = torch.randint(0, 2, (8,)).float()
    loss = loss + (same * d + (1 - same) * F.relu(1 - d.clamp(min=1e-6).sqrt()) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "experts_and_layers_by_chance": """
class Mixture(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.gate = nn.Linear(d, n)
        self.experts = nn.ModuleList(nn.Linear(d, d) for _ in range(n))

    def forward(self, x):
        p = self.gate(x).softmax(-1)
        weight, index = p.max(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            mine = index == i
            if mine.any():
                out[mine] = weight[mine, None] * expert(x[mine])
        load = (F.one_hot(index, p.shape[1]).float().mean(0) * p.mean(0)).sum() * p.shape[1]
        return x + out, load

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = Mixture(8, 16)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(6))
        self.fc = nn.Linear(8, 1)

    def forward(self, x):
        x, load = self.mix(x)
        for layer in self.layers:
            if not self.training or random.random() > 0.5:
                x = x + F.relu(layer(x))
        return self.fc(x), load

net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(12):
    x = torch.randn(16, 8)
    out, load = net(x)
    loss = F.mse_loss(out, x.sum(1, keepdim=True)) + 0.01 * load
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "folds_with_a_model_for_each": """
x = torch.randn(120, 5)
y = (x[:, 0] - x[:, 1] > 0).float()
scores = {}
for lr in (1e-2, 1e-3):
    for fold in range(3):
        held = torch.arange(120) % 3 == fold
        model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
        opt = torch.optim.Adam(model.parameters(), lr=lr)
        for epoch in range(3):
            for i in torch.randperm(int((~held).sum())).split(20):
                a, b = x[~held][i], y[~held][i]
                loss = F.binary_cross_entropy_with_logits(model(a).squeeze(1), b)
                opt.zero_grad()
                loss.backward()
                opt.step()
        with torch.no_grad():
            right = ((model(x[held]).squeeze(1) > 0).float() == y[held]).float().mean()
        scores.setdefault(lr, []).append(right.item())
""",
    "averaged_weights_swapped_in_for_validation": """
class Average:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for n, p in model.named_parameters():
            self.shadow[n] = self.decay * self.shadow[n] + (1 - self.decay) * p

    def swap(self, model):
        for n, p in model.named_parameters():
            kept = p.data
            p.data = self.shadow[n]
            self.shadow[n] = kept

model = nn.Sequential(nn.Linear(6, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 2))
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
average = Average(model, 0.9)
x = torch.randn(200, 6)
y = (x[:, 0] > x[:, 1]).long()
for epoch in range(4):
    model.train()
    for i in torch.randperm(160).split(32):
        opt.zero_grad()
        F.cross_entropy(model(x[i]), y[i]).backward()
        opt.step()
        average.update(model)
    average.swap(model)
    model.eval()
    with torch.no_grad():
        accuracy = (model(x[160:]).argmax(1) == y[160:]).float().mean().item()
    average.swap(model)
""",
    "barlow_and_vicreg_without_stop": """
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 12))
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
data = torch.randn(256, 10)

def off_diagonal(c):
    return c[~torch.eye(len(c), dtype=torch.bool)]

for step in range(20):
    x = data[torch.randint(0, 256, (64,))]
    a = net(x + 0.1 * torch.randn_like(x))
    b = net(x * (torch.rand_like(x) > 0.1))
    agree = F.mse_loss(a, b)
    spread = sum(F.relu(1 - (z.var(0) + 1e-4).sqrt()).mean() for z in (a, b))
    na, nb = (a - a.mean(0)) / (a.std(0) + 1e-4), (b - b.mean(0)) / (b.std(0) + 1e-4)
    c = na.T @ nb / len(x)
    redundant = ((torch.diagonal(c) - 1) ** 2).sum() + 0.1 * off_diagonal(c).pow(2).sum()
    loss = 5 * agree + 5 * spread + 0.1 * redundant
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "padded_text_with_masks_by_hand": """
PAD = 0

class Tagger(nn.Module):
    def __init__(self, vocab, tags):
        super().__init__()
        self.embed = nn.Embedding(vocab, 16, padding_idx=PAD)
        self.rnn = nn.LSTM(16, 12, batch_first=True, bidirectional=True)
        self.out = nn.Linear(24, tags)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embed(x), lengths, batch_first=True, enforce_sorted=False
        )
        h, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.out(h)

def collate(rows):
    lengths = torch.tensor([len(r) for r in rows])
    words = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    return words, (words % 4), lengths

rows = [torch.randint(1, 40, (random.randint(3, 9),)) for _ in range(80)]
net = Tagger(40, 4)
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(3):
    for words, tags, lengths in DataLoader(rows, batch_size=16, shuffle=True, collate_fn=collate):
        logits = net(words, lengths)
        mask = (words != PAD).float()
        each = F.cross_entropy(logits.transpose(1, 2), tags, reduction="none")
        loss = (each * mask).sum() / mask.sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "one_batch_to_overfit_and_buffers": """
x, y = torch.randn(160, 7), torch.randint(0, 3, (160,))
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
net = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
a, b = next(iter(loader))
for step in range(10):
    loss = F.cross_entropy(net(a), b)
    opt.zero_grad()
    loss.backward()
    opt.step()
buffer = torch.empty(20, 7)
mean, count = torch.zeros(7), 0
for epoch in range(2):
    for a, b in loader:
        count += len(a)
        mean += (a - mean).sum(0) / count
        buffer.copy_(a)
        buffer -= mean
        loss = F.cross_entropy(net(buffer), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    **FIFTH_CLEAN,
    **SIXTH_CLEAN,
    **SEVENTH_CLEAN,
}
