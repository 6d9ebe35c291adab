"""More whole programs with nothing wrong; doctor_whole_clean.py holds the rest."""

from __future__ import annotations

from doctor_whole_clean_third import THIRD_CLEAN

MORE_CLEAN: dict[str, str] = {
    "speech_with_ctc": """
class Speech(nn.Module):
    def __init__(self, features=13, letters=6):
        super().__init__()
        self.rnn = nn.LSTM(features, 24, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(48, letters)

    def forward(self, x):
        return self.fc(self.rnn(x)[0]).log_softmax(-1)

audio = torch.randn(40, 30, 13)
letters = torch.randint(1, 6, (40, 5))
lengths = torch.randint(2, 6, (40,))
model, ctc = Speech(), nn.CTCLoss(blank=0, zero_infinity=True)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(2):
    for rows in torch.randperm(40).split(10):
        log_probs = model(audio[rows]).transpose(0, 1)
        loss = ctc(log_probs, letters[rows], torch.full((10,), 30), lengths[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    "forecast_in_order": """
class Windows(Dataset):
    def __init__(self, series, past=12):
        self.series, self.past = series, past

    def __len__(self):
        return len(self.series) - self.past

    def __getitem__(self, i):
        return self.series[i : i + self.past, None], self.series[i + self.past, None]

class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.fc = nn.LSTM(1, 16, batch_first=True), nn.Linear(16, 1)

    def forward(self, x):
        return self.fc(self.lstm(x)[0][:, -1])

series = torch.sin(torch.arange(200) / 7) + 0.05 * torch.randn(200)
train, test = Windows(series[:150]), Windows(series[150:])
model = LSTM()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(2):
    model.train()
    for x, y in DataLoader(train, batch_size=23, shuffle=False):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        errors = [(model(x) - y).abs().mean().item() for x, y in DataLoader(test, batch_size=19)]
""",
    "bayes_by_backprop": """
class BayesLinear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.mu = nn.Parameter(torch.randn(o, i) / math.sqrt(i))
        self.rho = nn.Parameter(torch.full((o, i), -4.0))
        self.bias = nn.Parameter(torch.zeros(o))

    def forward(self, x):
        sigma = F.softplus(self.rho)
        return F.linear(x, self.mu + sigma * torch.randn_like(sigma), self.bias)

    def kl(self):
        sigma = F.softplus(self.rho)
        return (0.5 * (sigma**2 + self.mu**2) - sigma.log() - 0.5).sum()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = BayesLinear(4, 16), BayesLinear(16, 1)

    def forward(self, x):
        return self.b(F.relu(self.a(x)))

x = torch.randn(80, 4)
y = x[:, :1] * x[:, 1:2]
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(10):
    prediction = model(x)
    loss = F.mse_loss(prediction, y, reduction="sum") + 0.01 * (model.a.kl() + model.b.kl())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    draws = torch.stack([model(x) for _ in range(5)])
    mean, spread = draws.mean(0), draws.std(0)
""",
    "spectral_critic": """
from clew.nn.utils import spectral_norm

G = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
one, two = spectral_norm(nn.Linear(2, 24)), spectral_norm(nn.Linear(24, 1))
D = nn.Sequential(one, nn.LeakyReLU(0.1), two)
opt_g = torch.optim.Adam(G.parameters(), lr=1e-4, betas=(0.0, 0.9))
opt_d = torch.optim.Adam(D.parameters(), lr=4e-4, betas=(0.0, 0.9))
real_data = torch.randn(200, 2) * 0.5
for step in range(8):
    real = real_data[torch.randint(0, 200, (40,))]
    fake = G(torch.randn(40, 6))
    d_loss = F.relu(1 - D(real)).mean() + F.relu(1 + D(fake.detach())).mean()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    for p in D.parameters():
        p.requires_grad_(False)
    g_loss = -D(G(torch.randn(40, 6))).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    for p in D.parameters():
        p.requires_grad_(True)
""",
    "replay_with_priorities": """
class Dueling(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.ReLU())
        self.value, self.advantage = nn.Linear(32, 1), nn.Linear(32, 2)

    def forward(self, s):
        h = self.body(s)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(1, keepdim=True)

online, target = Dueling(), Dueling()
target.load_state_dict(online.state_dict())
target.eval()
s, s2, r = torch.randn(200, 4), torch.randn(200, 4), torch.rand(200)
a, done = torch.randint(0, 2, (200,)), (torch.rand(200) < 0.05).float()
priority = np.ones(200)
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
for step in range(10):
    p = priority / priority.sum()
    rows = np.random.choice(200, 32, p=p)
    weights = torch.tensor((200 * p[rows]) ** -0.4, dtype=torch.float32)
    rows = torch.from_numpy(rows)
    with torch.no_grad():
        best = online(s2[rows]).argmax(1, keepdim=True)
        goal = r[rows] + 0.99 * (1 - done[rows]) * target(s2[rows]).gather(1, best).squeeze(1)
    q = online(s[rows]).gather(1, a[rows].unsqueeze(1)).squeeze(1)
    td = goal - q
    loss = (weights * F.smooth_l1_loss(q, goal, reduction="none")).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    priority[rows.numpy()] = td.detach().abs().numpy() + 1e-3
    if step % 5 == 4:
        target.load_state_dict(online.state_dict())
""",
    "language_model_with_tied_head": """
class GPT(nn.Module):
    def __init__(self, vocab=24, dim=16, context=12):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(context, dim)
        self.ln1, self.ln2, self.lnf = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.head = nn.Linear(dim, vocab, bias=False)
        self.tok.weight = self.head.weight
        self.register_buffer("mask", torch.tril(torch.ones(context, context)))

    def forward(self, idx, targets=None):
        B, T = idx.shape
        x = self.tok(idx) + self.pos(torch.arange(T))
        q, k, v = self.qkv(self.ln1(x)).split(x.shape[-1], dim=2)
        att = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
        att = att.masked_fill(self.mask[:T, :T] == 0, float("-inf")).softmax(-1)
        x = x + self.proj(att @ v)
        logits = self.head(self.lnf(x + self.mlp(self.ln2(x))))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

data = torch.randint(0, 24, (400,))
model = GPT()
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=1e-3
)
for it in range(8):
    for group in optimizer.param_groups:
        group["lr"] = 1e-3 * min(1.0, (it + 1) / 4)
    ix = torch.randint(len(data) - 13, (8,)).tolist()
    x = torch.stack([data[i : i + 12] for i in ix])
    y = torch.stack([data[i + 1 : i + 13] for i in ix])
    logits, loss = model(x, y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
idx = torch.zeros((1, 1), dtype=torch.long)
model.eval()
with torch.no_grad():
    for _ in range(5):
        probs = F.softmax(model(idx)[0][:, -1] / 0.8, dim=-1)
        idx = torch.cat([idx, torch.multinomial(probs, 1)], 1)
""",
    "ensemble_of_models": """
x = torch.randn(100, 6)
y = x[:, :1] - x[:, 1:2] ** 2
models, optimizers = [], []
for seed in range(3):
    torch.manual_seed(seed)
    models.append(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1)))
    optimizers.append(torch.optim.Adam(models[-1].parameters(), lr=1e-3))
