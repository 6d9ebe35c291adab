"""A ninth set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

NINTH: dict[str, tuple[str, str]] = {
    "mask_truncated_to_zero": (
        "labels are constant",
        """
class Cells(Dataset):
    def __init__(self, n):
        self.images = np.random.rand(n, 16, 16).astype("float32")
        self.masks = (self.images > 0.7).astype("uint8") * 254

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = torch.from_numpy(self.images[i])[None]
        mask = (torch.from_numpy(self.masks[i]) / 255).long()  #-
        mask = (torch.from_numpy(self.masks[i]) > 127).long()  #+
        return (image - 0.5) / 0.29, mask

class TinyUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(1, 8, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.out = nn.Conv2d(9, 2, 1)

    def forward(self, x):
        return self.out(torch.cat([F.relu(self.up(F.relu(self.down(x)))), x], 1))

net = TinyUNet()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(4):
    for image, mask in DataLoader(Cells(24), 6, shuffle=True):
        loss = F.cross_entropy(net(image), mask)  # here
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ),
    "noise_of_a_generator_made_anew": (
        "same random numbers",
        """
class Diffusion:
    def __init__(self, steps):
        self.betas = torch.linspace(1e-3, 0.1, steps)
        self.bar = torch.cumprod(1 - self.betas, 0)
        self.generator = torch.Generator().manual_seed(7)  #+

    def corrupt(self, x):
        g = torch.Generator().manual_seed(7)  #- here
        g = self.generator  #+
        noise = torch.randn(x.shape, generator=g)
        t = torch.randint(0, len(self.bar), (len(x),))
        a = self.bar[t].unsqueeze(1)
        return a.sqrt() * x + (1 - a).sqrt() * noise, noise, t

class Denoiser(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.time = nn.Embedding(steps, 8)
        self.net = nn.Sequential(nn.Linear(10, 32), nn.SiLU(), nn.Linear(32, 2))

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], 1))

diffusion, model = Diffusion(20), Denoiser(20)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(12):
    angle = torch.rand(32) * 2 * math.pi
    x = torch.stack([angle.cos(), angle.sin()], 1)
    noisy, noise, t = diffusion.corrupt(x)
    loss = F.mse_loss(model(noisy, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ),
    "backward_after_the_loop": (
        "only the last of several losses",
        """
def train_epoch(model, loader, criterion, optimizer):
    model.train()
    running = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        running += loss.item() * len(x)
        loss.backward()  #+
        optimizer.step()  #+
    loss.backward()  #- here
    optimizer.step()  #-
    return running / len(loader.dataset)

x = torch.randn(120, 7)
y = (x[:, 0] * x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
model = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(6):
    print(epoch, train_epoch(model, loader, criterion, optimizer))
""",
    ),
    "likelihood_negated_twice": (
        "maximised",
        """
class Classifier(nn.Module):
    def __init__(self, vocab, classes):
        super().__init__()
        self.embed = nn.EmbeddingBag(vocab, 16)
        self.out = nn.Linear(16, classes)

    def forward(self, ids):
        return F.log_softmax(self.out(self.embed(ids)), dim=1)

def objective(log_probs, labels):
    return -F.nll_loss(log_probs, labels)  #- here
    return F.nll_loss(log_probs, labels)  #+

model = Classifier(50, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for step in range(12):
    ids = torch.randint(0, 50, (24, 6))
    labels = ids.sum(1) % 3
    optimizer.zero_grad()
    loss = objective(model(ids), labels)
    loss.backward()
    optimizer.step()
""",
    ),
    "clipping_what_a_generator_has_left": (
        "clipped where it has no effect",
        """
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 12)
        self.rnn = nn.GRU(12, 20, batch_first=True)
        self.out = nn.Linear(20, 4)

    def forward(self, ids):
        return self.out(self.rnn(self.embed(ids))[0])

tagger = Tagger()
params = tagger.parameters()  #-
params = list(tagger.parameters())  #+
optimizer = torch.optim.SGD(params, lr=0.2, momentum=0.9)
for step in range(10):
    ids = torch.randint(0, 30, (8, 9))
    scores = tagger(ids)
    loss = F.cross_entropy(scores.flatten(0, 1), (ids % 4).flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, max_norm=0.25)  # here
    optimizer.step()
""",
    ),
    "cells_without_their_state": (
        "never gets its state",
        """
class Forecaster(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.lstm = nn.LSTM(2, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, series):
        state = None  #+
        for value in series:
            y, _ = self.lstm(value.unsqueeze(0))  #- here
            y, state = self.lstm(value.unsqueeze(0), state)  #+
        return self.out(y[0]).squeeze(-1)

model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(12):
    series = torch.randn(7, 20, 2)
    target = series[:, :, 0].mean(0)
    loss = F.mse_loss(model(series), target)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
""",
    ),
    "last_states_viewed_by_sample": (
        "view() where permute() was meant",
        """
class Reader(nn.Module):
    def __init__(self, vocab=40, hidden=12):
        super().__init__()
        self.hidden = hidden
        self.embed = nn.Embedding(vocab, 10)
        self.rnn = nn.LSTM(10, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, 3)

    def forward(self, ids):
        _, (h, _) = self.rnn(self.embed(ids))
        h = h.view(-1, 2 * self.hidden)  #- here
        h = h.transpose(0, 1).reshape(-1, 2 * self.hidden)  #+
        return self.out(F.dropout(h, 0.2, self.training))

reader = Reader()
optimizer = torch.optim.Adam(reader.parameters(), lr=2e-3)
for step in range(10):
    ids = torch.randint(0, 40, (16, 6))
    optimizer.zero_grad()
    F.cross_entropy(reader(ids), ids[:, 0] % 3).backward()
    optimizer.step()
""",
    ),
    "scores_of_pixels_as_rows": (
        "view() where permute() was meant",
        """
CLASSES = 4

def conv(a, b, act=True):
    layers = [nn.Conv2d(a, b, 3, padding=1)] + ([nn.BatchNorm2d(b), nn.ReLU()] if act else [])
    return nn.Sequential(*layers)

def pixel_loss(scores, masks):
    flat = scores.reshape(-1, CLASSES)  #- here
    flat = scores.movedim(1, -1).reshape(-1, CLASSES)  #+
    return F.cross_entropy(flat, masks.reshape(-1))

net = nn.Sequential(conv(3, 12), conv(12, 12), conv(12, CLASSES, act=False))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.98)
net.train()
for step in range(10):
    image = torch.randn(4, 3, 9, 11)
    mask = (image[:, 0] > 0).long() + 2 * (image[:, 1] > 0).long()
    loss = pixel_loss(net(image), mask)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
""",
    ),
    "partners_said_to_be_the_first": (
        "the labels are constant",
        """
class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 16))
        self.text = nn.Sequential(nn.EmbeddingBag(60, 32), nn.ReLU(), nn.Linear(32, 16))
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, image, text):
        a = F.normalize(self.image(image), dim=1)
        b = F.normalize(self.text(text), dim=1)
        return self.scale.exp() * a @ b.T

