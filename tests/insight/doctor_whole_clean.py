"""Whole programs with nothing wrong, as users write them: the header is doctor_whole.py's."""

from __future__ import annotations

from doctor_whole_clean_more import MORE_CLEAN

WHOLE_CLEAN: dict[str, str] = {
    "digits_with_log_softmax": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3)
        self.dropout1, self.dropout2 = nn.Dropout(0.25), nn.Dropout(0.5)
        self.fc1, self.fc2 = nn.Linear(16 * 9, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        x = self.dropout1(F.max_pool2d(x, 2))
        x = self.dropout2(F.relu(self.fc1(x.flatten(1))))
        return F.log_softmax(self.fc2(x), dim=1)

images, digits = torch.randn(80, 1, 10, 10), torch.randint(0, 10, (80,))
train_loader = DataLoader(TensorDataset(images[:64], digits[:64]), 16, shuffle=True)
test_loader = DataLoader(TensorDataset(images[64:], digits[64:]), 16)
model = Net()
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
for epoch in range(3):
    model.train()
    for data, target in train_loader:
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
    model.eval()
    test_loss, correct = 0.0, 0
    with torch.no_grad():
        for data, target in test_loader:
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            correct += output.argmax(1, keepdim=True).eq(target.view(-1, 1)).sum().item()
    scheduler.step()
""",
    "vae_with_sums": """
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc21, self.fc22 = nn.Linear(36, 24), nn.Linear(24, 4), nn.Linear(24, 4)
        self.fc3, self.fc4 = nn.Linear(4, 24), nn.Linear(24, 36)

    def forward(self, x):
        h = F.relu(self.fc1(x))
        mu, logvar = self.fc21(h), self.fc22(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar

model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
images = torch.rand(96, 36)
for epoch in range(2):
    for (x,) in DataLoader(TensorDataset(images), batch_size=32, shuffle=True):
        recon, mu, logvar = model(x)
        bce = F.binary_cross_entropy(recon, x, reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        optimizer.zero_grad()
        (bce + kld).backward()
        optimizer.step()
with torch.no_grad():
    z = torch.randn(8, 4)
    sample = torch.sigmoid(model.fc4(F.relu(model.fc3(z))))
""",
    "reinforce_with_returns": """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1, self.dropout = nn.Linear(4, 32), nn.Dropout(p=0.1)
        self.affine2 = nn.Linear(32, 2)
        self.saved_log_probs, self.rewards = [], []

    def forward(self, x):
        return F.softmax(self.affine2(F.relu(self.dropout(self.affine1(x)))), dim=1)

policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for episode in range(6):
    state = torch.randn(1, 4)
    for t in range(12):
        m = torch.distributions.Categorical(policy(state))
        action = m.sample()
        policy.saved_log_probs.append(m.log_prob(action))
        policy.rewards.append(float(action == (state[0, 0] > 0)))
        state = torch.randn(1, 4)
    R, returns = 0, deque()
    for r in policy.rewards[::-1]:
        R = r + 0.99 * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = [-lp * R for lp, R in zip(policy.saved_log_probs, returns)]
    optimizer.zero_grad()
    torch.cat(loss).sum().backward()
    optimizer.step()
    del policy.rewards[:], policy.saved_log_probs[:]
""",
    "clipped_policy": """
class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
        self.critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))

    def evaluate(self, states, actions):
        dist = torch.distributions.Categorical(logits=self.actor(states))
        return dist.log_prob(actions), self.critic(states).squeeze(-1), dist.entropy()

net = ActorCritic()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-4, eps=1e-5)
for update in range(3):
    states = torch.randn(64, 4)
    with torch.no_grad():
        dist = torch.distributions.Categorical(logits=net.actor(states))
        actions = dist.sample()
        old_log_probs, old_values = dist.log_prob(actions), net.critic(states).squeeze(-1)
    returns = states[:, 0] * (actions - 1).float()
    advantages = returns - old_values
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for epoch in range(3):
        for rows in torch.randperm(64).split(32):
            log_probs, values, entropy = net.evaluate(states[rows], actions[rows])
            ratio = (log_probs - old_log_probs[rows]).exp()
            surr = torch.min(ratio * advantages[rows],
                             ratio.clamp(0.8, 1.2) * advantages[rows])
            loss = -surr.mean() + 0.5 * F.mse_loss(values, returns[rows]) - 0.01 * entropy.mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
""",
    "soft_actor_critic": """