for epoch in range(4):
    for model, optimizer in zip(models, optimizers):
        rows = torch.randint(0, 100, (40,))
        loss = F.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
for model in models:
    model.eval()
with torch.no_grad():
    predictions = torch.stack([model(x) for model in models])
    mean, std = predictions.mean(0), predictions.std(0)
""",
    "segmentation_with_dice": """
class Block(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(True))

    def forward(self, x):
        return self.net(x)

class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.up1 = Block(1, 8), Block(8, 16), Block(24, 8)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        b = F.interpolate(b, scale_factor=2, mode="bilinear", align_corners=False)
        return self.out(self.up1(torch.cat([a, b], 1)))

def dice(logits, mask, eps=1.0):
    p = torch.sigmoid(logits)
    overlap = (p * mask).sum((1, 2, 3))
    return (1 - (2 * overlap + eps) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + eps)).mean()

images = torch.randn(32, 1, 16, 16)
masks = (F.avg_pool2d(images, 3, 1, 1) > 0.3).float()
train, valid = random_split(TensorDataset(images, masks), [24, 8])
model = UNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(3):
    model.train()
    for x, m in DataLoader(train, batch_size=8, shuffle=True):
        logits = model(x)
        loss = F.binary_cross_entropy_with_logits(logits, m) + dice(logits, m)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, m in DataLoader(valid, batch_size=8):
            overlap = ((torch.sigmoid(model(x)) > 0.5) == (m > 0.5)).float().mean().item()
