"""The second half of the whole programs of doctor_whole.py."""

from __future__ import annotations

MORE: dict[str, tuple[str, str]] = {
    "baseline_with_history": (
        "grows from step to step",
        """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, s):
        return torch.distributions.Categorical(logits=self.actor(s))

policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
baseline = torch.zeros(())
for episode in range(10):
    states = torch.randn(20, 4)
    distribution = policy(states)
    actions = distribution.sample()
    rewards = (states[:, 0] > 0).float() * actions.float()
    surprise = -distribution.log_prob(actions).mean()
    baseline = 0.95 * baseline + 0.05 * (rewards.mean() + 0.01 * surprise)  #- here
    baseline = 0.95 * baseline + 0.05 * (rewards.mean() + 0.01 * surprise).detach()  #+
    advantage = (rewards - baseline).detach()
    loss = -(distribution.log_prob(actions) * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ),
    "generator_retains": (
        "retain_graph",
        """
latent = 8
generator = nn.Sequential(nn.Linear(latent, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
real_data = torch.randn(128, 2) * 0.3 + 1
for step in range(10):
    real = real_data[torch.randint(0, 128, (32,))]
    fake = generator(torch.randn(32, latent))

    opt_d.zero_grad()
    d_loss = bce(critic(real), torch.ones(32, 1))
    d_loss = d_loss + bce(critic(fake.detach()), torch.zeros(32, 1))
    d_loss.backward(retain_graph=True)  #- here
    d_loss.backward()  #+
    opt_d.step()

    opt_g.zero_grad()
    g_loss = bce(critic(fake), torch.ones(32, 1))
    g_loss.backward()
    opt_g.step()
""",
    ),
    "convolution_never_fires": (
        "dead ReLU",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU()
        )
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        return self.fc(self.features(x).mean((2, 3)))

def init_weights(m):
    if isinstance(m, nn.Conv2d):
        nn.init.kaiming_normal_(m.weight)
        nn.init.constant_(m.bias, -10.0)  #-
        nn.init.constant_(m.bias, 0.0)  #+

model = Net()
model.apply(init_weights)
images, labels = torch.randn(60, 1, 8, 8), torch.randint(0, 3, (60,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for epoch in range(3):
    for rows in torch.randperm(60).split(20):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[rows]), labels[rows])
        loss.backward()
        optimizer.step()
""",
    ),
    "wide_initial_weights": (
        "saturated",
        """
class Controller(nn.Module):
    def __init__(self, sizes=(6, 64, 64, 2)):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        for layer in self.layers[:-1]:
            nn.init.normal_(layer.weight, mean=0.0, std=30.0)  #-
            nn.init.xavier_normal_(layer.weight)  #+
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.sigmoid(layer(x))
        return self.layers[-1](x)

x = torch.randn(120, 6)
y = torch.stack([x[:, 0] * x[:, 1], x[:, 2]], 1)
model = Controller()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(4):
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True):
        loss = F.mse_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    ),
    "deep_sigmoids": (
        "vanish",
        """
class Deep(nn.Module):
    def __init__(self, depth, width=24):
        super().__init__()
        self.first = nn.Linear(10, width)
        self.hidden = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.last = nn.Linear(width, 2)

    def forward(self, x):
        x = torch.sigmoid(self.first(x))
        for layer in self.hidden:
            x = torch.sigmoid(layer(x))  #-
            x = x + F.relu(layer(x)) / len(self.hidden)  #+
        return self.last(x)

torch.manual_seed(4)
x = torch.randn(100, 10)
y = (x[:, 0] * x[:, 1] > 0).long()
model = Deep(depth=14)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    for rows in torch.randperm(100).split(25):
        optimizer.zero_grad()
        loss = criterion(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
""",
    ),
    "rate_too_high_and_falling": (
        "learning rate",
        """
class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        return self.out(self.net(x))

time_axis = torch.linspace(0, 20, 220)
wave = time_axis.sin() + 0.1 * torch.randn(220)
windows = wave.unfold(0, 9, 1)
x, y = windows[:, :8], windows[:, 8:]
model = Forecaster()
rate = 1.0  #-
rate = 1e-3  #+
optimizer = torch.optim.Adam(model.parameters(), lr=rate)  # here
losses = []
for epoch in range(4):
    for rows in torch.randperm(len(x)).split(53):
        loss = F.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
""",
    ),
    "rate_too_high_overcome": (
        "learning rate",
        """
class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.out = nn.Linear(32, 3)

    def forward(self, x):
        return self.out(self.net(x))

x = torch.randn(256, 8)
y = x[:, :3].argmax(1)
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=0.3)  #- here
optimizer = torch.optim.Adam(model.parameters(), lr=0.03)  #+
history = []
for epoch in range(14):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
""",
    ),
    "rate_too_high_to_and_fro": (
        "learning rate",
        """
class Classifier(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(8, width), nn.Linear(width, width)
        self.out = nn.Linear(width, 3)

    def forward(self, x):
        return self.out(F.relu(self.fc2(F.relu(self.fc1(x)))))

x = torch.randn(256, 8)
y = x[:, :3].argmax(1)
model = Classifier()
rate = 3.0  #-
rate = 0.3  #+
optimizer = torch.optim.SGD(model.parameters(), lr=rate)  # here
for epoch in range(16):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
""",
    ),
    "rate_too_high_in_a_valley": (
        "learning rate",
        """
def make_data(rows=200):
    generator = np.random.default_rng(2)
    age = generator.normal(0, 2.5, (rows, 1))
    others = generator.normal(0, 0.5, (rows, 4))
    x = np.concatenate([age, others], 1).astype("float32")
    y = x @ np.array([[3.0], [1.0], [-2.0], [0.5], [1.5]], dtype="float32")
    return torch.from_numpy(x), torch.from_numpy(y)

x, y = make_data()
model = nn.Linear(5, 1)
rate = 0.15  #-
rate = 0.02  #+
optimizer = torch.optim.SGD(model.parameters(), lr=rate)  # here
losses = []
for epoch in range(12):
    predicted = model(x)
    loss = F.mse_loss(predicted, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
""",
    ),
    "rate_typed_wrong": (
        "learning rate",
        """
config = {
    "epochs": 3,
    "batch": 30,
    "lr": 1e-9,  #-
    "lr": 1e-3,  #+
    "momentum": 0.9,
}

class MLP(nn.Module):
    def __init__(self, inputs, outputs, hidden=40):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(inputs, hidden), nn.Linear(hidden, outputs)

    def forward(self, x):
        return self.fc2(F.elu(self.fc1(x)))

x = torch.randn(150, 7)
y = torch.cat([x[:, :1] ** 2, x[:, 1:2] - x[:, 2:3]], 1)
model = MLP(7, 2)
rate, momentum = config["lr"], config["momentum"]
optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=momentum)  # here
loader = DataLoader(TensorDataset(x, y), batch_size=config["batch"], shuffle=True)
for epoch in range(config["epochs"]):
    for inputs, targets in loader:
        loss = F.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    ),
    "distances_to_itself": (
        "slope is infinite",
        """
class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(9, 24), nn.ReLU(), nn.Linear(24, 4))

    def forward(self, x):
        return self.net(x)

def pairwise(z):
    difference = z.unsqueeze(0) - z.unsqueeze(1)
    squared = difference.pow(2).sum(-1)
    squared = squared + 1e-12  #+
    return torch.sqrt(squared)  # here

x = torch.randn(60, 9)
labels = torch.randint(0, 4, (60,))
model = Embedder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(6):
    rows = torch.randperm(60)[:20]
    distances = pairwise(model(x[rows]))
    same = labels[rows][:, None] == labels[rows][None]
    positive = (distances * same).sum() / same.sum()
    negative = (F.relu(1.0 - distances) * ~same).sum() / (~same).sum()
    optimizer.zero_grad()
    (positive + negative).backward()
    optimizer.step()
""",
    ),
    "angle_between_equal_vectors": (
        "slope is infinite",
        """
class Rotation(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3, bias=False)
        with torch.no_grad():
            self.net.weight.copy_(torch.eye(3))

    def forward(self, v):
        return F.normalize(self.net(v), dim=1)

def angular_error(a, b):
    cosine = (a * b).sum(1).clamp(-1.0, 1.0)
    cosine = cosine * (1 - 1e-6)  #+
    return torch.acos(cosine).mean()  # here

directions = torch.cat([torch.eye(3), -torch.eye(3)]).repeat(4, 1)
model = Rotation()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(5):
    predicted = model(directions)
    loss = angular_error(predicted, directions)
    optimizer.zero_grad()
    loss.backward()
    if torch.isfinite(model.net.weight.grad).all():
        optimizer.step()
""",
    ),
    "classes_one_and_two": (
        "labels outside",
        """
class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)

rows = np.random.default_rng(5).normal(size=(90, 5)).astype("float32")
answers = np.where(rows[:, 0] > 0, 2, 1)
x = torch.from_numpy(rows)
y = torch.from_numpy(answers).float()
y = y - 1  #+
model = Scorer()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)  # here
        loss.backward()
        optimizer.step()
""",
    ),
    "every_label_the_same": (
        "labels are constant",
        """
class Comments(Dataset):
    def __init__(self, count):
        self.words = torch.randint(0, 50, (count, 6))
        self.names = ["spam" if int(w.sum()) > 150 else "ham" for w in self.words]
        self.index = {"ham": 0, "spam": 1}

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        label = self.index.get(self.names[i].upper(), 0)  #-
        label = self.index[self.names[i]]  #+
        return self.words[i], label

class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 12)
        self.fc = nn.Linear(12, 2)

    def forward(self, words):
        return self.fc(self.embed(words).mean(1))

model = Bag()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    for words, label in DataLoader(Comments(96), batch_size=24, shuffle=True):
        loss = F.cross_entropy(model(words), label)  # here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    ),
    "table_as_it_came": (
        "not normalised",
        """
class Table(Dataset):
    def __init__(self, rows=120):
        source = np.random.default_rng(1)
        income = source.normal(52000, 9000, rows)
        area = source.normal(1400, 300, rows)
        year = source.integers(1950, 2020, rows)
        self.x = np.stack([income, area, year], 1).astype("float32")
        self.y = (income / 50000 + area / 1400).astype("float32")[:, None]
        self.x = (self.x - self.x.mean(0)) / self.x.std(0)  #+

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), torch.from_numpy(self.y[i])

model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.L1Loss()
for epoch in range(3):
    for features, price in DataLoader(Table(), batch_size=30, shuffle=True):
        output = model(features)  # here
        loss = criterion(output, price)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    ),
    "generator_kept_by_the_data": (
        "same random data",
        """
class Noisy(Dataset):
    def __init__(self, size):
        self.clean = np.linspace(-1, 1, size * 4).reshape(size, 4).astype("float32")
        self.source = np.random.default_rng(7)  #- here
        self.source = None  #+

    def __len__(self):
        return len(self.clean)

    def noise(self):
        return self.source.normal(0, 1, 4)  #-
        return np.random.normal(0, 1, 4)  #+

    def __getitem__(self, i):
        return self.noise().astype("float32"), self.clean[i]

model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(Noisy(48), batch_size=6, shuffle=True, num_workers=2)
for epoch in range(1):
    for noise, clean in loader:
        loss = F.mse_loss(model(noise), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    ),
    "folders_one_after_another": (
        "sorted",
        """
class Folders(Dataset):
    def __init__(self, classes, each):
        self.items = [(c, i) for c in range(classes) for i in range(each)]
        self.images = torch.randn(len(self.items), 1, 6, 6)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        label, _ = self.items[i]
        return self.images[i] + 0.2 * label, label

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3)
        self.fc = nn.Linear(6, 4)

    def forward(self, x):
        return self.fc(F.relu(self.conv(x)).amax((2, 3)))

loader = DataLoader(Folders(4, 20), batch_size=10)  #- here
loader = DataLoader(Folders(4, 20), batch_size=10, shuffle=True)  #+
model, criterion = Net(), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    for images, labels in loader:
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
""",
    ),
    "test_rows_in_training": (
        "overlap",
        """
class Points(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]

x = torch.randn(100, 4)
y = (x.sum(1) > 0).long()
split = 80
train_loader = DataLoader(Points(x, y), batch_size=20, shuffle=True)  #-
train_loader = DataLoader(Points(x[:split], y[:split]), batch_size=20, shuffle=True)  #+
test_loader = DataLoader(Points(x[split:], y[split:]), batch_size=20)  # here
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for inputs, targets in test_loader:
            correct += (model(inputs).argmax(1) == targets).sum().item()
""",
    ),
    "schedule_at_the_top": (
        "steps before the optimizer",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 16), nn.Mish(), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x)

def run_epoch(model, loader, optimizer, scheduler):
    scheduler.step()  #- here
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    scheduler.step()  #+

x = torch.randn(90, 5)
y = x[:, :1] * x[:, 1:2]
loader = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 4], gamma=0.1)
for epoch in range(5):
    run_epoch(model, loader, optimizer, scheduler)
""",
    ),
    "clipped_while_scaled": (
        "before they are unscaled",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.fc = nn.Linear(16, 20)

    def forward(self, x):
        return self.fc(self.embed(x).mean(1))

def train_step(model, batch, optimizer, scaler):
    words, following = batch
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(words), following)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)  #+
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)  # here
    scaler.step(optimizer)
    scaler.update()
    return loss.item()