def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.ReLU(), nn.Linear(32, o))

actor, q1, q2 = mlp(3, 2), mlp(4, 1), mlp(4, 1)
t1, t2 = copy.deepcopy(q1), copy.deepcopy(q2)
for p in [*t1.parameters(), *t2.parameters()]:
    p.requires_grad = False
log_alpha = torch.zeros(1, requires_grad=True)
opt_pi = torch.optim.Adam(actor.parameters(), lr=3e-4)
opt_q = torch.optim.Adam([*q1.parameters(), *q2.parameters()], lr=3e-4)
opt_alpha = torch.optim.Adam([log_alpha], lr=3e-4)

def act(s):
    mean, log_std = actor(s).chunk(2, 1)
    dist = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
    u = dist.rsample()
    a = torch.tanh(u)
    return a, (dist.log_prob(u) - torch.log(1 - a.pow(2) + 1e-6)).sum(1, keepdim=True)

for step in range(8):
    s, s2, r = torch.randn(64, 3), torch.randn(64, 3), torch.randn(64, 1)
    a = torch.rand(64, 1) * 2 - 1
    with torch.no_grad():
        a2, logp2 = act(s2)
        q_next = torch.min(t1(torch.cat([s2, a2], 1)), t2(torch.cat([s2, a2], 1)))
        backup = r + 0.99 * (q_next - log_alpha.exp() * logp2)
    sa = torch.cat([s, a], 1)
    loss_q = F.mse_loss(q1(sa), backup) + F.mse_loss(q2(sa), backup)
    opt_q.zero_grad()
    loss_q.backward()
    opt_q.step()
    a_new, logp = act(s)
    q = torch.min(q1(torch.cat([s, a_new], 1)), q2(torch.cat([s, a_new], 1)))
    loss_pi = (log_alpha.exp().detach() * logp - q).mean()
    opt_pi.zero_grad()
    loss_pi.backward()
    opt_pi.step()
    loss_alpha = -(log_alpha * (logp - 1.0).detach()).mean()
    opt_alpha.zero_grad()
    loss_alpha.backward()
    opt_alpha.step()
    with torch.no_grad():
        for q_, t_ in ((q1, t1), (q2, t2)):
            for p, tp in zip(q_.parameters(), t_.parameters()):
                tp.data.mul_(0.995)
                tp.data.add_(0.005 * p.data)
""",
    "bootstrap_your_own_latent": """
def projector(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, o))

class BYOL(nn.Module):
    def __init__(self):
        super().__init__()
        self.online, self.predictor = projector(12, 8), projector(8, 8)
        self.target = copy.deepcopy(self.online)
        for p in self.target.parameters():
            p.requires_grad = False

    @torch.no_grad()
    def update(self, tau=0.99):
        for o, t in zip(self.online.parameters(), self.target.parameters()):
            t.data = tau * t.data + (1 - tau) * o.data

    def forward(self, a, b):
        p = F.normalize(self.predictor(self.online(a)), dim=-1)
        with torch.no_grad():
            z = F.normalize(self.target(b), dim=-1)
        return 2 - 2 * (p * z.detach()).sum(-1)

model = BYOL()
optimizer = torch.optim.Adam(
    [*model.online.parameters(), *model.predictor.parameters()], lr=1e-3
)
x = torch.randn(96, 12)
for step in range(8):
    batch = x[torch.randint(0, 96, (32,))]
    a, b = batch + 0.1 * torch.randn_like(batch), batch + 0.1 * torch.randn_like(batch)
    loss = (model(a, b) + model(b, a)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.update()
""",
    "contrast_in_a_batch": """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
        self.g = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 8))

    def forward(self, x):
        return F.normalize(self.g(self.f(x)), dim=1)

def nt_xent(z, temperature=0.5):
    n = len(z) // 2
    similarity = z @ z.T / temperature
    similarity = similarity.masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
    targets = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(similarity, targets)