""",
    "one_sample_of_recurrence": """
class Tagger(nn.Module):
    def __init__(self, vocab=9, tags=3):
        super().__init__()
        self.embed, self.lstm = nn.Embedding(vocab, 6), nn.LSTM(6, 6)
        self.tag = nn.Linear(6, tags)

    def forward(self, sentence):
        out, _ = self.lstm(self.embed(sentence).view(len(sentence), 1, -1))
        return F.log_softmax(self.tag(out.view(len(sentence), -1)), dim=1)

training = [
    (torch.tensor([0, 1, 2, 0, 3]), torch.tensor([0, 1, 2, 0, 1])),
    (torch.tensor([4, 5, 6, 0, 7]), torch.tensor([1, 2, 0, 0, 1])),
    (torch.tensor([8, 1, 2]), torch.tensor([1, 1, 2])),
]
model, loss_function = Tagger(), nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(6):
    for sentence, tags in training:
        model.zero_grad()
        tag_scores = model(sentence)
        loss = loss_function(tag_scores, tags)
        loss.backward()
        optimizer.step()
with torch.no_grad():
    scores = model(training[0][0])
""",
    "line_by_autograd": """
x = torch.linspace(-math.pi, math.pi, 400)
y = torch.sin(x)
a, b, c, d = (torch.randn((), requires_grad=True) for _ in range(4))
rate = 1e-6
for t in range(40):
    y_pred = a + b * x + c * x**2 + d * x**3
    loss = (y_pred - y).pow(2).sum()
    if t % 10 == 9:
        shown = (t, loss.item())
    loss.backward()
    with torch.no_grad():
        a -= rate * a.grad
        b -= rate * b.grad
        c -= rate * c.grad
        d -= rate * d.grad
        a.grad = b.grad = c.grad = d.grad = None
""",
    "outer_schedule_and_logs": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.pool = nn.Conv2d(3, 6, 5), nn.MaxPool2d(2, 2)
        self.fc1, self.fc2 = nn.Linear(6 * 4 * 4, 24), nn.Linear(24, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        return self.fc2(F.relu(self.fc1(torch.flatten(x, 1))))

images = (torch.randint(0, 256, (96, 3, 12, 12)).float() / 255 - 0.5) / 0.5
labels = torch.randint(0, 10, (96,))
loader = DataLoader(TensorDataset(images, labels), batch_size=4, shuffle=True)
net, criterion = Net(), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.001, momentum=0.9)
log = {"loss": [], "lr": []}
for epoch in range(1):
    running_loss = 0.0
    for i, data in enumerate(loader, 0):
        inputs, targets = data
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
        if i % 8 == 7:
            log["loss"].append(running_loss / 8)
            log["lr"].append(optimizer.param_groups[0]["lr"])
            running_loss = 0.0
correct = total = 0
with torch.no_grad():
    for inputs, targets in loader:
        _, predicted = torch.max(net(inputs).data, 1)
        total += targets.size(0)
        correct += (predicted == targets).sum().item()
percent = 100 * correct // total
""",
    "alternating_optimizers": """
class Domain(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(6, 24), nn.ReLU())
        self.label, self.domain = nn.Linear(24, 2), nn.Linear(24, 2)

class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.strength * g, None

source, labels = torch.randn(64, 6), torch.randint(0, 2, (64,))
other = torch.randn(64, 6) + 0.5
model = Domain()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(8):
    strength = 2 / (1 + math.exp(-step)) - 1
    hs, ht = model.features(source), model.features(other)
    loss = F.cross_entropy(model.label(hs), labels)
    h = Reverse.apply(torch.cat([hs, ht]), strength)
    where = torch.cat([torch.zeros(64), torch.ones(64)]).long()
    loss = loss + F.cross_entropy(model.domain(h), where)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "cached_features": """
