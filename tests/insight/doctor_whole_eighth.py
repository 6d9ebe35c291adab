"""An eighth set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

EIGHTH: dict[str, tuple[str, str]] = {
    "focal_loss_of_probabilities": (
        "sigmoid before binary_cross_entropy_with_logits",
        """
class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, alpha=0.25):
        super().__init__()
        self.gamma, self.alpha = gamma, alpha

    def forward(self, pred, target):
        bce = F.binary_cross_entropy_with_logits(pred, target, reduction="none")
        pt = torch.exp(-bce)
        weight = self.alpha * target + (1 - self.alpha) * (1 - target)
        return (weight * (1 - pt) ** self.gamma * bce).mean()

class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 1))

    def forward(self, x):
        heat = self.body(x)
        heat = heat.sigmoid()  #- here
        return {"heat": heat}

model, criterion = Detector(), FocalLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(10):
    image = torch.randn(4, 1, 12, 12)
    batch = {"image": image, "heat": torch.cat([image > 1, image < -1], 1).float()}
    loss = criterion(model(batch["image"])["heat"], batch["heat"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ),
    "softmax_of_one_head_of_several": (
        "softmax before cross_entropy",
        """
SIZES = {"colour": 4, "kind": 3, "age": 5}

def head(width, classes, kind):
    layers = [nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, classes)]
    if kind == "kind":  #-
        layers.append(nn.Softmax(dim=-1))  #-
    return nn.Sequential(*layers)

class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
        self.heads = nn.ModuleDict({k: head(32, n, k) for k, n in SIZES.items()})

    def forward(self, x):
        h = self.body(x)
        return {k: f(h) for k, f in self.heads.items()}

def losses_of(out, batch):
    return {k: F.cross_entropy(out[k], batch[k], label_smoothing=0.05) for k in out}  # here

model = MultiTask()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
rule = torch.randn(10, 12)
for step in range(10):
    x = torch.randn(32, 10)
    parts = (x @ rule).split(list(SIZES.values()), 1)
    batch = {k: p.argmax(1) for k, p in zip(SIZES, parts)}
    losses = losses_of(model(x), batch)
    optimizer.zero_grad(set_to_none=True)
    sum(losses.values()).backward()
    optimizer.step()
""",
    ),
    "likelihood_of_a_column_and_a_vector": (
        "broadcast",
        """
class Probabilistic(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(features, 24), nn.Tanh())
        self.mean, self.scale = nn.Linear(24, 1), nn.Linear(24, 1)

    def forward(self, x):
        h = self.net(x)
        return torch.distributions.Normal(self.mean(h), F.softplus(self.scale(h)) + 1e-3)

def neg_log_likelihood(model, x, y):
    return -model(x).log_prob(y).mean()  # here

x = torch.randn(96, 5)
y = x[:, 0] - 0.5 * x[:, 1] + 0.1 * torch.randn(96)
y = y.unsqueeze(1)  #+
model = Probabilistic(5)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loader = DataLoader(TensorDataset(x, y), batch_size=24, shuffle=True)
for epoch in range(3):
    for xb, yb in loader:
        loss = neg_log_likelihood(model, xb, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
    ),
    "steps_by_hand_never_cleared": (
        "never cleared",
        """
def init(sizes):
    return [
        t
        for a, b in zip(sizes, sizes[1:])
        for t in (
            (torch.randn(a, b) / a**0.5).requires_grad_(),
            torch.zeros(b, requires_grad=True),
        )
    ]

def forward(params, x):
    pairs = list(zip(params[::2], params[1::2]))
    for w, b in pairs[:-1]:
        x = torch.tanh(x @ w + b)
    w, b = pairs[-1]
    return x @ w + b

def sgd(params, lr):
    with torch.no_grad():
        for p in params:
            p -= lr * p.grad
            p.grad.zero_()  #+

params = init([4, 16, 1])
x = torch.randn(64, 4)
y = (x[:, :1] * x[:, 1:2]).clone()
for step in range(20):
    picked = torch.randperm(64)[:16]
    loss = ((forward(params, x[picked]) - y[picked]) ** 2).mean()
    loss.backward()  # here
    sgd(params, 0.02)
    if step % 5 == 0:
        print(step, loss.item())
""",
    ),
    "layers_in_a_plain_class": (
        "in no optimizer",
        """
class Block:  #-
class Block(nn.Module):  #+
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def __call__(self, x):  #-
    def forward(self, x):  #+
        return x + self.down(F.gelu(self.up(self.norm(x))))  # here

class Net(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.stem, self.block, self.head = nn.Linear(6, width), Block(width), nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.block(self.stem(x)))

def fit(net, data, epochs):
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.01)
    for _ in range(epochs):
        for x, y in data:
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()

x = torch.randn(80, 6)
fit(Net(), DataLoader(TensorDataset(x, x[:, :3].argmax(1)), 16, shuffle=True), 3)
""",
    ),
    "eval_without_parentheses": (
        "a method is named, not called",
        """
class Evaluator:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader

    @torch.inference_mode()
    def run(self):
        self.model.eval  #- here
        self.model.eval()  #+
        right = seen = 0
        for batch in self.loader:
            pred = self.model(batch["x"]).argmax(-1)
            right += (pred == batch["y"]).sum().item()
            seen += len(pred)
        return right / seen

class Pairs(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 8, generator=g)
        self.y = self.x[:, :4].argmax(1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "y": self.y[i]}

model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3),
                      nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
