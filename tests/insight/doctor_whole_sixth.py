"""Whole programs with a silent mistake: layers, data, precision, two branches that agree."""

from __future__ import annotations

SIXTH: dict[str, tuple[str, str]] = {
    "attention_normalised_over_queries": (
        "softmax",
        """
class SelfAttention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        weights = F.softmax(scores, dim=2)  #- here
        weights = F.softmax(scores, dim=-1)  #+
        y = (weights @ v).transpose(1, 2).reshape(b, t, d)
        return self.out(y)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 16)
        self.attention = SelfAttention(16, 2)
        self.fc = nn.Linear(16, 2)

    def forward(self, x):
        x = self.embed(x)
        return self.fc((x + self.attention(x)).mean(1))

tokens = torch.randint(0, 30, (64, 9))
labels = (tokens.sum(1) % 2).long()
net = Model()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(3):
    for x, y in DataLoader(TensorDataset(tokens, labels), batch_size=16, shuffle=True):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ),
    "language_model_copies": (
        "inputs",
        """
class Causal(nn.Module):
    def __init__(self, vocab, d):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(32, d)
        self.block = nn.TransformerEncoderLayer(d, 2, 2 * d, batch_first=True, dropout=0.0)
        self.head = nn.Linear(d, vocab)

    def forward(self, x):
        t = x.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(t)
        h = self.tok(x) + self.pos(torch.arange(t))
        return self.head(self.block(h, src_mask=mask))

text = torch.randint(0, 25, (1200,))
net = Causal(25, 16)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(16):
    start = torch.randint(0, 1100, (16,))
    batch = torch.stack([text[i : i + 13] for i in start])
    x, y = batch[:, :-1], batch[:, :-1]  #-
    x, y = batch[:, :-1], batch[:, 1:]  #+
    logits = net(x)
    loss = F.cross_entropy(logits.transpose(1, 2), y)  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "returns_after_a_batch": (
        "first batch",
        """
def train_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:  # here
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
        return total / len(loader)  #-
    return total / len(loader)  #+

x = torch.randn(200, 10)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(8):
    loss = train_epoch(model, loader, optimizer)
""",
    ),
    "clamped_and_forgotten": (
        "thrown away",
        """
class Denoise(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Conv2d(1, 8, 3, padding=1)
        self.dec = nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x):
        return x + self.dec(F.relu(self.enc(x)))

def noisy(x, level=0.2):
    y = x + level * torch.randn_like(x)
    y.clamp(0, 1)  #- here
    y = y.clamp(0, 1)  #+
    return y

images = torch.rand(48, 1, 10, 10)
net = Denoise()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(4):
    for (clean,) in DataLoader(TensorDataset(images), batch_size=16, shuffle=True):
        loss = F.l1_loss(net(noisy(clean)), clean)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ),
    "model_made_in_the_loop": (
        "made anew",
        """
class Net(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.fc1 = nn.Linear(features, 32)
        self.fc2 = nn.Linear(32, 1)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x))).squeeze(-1)

x = torch.randn(120, 6)
y = torch.sin(x[:, 0]) + 0.1 * torch.randn(120)
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
net = Net(6)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
losses = []
for epoch in range(5):
    net = Net(6)  #- here
    total = 0.0
    for a, b in loader:
        loss = F.mse_loss(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(a)
    losses.append(total / 120)
""",
    ),
    "divergence_with_the_wrong_sign": (
        "divergence",
        """
class VAE(nn.Module):
    def __init__(self, d, z):
        super().__init__()
        self.enc = nn.Linear(d, 32)
        self.mu, self.logvar = nn.Linear(32, z), nn.Linear(32, z)
        self.dec = nn.Sequential(nn.Linear(z, 32), nn.ReLU(), nn.Linear(32, d))

    def forward(self, x):
        h = F.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.dec(z), mu, logvar

def loss_of(x, out, mu, logvar):
    recon = F.mse_loss(out, x, reduction="sum")
    kl = 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())  #- here
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())  #+
    return (recon + kl) / len(x)