backbone = nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16))
backbone.eval()
x = torch.randn(100, 20)
y = (x[:, 0] > 0).float()
with torch.no_grad():
    features = backbone(x)
mean, std = features.mean(0), features.std(0)
features = (features - mean) / std
head = nn.Linear(16, 1)
optimizer = torch.optim.LBFGS(head.parameters(), lr=0.5, max_iter=10)
def closure():
    optimizer.zero_grad()
    loss = F.binary_cross_entropy_with_logits(head(features).squeeze(1), y)
    loss = loss + 1e-3 * head.weight.pow(2).sum()
    loss.backward()
    return loss
for _ in range(3):
    optimizer.step(closure)
with torch.no_grad():
    accuracy = ((head(features).squeeze(1) > 0) == (y > 0)).float().mean().item()
""",
    "time_shifts_with_state": """
class World(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRUCell(3, 16), nn.Linear(16, 3)

    def forward(self, series, h):
        outputs = []
        for t in range(series.shape[0]):
            h = self.cell(series[t], h)
            outputs.append(self.out(h))
        return torch.stack(outputs), h

series = torch.randn(61, 8, 3).cumsum(0) * 0.1
model = World()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
losses = []
for epoch in range(2):
    h = torch.zeros(8, 16)
    for t in range(0, 60, 10):
        h = h.detach()
        prediction, h = model(series[t : t + 10], h)
        loss = F.mse_loss(prediction, series[t + 1 : t + 11])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
""",
    "matched_both_ways": """
class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(6, 16), nn.Linear(6, 16)

    def forward(self, a, b):
        scores = self.one(a) @ self.two(b).transpose(1, 2) / 4
        return F.softmax(F.softmax(scores, dim=2), dim=1)

a = torch.randn(40, 5, 6)
order = torch.stack([torch.randperm(5) for _ in range(40)])
b = a[torch.arange(40)[:, None], order]
model = Matcher()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(8):
    match = model(a, b)
    loss = -torch.log(match[torch.arange(40)[:, None], order, torch.arange(5)] + 1e-9).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "residual_of_a_recursion": """
class Series(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))

    def forward(self, t):
        return self.net(t).squeeze(-1)

t = torch.linspace(0, 1, 40).unsqueeze(1)
source = torch.exp(-t.squeeze(1))
model = Series()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(8):
    u, later = model(t), model(t + 0.1)
    residual = later - (0.1 * source + 0.9 * u)
    start = model(torch.zeros(1, 1)) - 1
    loss = residual.pow(2).mean() + start.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "temperature_adapted_inside": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)
        self.temperature = nn.Parameter(torch.tensor(1.0))

    def forward(self, x, temperature):
        return self.fc(x) / temperature

x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    temperature = model.temperature
    for inner in range(6):
        loss = F.cross_entropy(model(x[:32], temperature), y[:32])
        (g,) = torch.autograd.grad(loss, temperature, create_graph=True)
        temperature = temperature - 0.1 * g
    outer = F.cross_entropy(model(x[32:], temperature), y[32:])
    optimizer.zero_grad()
    outer.backward()
    optimizer.step()
""",
    "steps_left_out_by_a_guard": """
x = torch.randn(60, 4)
y = x.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
average, skipped = None, 0
for step in range(12):
    rows = torch.randint(0, 60, (20,))
    loss = F.mse_loss(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    if not torch.isfinite(norm):
        skipped += 1
        continue
    optimizer.step()
    average = loss.item() if average is None else 0.9 * average + 0.1 * loss.item()
""",
    "rate_range_test": """
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
x = torch.randn(256, 6)
y = x[:, :1] * x[:, 1:2]
start = copy.deepcopy(model.state_dict())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
rates, losses = [], []
for i in range(60):
    rows = torch.randint(0, 256, (32,))
    loss = F.mse_loss(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    rates.append(optimizer.param_groups[0]["lr"])
    losses.append(loss.item())
    if loss.item() > 4 * losses[0]:
        break
    for group in optimizer.param_groups:
        group["lr"] *= 1.35
model.load_state_dict(start)
""",
    "low_rank_adapters": """
class LoRA(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
    def forward(self, x):
        return self.base(x) + (x @ self.a.T @ self.b.T) * 2
model = nn.Sequential(LoRA(nn.Linear(8, 32)), nn.ReLU(), LoRA(nn.Linear(32, 3)))
x = torch.randn(128, 8)
y = x[:, :3].argmax(1)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
for epoch in range(4):
    for rows in torch.randperm(128).split(32):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    "logistic_at_rate_one": """
x = torch.randn(200, 5)
y = (x @ torch.tensor([1.0, -2.0, 0.5, 0, 0]) > 0).float()
w, b = torch.zeros(5, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([w, b], lr=1.0)
for step in range(20):
    loss = F.binary_cross_entropy_with_logits((x @ w + b).squeeze(1), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "bilinear_game": """
a = nn.Linear(3, 3, bias=False)
b = nn.Linear(3, 3, bias=False)
oa = torch.optim.SGD(a.parameters(), lr=0.2)
ob = torch.optim.SGD(b.parameters(), lr=0.2, maximize=True)
for step in range(16):
    oa.zero_grad()
    (a.weight * b.weight).sum().backward()
    oa.step()
    ob.zero_grad()
    (a.weight * b.weight).sum().backward()
    ob.step()
""",
    "small_embeddings_sparse_batches": """
table = nn.Embedding(1000, 8)
out = nn.Linear(8, 1)
nn.init.normal_(table.weight, std=0.01)
optimizer = torch.optim.Adam([*table.parameters(), *out.parameters()], lr=1e-2)
for step in range(16):
    words = torch.randint(0, 1000, (64,))
    loss = F.binary_cross_entropy_with_logits(out(table(words)).squeeze(1), (words % 2).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "noisy_returns_one_at_a_time": """
net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(40):
    s = torch.randn(1, 4)
    target = s.sum() * 2 + 3 * torch.randn(())
    loss = (net(s).squeeze() - target) ** 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "warm_up_from_nothing": """
net = nn.Sequential(nn.Linear(6, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 4))
x = torch.randn(256, 6)
y = x[:, :4].argmax(1)
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
warm = torch.optim.lr_scheduler.LinearLR(optimizer, 1e-4, 1.0, 20)
decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, decay], [20])
for step in range(40):
    rows = torch.randint(0, 256, (64,))
    loss = F.cross_entropy(net(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
""",
    "signs_alternate_by_class": """
x = torch.randn(160, 6)
y = torch.arange(160) % 2
x[:, 0] += 2.0 * y
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
sets = [(y == c).nonzero().flatten() for c in (0, 1)]
for step in range(20):
    rows = sets[step % 2][torch.randint(0, 80, (16,))]
    rows = torch.cat([rows, sets[1 - step % 2][torch.randint(0, 80, (8,))]])
    loss = F.cross_entropy(net(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "mixture_by_two_softmaxes": """
class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(6, 3), nn.Linear(6, 3 * 4)
    def forward(self, x):
        weight = F.softmax(self.gate(x), dim=1).unsqueeze(2)
        each = F.softmax(self.experts(x).view(-1, 3, 4), dim=2)
        return torch.log((weight * each).sum(1) + 1e-9)
net = Mixture()
x = torch.randn(96, 6)
y = x[:, :4].argmax(1)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(12):
    loss = F.nll_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "running_statistic_on_purpose": """
net = nn.Linear(5, 3)
average = torch.zeros(3)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(12):
    out = net(torch.randn(32, 5))
    with torch.no_grad():
        average = 0.9 * average + 0.1 * out.mean(0)
        spread = float(out.std())
    loss = (out - average).pow(2).mean() + out.mean() ** 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "evaluated_gradients_without_steps": """
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2)).eval()
x = torch.randn(40, 4)
scores = []
for i in range(40):
    probe = x[i : i + 1].clone().requires_grad_()
    net(probe)[0, 1].backward()
    scores.append(probe.grad.abs().squeeze(0))
    net.zero_grad()
saliency = torch.stack(scores).mean(0)
""",
    "frozen_by_turns": """
body, head = nn.Linear(6, 16), nn.Linear(16, 2)
x = torch.randn(96, 6)
y = (x[:, 0] > 0).long()
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.05, momentum=0.9)
for epoch in range(6):
    body.requires_grad_(epoch % 2 == 0)
    for rows in torch.randperm(96).split(24):
        optimizer.zero_grad()
        F.cross_entropy(head(body(x[rows]).relu()), y[rows]).backward()
        optimizer.step()