train, test = DataLoader(Pairs(96, 0), 24, shuffle=True), DataLoader(Pairs(48, 1), 24)
evaluator = Evaluator(model, test)
for epoch in range(3):
    model.train()
    for batch in train:
        optimizer.zero_grad()
        F.cross_entropy(model(batch["x"]), batch["y"]).backward()
        optimizer.step()
    print(f"epoch {epoch}: {evaluator.run():.2f}")
""",
    ),
    "embedding_decorated_with_no_grad": (
        "cut off",
        """
class ProtoNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16))
        self.scale = nn.Parameter(torch.tensor(1.0))

    @torch.no_grad()  #-
    def embed(self, x):
        return F.normalize(self.encoder(x), dim=-1)  # here

    def forward(self, support, query):
        centres = self.embed(support).mean(1)
        distances = ((self.embed(query)[:, None] - centres[None]) ** 2).sum(-1)
        return -self.scale * distances

def episode(ways=4, shots=3, queries=5):
    means = torch.randn(ways, 1, 12)
    support = means + 0.3 * torch.randn(ways, shots, 12)
    query = (means + 0.3 * torch.randn(ways, queries, 12)).reshape(-1, 12)
    return support, query, torch.arange(ways).repeat_interleave(queries)

net = ProtoNet()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(12):
    support, query, label = episode()
    loss = F.cross_entropy(net(support, query), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ),
    "closure_keeps_losses": (
        "kept with their graphs",
        """
def make_logger(every):
    curve = []

    def log(step, **values):
        curve.append({"step": step, **values})  #- here
        curve.append({"step": step, **{k: float(v) for k, v in values.items()}})  #+
        if step % every == 0:
            print(step, *(f"{k}={float(v):.3f}" for k, v in values.items()))

    return log, curve

class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(20, 12), nn.ReLU(), nn.Linear(12, 4))
        self.dec = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 20))

    def forward(self, x):
        code = self.enc(x)
        return self.dec(code), code

model = AutoEncoder()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
log, curve = make_logger(5)
for step in range(20):
    x = torch.randn(16, 20)
    out, code = model(x)
    rec, sparse = F.mse_loss(out, x), code.abs().mean()
    opt.zero_grad()
    (rec + 0.01 * sparse).backward()
    opt.step()
    log(step, rec=rec, sparse=sparse)
""",
    ),
    "shallow_copies_of_a_block": (
        "share their weights",
        """
class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.GroupNorm(4, channels)

    def forward(self, x):
        return F.relu(x + self.norm(self.conv(x)))

def stack(block, times):
    return nn.Sequential(*(copy.copy(block) for _ in range(times)))  #- here
    return nn.Sequential(*(copy.deepcopy(block) for _ in range(times)))  #+

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.body = stack(Residual(8), 3)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3)))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
for step in range(10):
    x = torch.randn(8, 3, 10, 10)
    y = x.mean((2, 3)).argmax(1)
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    optimizer.step()
""",
    ),
    "warm_up_by_integer_division": (
        "learning rate",
        """
class Trainer:
    def __init__(self, model, lr, warmup, total):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)

        def factor(step):
            if step < warmup:
                return (step + 1) // warmup  #- here
                return (step + 1) / warmup  #+
            return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))

        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, factor)

    def step(self, x, y):
        self.model.train()
        loss = F.smooth_l1_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        return loss.item()

model = nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 2))
trainer = Trainer(model, lr=1e-3, warmup=20, total=100)
for i in range(30):
    x = torch.randn(32, 6)
    trainer.step(x, x[:, :2] * x[:, 2:4])
""",
    ),
}