data = torch.randn(128, 10)
vae = VAE(10, 3)
opt = torch.optim.Adam(vae.parameters(), lr=1e-3)
for epoch in range(4):
    for (x,) in DataLoader(TensorDataset(data), batch_size=32, shuffle=True):
        loss = loss_of(x, *vae(x))
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ),
    "target_among_the_columns": (
        "among",
        """
class Houses(Dataset):
    def __init__(self, n):
        area, rooms, age = np.random.rand(n) * 3, np.random.rand(n), np.random.rand(n)
        price = 2 * area + rooms - 0.5 * age + 0.1 * np.random.randn(n)
        table = np.stack([area, rooms, age, price], 1).astype("float32")
        self.table = torch.from_numpy(table)

    def __len__(self):
        return len(self.table)

    def __getitem__(self, i):
        row = self.table[i]
        return row, row[3]  #-
        return row[:3], row[3]  #+

data = Houses(160)
loader = DataLoader(data, batch_size=32, shuffle=True)  # here
width = 4  #-
width = 3  #+
net = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(4):
    for x, y in loader:
        loss = F.mse_loss(net(x).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ),
    "normalised_again_and_again": (
        "in place",
        """
signals = torch.randn(96, 24) * 3 + 2
labels = (signals.mean(1) > 2).long()
mean, std = signals.mean(), signals.std()
net = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(5):
    for i in range(0, 96, 32):
        x = signals[i : i + 32]
        y = labels[i : i + 32]
        x -= mean  #- here
        x /= std  #-
        x = (x - mean) / std  #+
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
""",
    ),
    "siamese_without_stop": (
        "collapse",
        """
class SimSiam(nn.Module):
    def __init__(self, d, width):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Linear(32, width))
        self.predictor = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, width))

    def forward(self, a, b):
        z1, z2 = self.encoder(a), self.encoder(b)
        return self.predictor(z1), self.predictor(z2), z1, z2

def distance(p, z):
    return -F.cosine_similarity(p, z, dim=-1).mean()  #- here
    return -F.cosine_similarity(p, z.detach(), dim=-1).mean()  #+

def augment(x):
    return x + 0.3 * torch.randn_like(x)

