"""An eleventh set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

from doctor_whole_twelfth import TWELFTH

ELEVENTH: dict[str, tuple[str, str]] = {
    "schedule_of_an_optimizer_that_was_replaced": (
        "schedule",
        """
def make(net, lr):
    return torch.optim.AdamW(net.parameters(), lr=lr)

net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = make(net, 1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)
optimizer = make(net, 3e-3)  #-
for step in range(16):
    x = torch.randn(32, 5)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()  # here
""",
    ),
    "dropout_in_the_functional_form": (
        "evaluated in training mode",
        """
class Mixer(nn.Module):
    def __init__(self, tokens=6, width=8):
        super().__init__()
        self.t, self.c = nn.Linear(tokens, tokens), nn.Linear(width, width)
        self.out = nn.Linear(width, 3)

    def forward(self, x):
        x = x + F.gelu(self.t(x.transpose(1, 2))).transpose(1, 2)
        x = F.dropout(x + F.gelu(self.c(x)), p=0.3)  #- here
        x = F.dropout(x + F.gelu(self.c(x)), p=0.3, training=self.training)  #+
        return self.out(x.mean(1))

def accuracy(net, data):
    net.eval()
    with torch.no_grad():
        hits = [(net(x).argmax(1) == y).float().mean() for x, y in data]
    net.train()
    return float(sum(hits) / len(hits))

def make(n):
    x = torch.randn(n, 6, 8)
    return [(a, a[:, 0, :3].argmax(1)) for a in x.split(16)]

net, train, valid = Mixer(), make(96), make(48)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(3):
    for x, y in train:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    print(accuracy(net, valid))
""",
    ),
    "encoder_in_a_lambda": (
        "in no optimizer",
        """
class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        body = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 6))
        self.encode = lambda x: F.normalize(body(x), dim=1)  #- here
        self.body = body  #+
        self.scale = nn.Parameter(torch.ones(1))
        self.encode = lambda x: F.normalize(self.body(x), dim=1)  #+

    def forward(self, a, b):
        return self.scale * (self.encode(a) * self.encode(b)).sum(1)

net = Siamese()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(10):
    a = torch.randn(32, 8)
    same = torch.rand(32) < 0.5
    b = torch.where(same[:, None], a + 0.1 * torch.randn(32, 8), torch.randn(32, 8))
    optimizer.zero_grad()
    F.binary_cross_entropy_with_logits(net(a, b), same.float()).backward()
    optimizer.step()
""",
    ),
    "targets_by_integer_division": (
        "integer division",
        """
class Ratings(Dataset):
    def __init__(self, n):
        self.user, self.item = torch.randint(0, 20, (n,)), torch.randint(0, 30, (n,))
        stars = (self.user + self.item) % 5
        self.rating = stars // 5  #- here
        self.rating = stars / 5  #+

    def __len__(self):
        return len(self.user)

    def __getitem__(self, i):
        return {"user": self.user[i], "item": self.item[i], "rating": self.rating[i].float()}

class Factors(nn.Module):
    def __init__(self, size=8):
        super().__init__()
        self.user, self.item = nn.Embedding(20, size), nn.Embedding(30, size)

    def forward(self, batch):
        return (self.user(batch["user"]) * self.item(batch["item"])).sum(1)