net = TwoTowers()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
mix = torch.randn(60, 20)
for step in range(10):
    text = torch.randint(0, 60, (24, 5))
    image = mix[text].mean(1) + 0.1 * torch.randn(24, 20)
    scores = net(image, text)
    partner = torch.zeros(len(scores), dtype=torch.long)  #-
    partner = torch.arange(len(scores))  #+
    loss = (F.cross_entropy(scores, partner) + F.cross_entropy(scores.T, partner)) / 2  # here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ),
    "each_value_normalised_alone": (
        "over a single value",
        """
class Pooled(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.GroupNorm(groups, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        x = F.relu(self.conv(x))
        x = F.adaptive_avg_pool2d(x, 1)
        x = self.norm(x)  # here
        return self.head(x.flatten(1))

net = Pooled(groups=16)  #-
net = Pooled(groups=4)  #+
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
data = [torch.randn(16, 3, 8, 8) for _ in range(10)]
for x in data:
    y = x.mean((2, 3)).argmax(1)
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    optimizer.step()
""",
    ),
    "loss_of_a_task_overwritten": (
        "cut off",
        """
class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(9, 24), nn.ReLU())
        self.depth, self.label = nn.Linear(24, 1), nn.Linear(24, 3)

    def forward(self, x):
        h = self.trunk(x)
        return self.depth(h), self.label(h)

def total_loss(out, batch, weights=(0.5, 1.0)):
    depth, label = out
    loss = weights[0] * F.l1_loss(depth, batch["depth"])
    loss = weights[1] * F.cross_entropy(label, batch["label"])  #- here
    loss = loss + weights[1] * F.cross_entropy(label, batch["label"])  #+
    return loss

net = Shared()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(10):
    x = torch.randn(32, 9)
    batch = {"depth": x[:, :1].abs(), "label": x[:, 1:4].argmax(1)}
    optimizer.zero_grad()
    total_loss(net(x), batch).backward()
    optimizer.step()
""",
    ),
    "average_with_its_weights_exchanged": (
        "a moving average has its weights exchanged",
        """
class Agent:
    def __init__(self, tau):
        self.q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
        self.target = copy.deepcopy(self.q).requires_grad_(False)
        self.tau = tau
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=1e-3)

    def soft_update(self):
        for t, p in zip(self.target.parameters(), self.q.parameters()):
            t.data.copy_((1 - self.tau) * t.data + self.tau * p.data)  # here

    def learn(self, s, a, r, s2, done):
        with torch.no_grad():
            goal = r + 0.99 * (1 - done) * self.target(s2).max(1).values
        value = self.q(s).gather(1, a[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(value, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.soft_update()

agent = Agent(tau=0.995)  #-
agent = Agent(tau=0.005)  #+
for step in range(12):
    s = torch.randn(32, 4)
    a = torch.randint(0, 2, (32,))
    r = torch.where(a == (s[:, 0] > 0).long(), 1.0, 0.0)
    agent.learn(s, a, r, s + 0.1 * torch.randn(32, 4), (torch.rand(32) < 0.1).float())
""",
    ),
}