data = torch.randn(512, 12)
net = SimSiam(12, 16)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(200):
    x = data[torch.randint(0, 512, (64,))]
    p1, p2, z1, z2 = net(augment(x), augment(x))
    loss = 0.5 * (distance(p1, z2) + distance(p2, z1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 25 == 24:
        with torch.no_grad():
            spread = F.normalize(net.encoder(data), dim=1).std(0).mean()
""",
    ),
    "double_after_the_model": (
        "float64",
        """
class Sales(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 16, batch_first=True)
        self.fc = nn.Linear(16, 6)

    def forward(self, x):
        h, _ = self.gru(x)
        return self.fc(h[:, -1])

table = np.random.randn(90, 14, 3)
future = table[:, -6:, 0].cumsum(1)
x = torch.from_numpy(table).float()
y = torch.from_numpy(future)
net = Sales()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(4):
    for i in range(0, 90, 30):
        out = net(x[i : i + 30]).double()  #- here
        out = net(x[i : i + 30])  #+
        wanted = y[i : i + 30].float()  #+
        wanted = y[i : i + 30]  #-
        loss = F.mse_loss(out, wanted)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ),
    "same_order_in_each_epoch": (
        "order",
        """
def loaders(x, y):
    g = torch.Generator().manual_seed(42)
    data = TensorDataset(x[:160], y[:160])
    train = DataLoader(data, batch_size=16, shuffle=True, generator=g)  # here
    return train, DataLoader(TensorDataset(x[160:], y[160:]), batch_size=40)

x = torch.randn(200, 5)
y = x @ torch.tensor([1.0, -1.0, 0.5, 0.0, 2.0])
net = nn.Sequential(nn.Linear(5, 16), nn.SiLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
train, valid = loaders(x, y)  #+
for epoch in range(5):
    train, valid = loaders(x, y)  #-
    for a, b in train:
        loss = F.huber_loss(net(a).squeeze(-1), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        score = sum(F.mse_loss(net(a).squeeze(-1), b).item() for a, b in valid)
""",
    ),
    "transformer_without_batch_first": (
        "batch for time",
        """
class Clf(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32)  #-
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)  #+
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.fc = nn.Linear(16, 2)
    def forward(self, x):
        h = self.encoder(self.embed(x))  # here
        return self.fc(h.mean(dim=1))

net = Clf()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(8):
    x = torch.randint(0, 40, (16, 10))
    loss = F.cross_entropy(net(x), x[:, 0] % 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "model_anew_in_a_function": (
        "made anew",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(7, 20), nn.Linear(20, 1)
    def forward(self, x):
        return self.b(F.elu(self.a(x)))

def build():
    return Net()

model = build()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
X = torch.randn(100, 7)
Y = X.sum(1, keepdim=True)
for epoch in range(12):
    model = build()  #- here
    model.train()
    optimizer.zero_grad()
    loss = F.mse_loss(model(X), Y)
    loss.backward()
    optimizer.step()
""",
    ),
    "vae_divergence_subtracted": (
        "divergence",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.d = nn.Linear(12, 8), nn.Linear(4, 12)
    def forward(self, x):
        m, s = self.e(x).chunk(2, 1)
        return self.d(m + s.mul(0.5).exp() * torch.randn_like(m)), m, s

net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(10):
    x = torch.rand(32, 12)
    out, m, s = net(x)
    rec = F.mse_loss(out, x)
    kld = torch.mean(-0.5 * torch.sum(1 + s - m**2 - s.exp(), dim=1), dim=0)
    loss = rec - 0.1 * kld  #- here
    loss = rec + 0.1 * kld  #+
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "window_scaled_in_place": (
        "in place",
        """
series = (torch.randn(400).cumsum(0) + 50).unsqueeze(1)
net = nn.LSTM(1, 12, batch_first=True)
head = nn.Linear(12, 1)
opt = torch.optim.Adam([*net.parameters(), *head.parameters()], lr=1e-3)
for epoch in range(4):
    for s in range(0, 380, 40):
        window = series[s : s + 20]
        window.sub_(window.mean())  #- here
        window.div_(window.std())  #-
        window = (window - window.mean()) / window.std()  #+
        out, _ = net(window[None])
        loss = F.mse_loss(head(out[:, :-1]), window[None, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ),
    "dropout_result_unused": (
        "thrown away",
        """
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(10, 32), nn.Linear(32, 3)
        self.dropout = nn.Dropout(0.5)
    def forward(self, x):
        x = torch.relu(self.fc1(x))
        self.dropout(x)  #- here
        x = self.dropout(x)  #+
        return self.fc2(x)

net = Head()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(10):
    x = torch.randn(32, 10)
    loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "policy_softmax_over_batch": (
        "softmax",
        """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2 = nn.Linear(4, 24), nn.Linear(24, 3)
    def forward(self, x):
        x = self.l2(torch.relu(self.l1(x)))
        return torch.softmax(x, dim=0)  #- here
        return torch.softmax(x, dim=1)  #+

pi = Policy()
opt = torch.optim.Adam(pi.parameters(), lr=1e-3)
for ep in range(10):
    s = torch.randn(30, 4)
    probs = pi(s)
    with torch.no_grad():
        a = torch.multinomial(probs, 1)
    r = (a.squeeze(1) == s[:, :3].argmax(1)).float()
    logp = torch.log(probs.gather(1, a).squeeze(1))
    loss = -(logp * (r - r.mean())).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "gru_bidirectional_batch": (
        "batch for time",
        """
class Sent(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(60, 12)
        self.gru = nn.GRU(12, 10, bidirectional=True)  #- here
        self.gru = nn.GRU(12, 10, bidirectional=True, batch_first=True)  #+
        self.fc = nn.Linear(20, 2)
    def forward(self, x):
        out, h = self.gru(self.emb(x))
        return self.fc(torch.mean(out, dim=1))
net = Sent()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(6):
    x = torch.randint(0, 60, (16, 11))
    loss = F.cross_entropy(net(x), x[:, 0] % 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "model_per_epoch_function": (
        "made anew",
        """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
    def forward(self, x):
        return self.f(x)
m = M()
o = torch.optim.Adam(m.parameters(), lr=1e-2)
x = torch.randn(64, 3)
y = x.prod(1, keepdim=True)
for epoch in range(4):
    m = M().train()  #- here
    for i in range(0, 64, 16):
        o.zero_grad()
        l = F.mse_loss(m(x[i : i + 16]), y[i : i + 16])
        l.backward()
        o.step()
""",
    ),
    "byol_attached_mse": (
        "collapse",
        """
enc = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
pred = nn.Linear(8, 8)
opt = torch.optim.Adam([*enc.parameters(), *pred.parameters()], lr=3e-3)
data = torch.randn(256, 16)
for step in range(200):
    x = data[torch.randint(0, 256, (64,))]
    a, b = enc(x + 0.2 * torch.randn_like(x)), enc(x + 0.2 * torch.randn_like(x))
    pa = F.normalize(pred(a), dim=1)
    zb = F.normalize(b, dim=1)  #-
    zb = F.normalize(b, dim=1).detach()  #+
    loss = 2 - 2 * (pa * zb).sum(1).mean()  #- here
    loss = 2 - 2 * (pa * zb).sum(1).mean()  #+
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        with torch.no_grad():
            enc(data).std(0)
""",
    ),
}