model = Encoder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
x = torch.randn(128, 10)
for epoch in range(2):
    for (batch,) in DataLoader(TensorDataset(x), batch_size=32, shuffle=True, drop_last=True):
        views = torch.cat([batch + 0.2 * torch.randn_like(batch) for _ in range(2)])
        loss = nt_xent(model(views))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    "triplets": """
class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        return self.net(x)

class Triplets(Dataset):
    def __init__(self):
        self.labels = torch.arange(90) % 3
        self.x = torch.randn(90, 8) + self.labels[:, None]

    def __len__(self):
        return 90

    def __getitem__(self, i):
        same = (self.labels == self.labels[i]).nonzero().flatten()
        other = (self.labels != self.labels[i]).nonzero().flatten()
        pick = same[torch.randint(len(same), (1,))], other[torch.randint(len(other), (1,))]
        return self.x[i], self.x[pick[0]][0], self.x[pick[1]][0]

model, criterion = Embed(), nn.TripletMarginLoss(margin=1.0)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(2):
    for a, p, n in DataLoader(Triplets(), batch_size=30, shuffle=True):
        loss = criterion(model(a), model(p), model(n))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    "detector_with_few_objects": """
class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.SiLU())
        self.objectness, self.boxes = nn.Conv2d(8, 1, 1), nn.Conv2d(8, 4, 1)
        nn.init.constant_(self.objectness.bias, -4.0)

    def forward(self, x):
        h = self.body(x)
        return self.objectness(h).squeeze(1), self.boxes(h).permute(0, 2, 3, 1)