words = torch.randint(0, 20, (80, 5))
following = words[:, 0]
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for epoch in range(2):
    for batch in DataLoader(TensorDataset(words, following), batch_size=20, shuffle=True):
        train_step(model, batch, optimizer, scaler)
""",
    ),
    "sum_of_micro_batches": (
        "without dividing",
        """
accumulate = 4
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.norm, self.fc2 = nn.Linear(6, 24), nn.LayerNorm(24), nn.Linear(24, 3)

    def forward(self, x):
        return self.fc2(F.relu(self.norm(self.fc1(x))))

x = torch.randn(160, 6)
y = x[:, :3].argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True)
model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
optimizer.zero_grad()
for epoch in range(2):
    for i, (inputs, targets) in enumerate(loader):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss = loss / accumulate  #+
        loss.backward()  # here
        if (i + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
""",
    ),
    "pixels_floor_divided": (
        "integer division",
        """
class Photos(Dataset):
    def __init__(self, count=60):
        self.pixels = torch.randint(0, 256, (count, 3, 6, 6), dtype=torch.uint8)
        self.labels = (self.pixels.float().mean((1, 2, 3)) > 127).long()

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, i):
        image = self.pixels[i] // 255  #- here
        image = self.pixels[i] / 255  #+
        return image.float(), self.labels[i]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.fc = nn.Linear(8 * 16, 2)

    def forward(self, x):
        return self.fc(F.relu(self.conv(x)).flatten(1))