model = Factors()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    for batch in DataLoader(Ratings(120), 24, shuffle=True):
        loss = F.mse_loss(model(batch), batch["rating"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    ),
    "quantile_loss_of_a_column": (
        "broadcast",
        """
class Quantile(nn.Module):
    def __init__(self, q):
        super().__init__()
        self.q = q

    def forward(self, pred, target):
        e = target - pred  # here
        return torch.maximum(self.q * e, (self.q - 1) * e).mean()

class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 24), nn.Linear(24, 24), nn.Linear(24, 1)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.elu(layer(x))
        x = self.layers[-1](x)
        return x  #-
        return x[:, 0]  #+

model, criterion = Regressor(), Quantile(0.9)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
table = torch.randn(128, 5)
for epoch in range(3):
    for rows in table[torch.randperm(128)].split(32):
        loss = criterion(model(rows[:, :4]), rows[:, 4])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    ),
    "policy_keeps_its_log_probabilities": (
        "kept with their graphs",
        """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
        self.history = {"loss": deque(maxlen=500)}

    def act(self, s):
        dist = torch.distributions.Categorical(logits=self.net(s))
        a = dist.sample()
        return a, dist.log_prob(a)

policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=2e-3)
for episode in range(14):
    s = torch.randn(20, 4)
    a, log_prob = policy.act(s)
    reward = torch.where(a == (s[:, 0] > 0).long(), 1.0, -1.0)
    returns = (reward - reward.mean()) / (reward.std() + 1e-6)
    loss = -(log_prob * returns).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    policy.history["loss"].append(loss)  #- here
    policy.history["loss"].append(loss.item())  #+
""",
    ),
    "stop_gradient_around_the_student": (
        "cut off",
        """
class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(10, 16), nn.Linear(16, 16)

    def forward(self, x):
        return self.head(F.relu(self.body(x)))  # here

teacher = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16)).eval()
student, probe = Student(), nn.Linear(16, 3)
optimizer = torch.optim.Adam([*student.parameters(), *probe.parameters()], lr=1e-3)
for step in range(12):
    x = torch.randn(32, 10)
    with torch.no_grad():
        goal = teacher(x)
        z = student(x)  #-
    z = student(x)  #+
    match = 1 - F.cosine_similarity(z, goal, dim=1).mean()
    label = F.cross_entropy(probe(z), x[:, :3].argmax(1))
    optimizer.zero_grad()
    (match + label).backward()
    optimizer.step()
""",
    ),
    "mean_of_a_sum_over_accumulated_parts": (
        "without dividing",
        """
class Trainer:
    def __init__(self, model, accumulate):
        self.model, self.accumulate = model, accumulate
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
        self.calls = 0

    def __call__(self, batch):
        out = self.model(**batch["inputs"])
        loss = F.huber_loss(out, batch["target"])
        loss.backward()  #- here
        (loss / self.accumulate).backward()  #+
        self.calls += 1
        if self.calls % self.accumulate == 0:
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

class Bilinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Bilinear(4, 5, 2)

    def forward(self, left, right):
        return self.f(left, right)

trainer = Trainer(Bilinear(), accumulate=4)
for step in range(24):
    left, right = torch.randn(8, 4), torch.randn(8, 5)
    trainer({"inputs": {"left": left, "right": right}, "target": left[:, :2] * right[:, :2]})
""",
    ),
    "clipped_after_the_closure_steps": (
        "clipped where it has no effect",
        """
class Hooked(torch.optim.SGD):
    def minimise(self, loss, bound):
        self.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.param_groups[0]["params"], bound)  #+
        self.step()
        nn.utils.clip_grad_value_(self.param_groups[0]["params"], bound)  #- here

net = nn.Sequential(nn.Linear(3, 32), nn.Softplus(), nn.Linear(32, 1))
optimizer = Hooked(net.parameters(), lr=0.002)
for step in range(12):
    x = torch.randn(32, 3)
    optimizer.minimise(F.mse_loss(net(x), x.prod(1, keepdim=True)), 0.5)
""",
    ),
    "weights_tied_by_assignment_of_a_loop": (
        "share their weights",
        """
class Experts(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        expert = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        for i in range(count):
            expert = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))  #+
            setattr(self, f"expert{i}", expert)  # here
        self.count, self.gate = count, nn.Linear(width, count)

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        outs = torch.stack([getattr(self, f"expert{i}")(x) for i in range(self.count)], -1)
        return (outs * weights[:, None]).sum(-1)

model = nn.Sequential(Experts(3, 6), nn.Linear(6, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(10):
    x = torch.randn(24, 6)
    optimizer.zero_grad()
    F.cross_entropy(model(x), (x[:, 0] > x[:, 1]).long()).backward()
    optimizer.step()
""",
    ),
    **TWELFTH,
}