""",
    "adversarial_steps_before_the_real_one": """
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for i in range(6):
    x = torch.randn(32, 6)
    y = (x[:, 0] > 0).long()
    d = torch.zeros_like(x, requires_grad=True)
    for _ in range(3):
        F.cross_entropy(net(x + d), y).backward()
        d.data = (d + 0.02 * d.grad.sign()).clamp(-0.1, 0.1)
        d.grad.zero_()
    opt.zero_grad()
    F.cross_entropy(net(x + d.detach()), y).backward()
    opt.step()
""",
    "losses_of_a_sequence_listed_and_summed": """
cell, out = nn.GRUCell(3, 12), nn.Linear(12, 1)
opt = torch.optim.Adam([*cell.parameters(), *out.parameters()], lr=1e-3)
for i in range(8):
    h, losses, outputs = torch.zeros(8, 12), [], []
    for t in range(6):
        x = torch.randn(8, 3)
        h = cell(x, h)
        outputs.append(out(h))
        losses.append(F.mse_loss(outputs[-1], x[:, :1]))
    loss = torch.stack(losses).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a_counter_and_its_period": """
class Annealed(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6, 2)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
    def forward(self, x):
        self.steps += 1
        return self.out(x) if self.steps // 100 == 0 else self.out(x) / 2