images = torch.randn(24, 3, 8, 8)
where = torch.zeros(24, 8, 8)
where[torch.arange(24), torch.randint(0, 8, (24,)), torch.randint(0, 8, (24,))] = 1
boxes = torch.rand(24, 8, 8, 4)
model = Detector()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(10):
    rows = torch.randint(0, 24, (8,))
    score, box = model(images[rows])
    positive = where[rows] > 0
    objectness = F.binary_cross_entropy_with_logits(score, where[rows], reduction="none")
    place = F.smooth_l1_loss(box[positive], boxes[rows][positive], beta=0.1, reduction="sum")
    loss = objectness.mean() + place / positive.sum().clamp(min=1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "ratings_by_embeddings": """
class Factors(nn.Module):
    def __init__(self, users, items, dim=8):
        super().__init__()
        self.user, self.item = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.user_bias, self.item_bias = nn.Embedding(users, 1), nn.Embedding(items, 1)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)
        self.mean = nn.Parameter(torch.tensor(3.5))

    def forward(self, u, i):
        dot = (self.user(u) * self.item(i)).sum(1)
        return dot + self.user_bias(u).squeeze(1) + self.item_bias(i).squeeze(1) + self.mean

u, i = torch.randint(0, 30, (300,)), torch.randint(0, 40, (300,))
ratings = torch.randint(1, 6, (300,)).float()
model = Factors(30, 40)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-5)
for epoch in range(2):
    for ub, ib, rb in DataLoader(TensorDataset(u, i, ratings), batch_size=50, shuffle=True):
        loss = F.mse_loss(model(ub, ib), rb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    "everything_in_double": """
x = torch.linspace(-3, 3, 64, dtype=torch.float64).unsqueeze(1)
y = torch.sin(x) + 0.1 * torch.randn(64, 1, dtype=torch.float64)
model = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
model = model.double()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
history = []
for epoch in range(12):
    prediction = model(x)
    loss = ((prediction - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
model.eval()
with torch.no_grad():
    residual = (model(x) - y).abs().max().item()
""",
    "physics_informed": """
class PINN(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(),
                                 nn.Linear(20, 1))

    def forward(self, t):
        return self.net(t)

def derivative(y, t):
    return torch.autograd.grad(y, t, torch.ones_like(y), create_graph=True)[0]

model = PINN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
t0 = torch.zeros(1, 1, requires_grad=True)
for step in range(8):
    optimizer.zero_grad()
    t = torch.rand(40, 1, requires_grad=True)
    u = model(t)
    du = derivative(u, t)
    residual = (derivative(du, t) + 4 * du + 100 * u).pow(2).mean()
    u0 = model(t0)
    start = (u0 - 1).pow(2).mean() + 0.1 * derivative(u0, t0).pow(2).mean()
    loss = start + 1e-4 * residual
    loss.backward()
    optimizer.step()
""",
    "flow": """
class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        s = torch.tanh(s)
        b = b * s.exp() + t
        return torch.cat([b, a] if self.flip else [a, b], 1), s.sum(1)

class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(i % 2) for i in range(4)])
        self.prior = torch.distributions.Normal(0.0, 1.0)

    def log_prob(self, x):
        total = 0
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
        return self.prior.log_prob(x).sum(1) + total

data = torch.randn(200, 2) * torch.tensor([1.0, 0.3]) + torch.tensor([0.5, -0.5])
flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-3)
for step in range(8):
    loss = -flow.log_prob(data[torch.randint(0, 200, (64,))]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "denoising_diffusion": """
steps = 50
beta = torch.linspace(1e-4, 0.02, steps)
alpha_bar = torch.cumprod(1 - beta, 0)

class Noise(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(steps, 16)
        self.fc1, self.fc2, self.fc3 = nn.Linear(2, 16), nn.Linear(16, 32), nn.Linear(32, 2)

    def forward(self, x, t):
        h = F.silu(self.fc1(x) + self.time(t))
        return self.fc3(F.silu(self.fc2(h)))

model = Noise()
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = torch.randn(256, 2)
for step in range(8):
    x0 = data[torch.randint(0, 256, (64,))]
    t = torch.randint(0, steps, (64,))
    noise = torch.randn_like(x0)
    a = alpha_bar[t].unsqueeze(1)
    loss = F.mse_loss(model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for e, p in zip(average.parameters(), model.parameters()):
            e.lerp_(p, 0.01)
average.eval()
with torch.no_grad():
    x = torch.randn(16, 2)
    for i in reversed(range(steps)):
        t = torch.full((16,), i)
        eps = average(x, t)
        x = (x - beta[i] / (1 - alpha_bar[i]).sqrt() * eps) / (1 - beta[i]).sqrt()
        x = x + (beta[i].sqrt() * torch.randn_like(x) if i else 0)
""",
    "distillation_with_temperature": """
teacher = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 4))
student = nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 4))
teacher.eval()
x = torch.randn(120, 10)
y = x[:, :4].argmax(1)
optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
kl = nn.KLDivLoss(reduction="batchmean")
T, alpha = 3.0, 0.5
for epoch in range(3):
    student.train()
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True):
        with torch.no_grad():
            teacher_logits = teacher(xb)
        logits = student(xb)
        soft = kl(F.log_softmax(logits / T, dim=1), F.softmax(teacher_logits / T, dim=1)) * T * T
        loss = alpha * soft + (1 - alpha) * F.cross_entropy(logits, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    "mixed_up": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        return self.fc(F.adaptive_avg_pool2d(F.relu(self.bn(self.conv(x))), 1).flatten(1))

def mixup(x, y, alpha=0.4):
    lam = np.random.beta(alpha, alpha)
    index = torch.randperm(len(x))
    return lam * x + (1 - lam) * x[index], y, y[index], lam

images, labels = torch.randn(90, 3, 6, 6), torch.randint(0, 5, (90,))
model, criterion = Net(), nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 1.0, 0.5, 1.0]))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
loader = DataLoader(TensorDataset(images, labels), batch_size=30, shuffle=True)
for epoch in range(3):
    for i, (x, y) in enumerate(loader):
        mixed, ya, yb, lam = mixup(x, y)
        out = model(mixed)
        loss = lam * criterion(out, ya) + (1 - lam) * criterion(out, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step(epoch + i / len(loader))
""",
    "weights_of_tasks": """
class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.price, self.kind = nn.Linear(32, 1), nn.Linear(32, 3)
        self.log_vars = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.trunk(x)
        return self.price(h), self.kind(h)

x = torch.randn(120, 8)
price, kind = x[:, :1] * 2 - x[:, 1:2], x[:, 2:5].argmax(1)
model = MultiTask()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(3):
    for rows in torch.randperm(120).split(40):
        p, k = model(x[rows])
        losses = torch.stack([F.mse_loss(p, price[rows]), F.cross_entropy(k, kind[rows])])
        loss = (torch.exp(-model.log_vars) * losses + model.log_vars).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    "accumulated_with_a_rest": """
x = torch.randn(110, 6)
y = x[:, :3].argmax(1)
model = nn.Sequential(nn.Linear(6, 24), nn.LayerNorm(24), nn.GELU(), nn.Linear(24, 3))
loader = DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
accumulate = 4
for epoch in range(2):
    model.train()
    running = 0.0
    for i, (inputs, targets) in enumerate(loader):
        loss = F.cross_entropy(model(inputs), targets) / accumulate
        loss.backward()
        running += loss.item() * accumulate
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
""",
    "early_stopping": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, 32), nn.BatchNorm1d(32), nn.ReLU(),
                                    nn.Dropout(0.2), nn.Linear(32, 1))

    def forward(self, x):
        return self.layers(x)

x = torch.randn(160, 5)
y = x[:, :1].sin() + x[:, 1:2]
train_set, valid_set = random_split(TensorDataset(x, y), [0.8, 0.2])
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
best, best_state, patience = float("inf"), None, 3
for epoch in range(5):
    model.train()
    for xb, yb in DataLoader(train_set, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        scores = [F.mse_loss(model(xb), yb).item() for xb, yb in DataLoader(valid_set, 32)]
    score = sum(scores) / len(scores)
    plateau.step(score)
    if score < best:
        best, best_state, patience = score, copy.deepcopy(model.state_dict()), 3
    else:
        patience -= 1
        if patience == 0:
            break
model.load_state_dict(best_state)
""",
    "unfrozen_later": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 24), nn.BatchNorm1d(24), nn.ReLU())
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        return self.head(self.backbone(x))