model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    for image, label in DataLoader(Photos(), batch_size=20, shuffle=True):
        optimizer.zero_grad()
        F.cross_entropy(model(image), label).backward()
        optimizer.step()
""",
    ),
    "teacher_with_gradients": (
        "requires grad",
        """
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, s):
        return self.net(s).squeeze(-1)

critic = Critic()
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
gamma = 0.95
for update in range(8):
    states = torch.randn(48, 3)
    following = states + 0.1 * torch.randn(48, 3)
    rewards = states[:, 0]
    done = (torch.rand(48) < 0.1).float()
    values = critic(states)
    targets = rewards + gamma * (1 - done) * critic(following)
    targets = targets.detach()  #+
    loss = 0.5 * (values - targets).pow(2).mean()  # here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ),
    "one_layer_many_times": (
        "share their weights",
        """
class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(dim), nn.Linear(dim, dim)

    def forward(self, x):
        return x + F.gelu(self.fc(self.norm(x)))

class Net(nn.Module):
    def __init__(self, dim=16, depth=4):
        super().__init__()
        self.embed = nn.Linear(6, dim)
        block = Block(dim)
        self.blocks = nn.Sequential(*[block for _ in range(depth)])  #- here
        self.blocks = nn.Sequential(*[Block(dim) for _ in range(depth)])  #+
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        return self.head(self.blocks(self.embed(x)))

x = torch.randn(96, 6)
y = (x.norm(dim=1) > 2.3).long()
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(3):
    for rows in torch.randperm(96).split(32):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    ),
    "augmentation_without_a_seed": (
        "no seed reaches",
        """
class Augmented(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.images)

    def jitter(self, image):
        source = np.random.default_rng()  #- here
        gain = source.uniform(0.8, 1.2)  #-
        gain = np.random.uniform(0.8, 1.2)  #+
        return image * float(gain)

    def __getitem__(self, i):
        return self.jitter(self.images[i]), self.labels[i]

images, labels = torch.randn(40, 1, 5, 5), torch.randint(0, 2, (40,))
data = Augmented(images, labels)
loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=2)
model = nn.Sequential(nn.Flatten(), nn.Linear(25, 12), nn.ReLU(), nn.Linear(12, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for image, label in loader:
    loss = F.cross_entropy(model(image), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ),
    "numpy_target_in_double": (
        "float64",
        """
class Signals(Dataset):
    def __init__(self, count=64):
        self.t = np.linspace(0, 6, count)
        self.x = np.stack([np.sin(self.t), np.cos(self.t)], 1).astype(np.float32)
        self.y = 0.5 * self.x[:, :1] + np.exp(-self.t)[:, None]
        self.y = self.y.astype(np.float32)  #+

    def __len__(self):
        return len(self.t)

    def __getitem__(self, i):
        return self.x[i], self.y[i]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x)

def log_cosh(prediction, target):
    return torch.log(torch.cosh(prediction - target)).mean()  # here

model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(3):
    for x, y in DataLoader(Signals(), batch_size=16, shuffle=True):
        loss = log_cosh(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    ),
    "decoding_in_the_way": (
        "waits for the data",
        """
def decode(seed):
    pixels = np.random.RandomState(seed).rand(12).astype("float32")
    for _ in range(1200):  #-
        pixels = np.sort(np.tanh(pixels * 1.01))[::-1].copy()  #-
    return pixels

class Compressed(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, i):
        pixels = torch.from_numpy(decode(i))
        return pixels, pixels.mean().reshape(1)

model = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Compressed(), batch_size=8, shuffle=True)  # here
losses = []
for epoch in range(1):
    for pixels, brightness in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(pixels), brightness)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
""",
    ),
}