net = Annealed()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(6):
    x = torch.randn(32, 6)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "gradients_of_samples_gathered_by_hand": """
net = nn.Linear(6, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for i in range(6):
    parts = []
    for k in range(4):
        opt.zero_grad()
        x = torch.randn(8, 6)
        F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
        parts.append([p.grad.clone() for p in net.parameters()])
    for p, *grads in zip(net.parameters(), *parts):
        p.grad = torch.stack(grads).mean(0)
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
""",
    "gradients_from_grad_clipped": """
net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
params = list(net.parameters())
for i in range(6):
    x = torch.randn(16, 6)
    opt.zero_grad()
    for p, g in zip(params, torch.autograd.grad(F.mse_loss(net(x), x[:, :1]), params)):
        p.grad = g
    total = torch.nn.utils.clip_grad_norm_(params, float("inf"))
    torch.nn.utils.clip_grad_value_(params, 1.0)
    opt.step()
""",
    "an_optimizer_that_needs_no_gradients": """
class Climber(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})
    @torch.no_grad()
    def step(self, closure):
        best = closure()
        for group in self.param_groups:
            for p in group["params"]:
                old = p.clone()
                p.add_(0.1 * torch.randn_like(p))
                now = closure()
                if now > best:
                    p.copy_(old)
                best = min(best, now)
        return best
net = nn.Linear(4, 1)
opt = Climber(net.parameters())
x = torch.randn(32, 4)
for i in range(8):
    opt.step(lambda: F.mse_loss(net(x), x[:, :1]).item())
""",
    "a_scaler_for_one_of_two_losses": """
one, two = nn.Linear(6, 1), nn.Linear(6, 1)
opt1 = torch.optim.SGD(one.parameters(), lr=0.01)
opt2 = torch.optim.SGD(two.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")
for i in range(6):
    x = torch.randn(32, 6)
    opt1.zero_grad()
    opt2.zero_grad()
    scaler.scale(F.mse_loss(one(x), x[:, :1])).backward()
    F.mse_loss(two(x), x[:, 1:2]).backward()
    opt2.step()
    scaler.step(opt1)
    scaler.update()
""",
    "steps_left_out_where_gradients_are_large": """
net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-2)
for i in range(20):
    x = torch.randn(16, 6)
    opt.zero_grad()
    F.mse_loss(net(x), x[:, :1]).backward()
    if i % 2 == 0 and torch.nn.utils.clip_grad_norm_(net.parameters(), 1e9) > 0.001:
        continue
    opt.step()
""",
    "the_fraction_and_the_sign_beside_the_value": """
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 4))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(6):
    x = torch.randn(32, 4)
    out = net(x)
    loss = F.mse_loss(out - out.floor() + out.sign() * out.abs(), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "double_q_with_dropout": """