x = torch.randn(128, 8)
y = x[:, :3].argmax(1)
model = Net()
for p in model.backbone.parameters():
    p.requires_grad = False
optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-3)
for epoch in range(4):
    if epoch == 2:
        for p in model.backbone.parameters():
            p.requires_grad = True
        optimizer.add_param_group({"params": model.backbone.parameters(), "lr": 1e-4})
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        optimizer.zero_grad()
        F.cross_entropy(model(xb), yb).backward()
        optimizer.step()
""",
    "rare_classes_drawn_more": """
from clew.utils.data import WeightedRandomSampler

x = torch.cat([torch.randn(100, 4), torch.randn(12, 4) + 2])
y = torch.cat([torch.zeros(100), torch.ones(12)]).long()
weights = (1.0 / torch.bincount(y).float())[y]
sampler = WeightedRandomSampler(weights.tolist(), num_samples=112, replacement=True)
loader = DataLoader(TensorDataset(x, y), batch_size=28, sampler=sampler)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    hits = 0
    for xb, yb in loader:
        logits = model(xb)
        loss = criterion(logits, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits += int((logits.argmax(1) == yb).sum())
    accuracy = hits / 112
""",
    "graph_network_full_batch": """
class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(12, 16), nn.Linear(16, 3)

    def forward(self, x, adjacency):
        x = F.relu(adjacency @ self.lin1(x))
        x = F.dropout(x, 0.5, training=self.training)
        return adjacency @ self.lin2(x)

nodes = 60
edges = (torch.rand(nodes, nodes) < 0.06).float()
a = ((edges + edges.T) > 0).float() + torch.eye(nodes)
d = a.sum(1).rsqrt()
adjacency = d[:, None] * a * d[None]
x, y = torch.randn(nodes, 12), torch.arange(nodes) // 20
order = torch.randperm(nodes)
train, val, test = order[:30], order[30:45], order[45:]
model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(10):
    model.train()
    optimizer.zero_grad()
    out = model(x, adjacency)
    loss = F.cross_entropy(out[train], y[train])
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        pred = model(x, adjacency).argmax(1)
        scores = [(pred[part] == y[part]).float().mean().item() for part in (train, val, test)]
""",
    "quantiles": """
class QuantileNet(nn.Module):
    def __init__(self, quantiles):
        super().__init__()
        self.register_buffer("quantiles", torch.tensor(quantiles))
        self.net = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, len(quantiles)))

    def forward(self, x):
        return self.net(x)

    def loss(self, prediction, target):
        error = target - prediction
        return torch.maximum(self.quantiles * error, (self.quantiles - 1) * error).mean()

x = torch.randn(150, 3)
y = x[:, :1] + 0.3 * torch.randn(150, 1)
model = QuantileNet([0.1, 0.5, 0.9])
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(3):
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True):
        loss = model.loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    "counts_and_variances": """
class Rates(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 16), nn.Softplus())
        self.rate, self.mean, self.var = nn.Linear(16, 1), nn.Linear(16, 1), nn.Linear(16, 1)

    def forward(self, x):
        h = self.body(x)
        return self.rate(h), self.mean(h), F.softplus(self.var(h)) + 1e-6

x = torch.randn(90, 4)
counts = torch.poisson(x[:, :1].exp())
amount = x[:, 1:2] + 0.2 * torch.randn(90, 1)
model = Rates()
poisson, gaussian = nn.PoissonNLLLoss(log_input=True), nn.GaussianNLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(9):
    rows = torch.randint(0, 90, (30,))
    rate, mean, var = model(x[rows])
    loss = poisson(rate, counts[rows]) + gaussian(mean, amount[rows], var)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "style_of_a_picture": """