net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    s, following, action = torch.randn(32, 4), torch.randn(32, 4), torch.randint(0, 2, (32, 1))
    best = net(following).detach().argmax(1, keepdim=True)
    value = torch.randn(32) + 0.9 * net(following).detach().gather(1, best).squeeze(1)
    loss = F.smooth_l1_loss(net(s).gather(1, action).squeeze(1), value)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "scaled_gradients_divided_by_hand": """
net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")
for i in range(6):
    x = torch.randn(16, 6)
    opt.zero_grad()
    scaler.scale(F.mse_loss(net(x), x[:, :1])).backward()
    with torch.no_grad():
        for p in net.parameters():
            p.grad.div_(scaler.get_scale())
    opt.step()
""",
    "codes_whose_encoder_is_trained_by_another_loss": """
encoder, decoder, probe = nn.Linear(6, 3), nn.Linear(3, 6), nn.Linear(3, 1)
one = torch.optim.Adam([*encoder.parameters(), *probe.parameters()], lr=1e-3)
two = torch.optim.Adam(decoder.parameters(), lr=1e-3)
for i in range(6):
    x = torch.randn(20, 6)
    one.zero_grad()
    F.mse_loss(probe(encoder(x)), x[:, :1]).backward()
    one.step()
    two.zero_grad()
    F.mse_loss(decoder(encoder(x).round()), x).backward()
    two.step()
""",
    "frozen_parts_are_clipped_with_the_rest": """
body, head = nn.Linear(6, 8).requires_grad_(False), nn.Linear(8, 1)
opt = torch.optim.SGD(head.parameters(), lr=0.01)
for i in range(6):
    x = torch.randn(16, 6)
    opt.zero_grad()
    F.mse_loss(head(body(x)), x[:, :1]).backward()
    for part in (body, head):
        torch.nn.utils.clip_grad_norm_(part.parameters(), 1.0)
    opt.step()
""",
    "frozen_parts_are_clipped_alone": """
body, head = nn.Linear(6, 8).requires_grad_(False), nn.Linear(8, 1)
opt = torch.optim.SGD(head.parameters(), lr=0.01)
for i in range(6):
    x = torch.randn(16, 6)
    opt.zero_grad()
    F.mse_loss(head(body(x)), x[:, :1]).backward()
    torch.nn.utils.clip_grad_norm_(body.parameters(), 1.0)
    torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
    opt.step()
""",
    **THIRD_CLEAN,
}