class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        a = F.relu(self.conv1(x))
        return a, F.relu(self.conv2(F.avg_pool2d(a, 2)))

def gram(f):
    f = f.flatten(2)
    return f @ f.transpose(1, 2) / f[0].numel()

net = Features().eval()
for p in net.parameters():
    p.requires_grad_(False)
content, style = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16)
wanted, grams = net(content)[1], [gram(f) for f in net(style)]
image = content.clone().requires_grad_(True)
optimizer = torch.optim.LBFGS([image], max_iter=4)
for step in range(4):
    def closure():
        with torch.no_grad():
            image.clamp_(0, 1)
        optimizer.zero_grad()
        feats = net(image)
        loss = F.mse_loss(feats[1], wanted)
        loss = loss + 1e3 * sum(F.mse_loss(gram(f), g) for f, g in zip(feats, grams))
        loss.backward()
        return loss
    optimizer.step(closure)
""",
    "sharpness_aware": """
class SAM:
    def __init__(self, params, base, rho=0.05, **kwargs):
        self.params = list(params)
        self.base, self.rho = base(self.params, **kwargs), rho

    @torch.no_grad()
    def ascend(self):
        norm = torch.stack([p.grad.norm() for p in self.params]).norm() + 1e-12
        self.moves = [p.grad * (self.rho / norm) for p in self.params]
        for p, e in zip(self.params, self.moves):
            p.add_(e)
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self):
        for p, e in zip(self.params, self.moves):
            p.sub_(e)
        self.base.step()
        self.base.zero_grad()

x = torch.randn(120, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.05, momentum=0.9)
for epoch in range(3):
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True):
        F.cross_entropy(model(xb), yb).backward()
        optimizer.ascend()
        F.cross_entropy(model(xb), yb).backward()
        optimizer.descend()
""",
    "own_optimizer": """
class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["m"] = torch.zeros_like(p)
                m = state["m"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_((m * b1 + p.grad * (1 - b1)).sign(), alpha=-group["lr"])
                m.mul_(b2).add_(p.grad, alpha=1 - b2)

x = torch.randn(100, 5)
y = x.pow(2).sum(1, keepdim=True).sqrt()
model = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = Lion(model.parameters(), lr=1e-3, weight_decay=0.01)
for step in range(12):
    rows = torch.randint(0, 100, (25,))
    optimizer.zero_grad()
    F.l1_loss(model(x[rows]), y[rows]).backward()
    optimizer.step()
""",
    "reptile": """
def task():
    phase, height = torch.rand(1) * 3, 1 + torch.rand(1)
    x = torch.rand(20, 1) * 6 - 3
    return x, height * torch.sin(x + phase)

model = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
meta_lr = 0.1
for iteration in range(4):
    before = {name: p.clone() for name, p in model.state_dict().items()}
    x, y = task()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for inner in range(4):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    after = model.state_dict()
    model.load_state_dict(
        {name: before[name] + meta_lr * (after[name] - before[name]) for name in before}
    )
""",
    "translation_with_padding": """
PAD, BOS = 0, 1
class Seq2Seq(nn.Module):
    def __init__(self, vocab=20, dim=16):
        super().__init__()
        self.src, self.tgt = nn.Embedding(vocab, dim, padding_idx=PAD), nn.Embedding(vocab, dim)
        self.encoder, self.decoder = nn.GRU(dim, dim, batch_first=True), nn.GRUCell(dim, dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, source, target, forcing=0.5):
        _, h = self.encoder(self.src(source))
        h, word, outputs = h[0], target[:, 0], []
        for t in range(1, target.shape[1]):
            h = self.decoder(self.tgt(word), h)
            scores = self.out(h)
            outputs.append(scores)
            word = target[:, t] if random.random() < forcing else scores.argmax(1)
        return torch.stack(outputs, 1)

source = torch.randint(2, 20, (60, 6))
source[:, 4:] = torch.where(torch.rand(60, 2) < 0.5, source[:, 4:], PAD)
target = torch.cat([torch.full((60, 1), BOS), source], 1)
model, criterion = Seq2Seq(), nn.CrossEntropyLoss(ignore_index=PAD)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(3):
    for s, t in DataLoader(TensorDataset(source, target), batch_size=20, shuffle=True):
        out = model(s, t)
        loss = criterion(out.flatten(0, 1), t[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
""",
    **MORE_CLEAN,
}
