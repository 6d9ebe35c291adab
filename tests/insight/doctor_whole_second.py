"""A second set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

SECOND: dict[str, tuple[str, str]] = {
    "ce_of_sigmoid_outputs": (
        "softmax before cross_entropy",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(10, 32), nn.Linear(32, 5)
    def forward(self, x):
        return torch.sigmoid(self.b(F.relu(self.a(x))))  #- here
        return self.b(F.relu(self.a(x)))  #+
model, ce = Net(), nn.CrossEntropyLoss()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
x = torch.randn(128, 10)
y = x[:, :5].argmax(1)
for epoch in range(3):
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        loss = ce(model(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ),
    "mae_by_hand_in_validation_and_training": (
        "broadcast",
        """
model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
x = torch.randn(90, 3)
y = x.sum(dim=1)  #-
y = x.sum(dim=1, keepdim=True)  #+
def mae(pred, true):
    return (pred - true).abs().mean()  # here
for epoch in range(4):
    for rows in torch.randperm(90).split(30):
        loss = mae(model(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ),
    "grad_accumulates_in_closure_free_adam": (
        "never cleared",
        """
class Learner:
    def __init__(self):
        self.net = nn.Linear(5, 2)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)
    def fit(self, x, y):
        for _ in range(12):
            out = self.net(x)
            self.opt.zero_grad()  #+
            loss = F.cross_entropy(out, y)
            loss.backward()  # here
            self.opt.step()
            with torch.no_grad():
                acc = (out.argmax(1) == y).float().mean()
x = torch.randn(50, 5)
Learner().fit(x, (x[:, 0] > 0).long())
""",
    ),
    "parameter_list_in_tuple": (
        "plain",
        """
class Poly(nn.Module):
    def __init__(self):
        super().__init__()
        self.coefs = tuple(nn.Parameter(torch.randn(())) for _ in range(4))  #- here
        self.coefs = nn.ParameterList(torch.randn(()) for _ in range(4))  #+
        self.bias = nn.Parameter(torch.zeros(()))
    def forward(self, x):
        return self.bias + sum(c * x ** (i + 1) for i, c in enumerate(self.coefs))
x = torch.linspace(-1, 1, 50)
y = x.sin()
m = Poly()
opt = torch.optim.SGD(m.parameters(), lr=0.05)
for _ in range(12):
    loss = F.mse_loss(m(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "detach_between_encoder_and_head": (
        "cut off",
        """
class AE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(8, 3), nn.Linear(3, 8)
    def encode(self, x):
        return torch.tanh(self.enc(x)).data  #- here
        return torch.tanh(self.enc(x))  #+
    def forward(self, x):
        return self.dec(self.encode(x))
m = AE()
x = torch.randn(64, 8)
opt = torch.optim.Adam(m.parameters(), lr=1e-3)
for _ in range(10):
    loss = F.mse_loss(m(x), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "argmax_between": (
        "cut off",
        """
class Quant(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(6, 8)
        self.book = nn.Embedding(8, 4)
        self.dec = nn.Linear(4, 6)
    def forward(self, x):
        code = self.enc(x).argmax(dim=1)  #- here
        code = self.enc(x).softmax(1)  #+
        return self.dec(self.book(code))  #-
        return self.dec(code @ self.book.weight)  #+
m = Quant()
x = torch.randn(64, 6)
opt = torch.optim.Adam(m.parameters(), lr=1e-2)
for _ in range(10):
    loss = F.mse_loss(m(x), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "no_grad_around_the_features": (
        "cut off",
        """
backbone, head = nn.Sequential(nn.Linear(6, 16), nn.ReLU()), nn.Linear(16, 2)
opt = torch.optim.Adam([*backbone.parameters(), *head.parameters()], lr=1e-3)
x = torch.randn(80, 6)
y = (x[:, 0] > 0).long()
for _ in range(10):
    rows = torch.randint(0, 80, (20,))
    with torch.no_grad():  #-
    if True:  #+
        features = backbone(x[rows])  # here
    loss = F.cross_entropy(head(features), y[rows])
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "running_loss_attribute": (
        "running total",
        """
class Trainer:
    def __init__(self, net):
        self.net, self.opt, self.running = net, torch.optim.SGD(net.parameters(), lr=0.01), 0
    def step(self, x, y):
        loss = F.mse_loss(self.net(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.running = self.running + loss  #- here
        self.running = self.running + loss.item()  #+
t = Trainer(nn.Linear(3, 1))
for _ in range(12):
    x = torch.randn(10, 3)
    t.step(x, x[:, :1])
""",
    ),
    "best_loss_kept": (
        "kept with their graphs",
        """
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
log = deque(maxlen=50)
for step in range(14):
    x = torch.randn(16, 4)
    pred = net(x)
    loss = F.mse_loss(pred, x[:, :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
    log.append({"step": step, "loss": loss})  #- here
    log.append({"step": step, "loss": loss.item()})  #+
""",
    ),
    "eval_forgotten_at_prediction": (
        "evaluated in training mode",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.5))
        self.head = nn.Linear(32, 2)
    def forward(self, x):
        return self.head(self.body(x))
    def predict(self, x):
        self.eval()  #+
        with torch.inference_mode():
            return self(x).softmax(1)  # here
net = Net()
x = torch.randn(120, 6)
y = (x[:, 0] > 0).long()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(3):
    net.train()  #+
    for rows in torch.randperm(100).split(25):
        loss = F.cross_entropy(net(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    accuracy = (net.predict(x[100:]).argmax(1) == y[100:]).float().mean().item()
""",
    ),
    "pixels_as_they_are": (
        "not normalised",
        """
images = torch.randint(0, 256, (60, 3, 8, 8), dtype=torch.uint8)
labels = torch.randint(0, 3, (60,))
class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 8, 3), nn.Linear(8, 3)
    def forward(self, x):
        x = F.relu(self.conv(x))
        return self.fc(x.mean((2, 3)))
net = CNN()
opt = torch.optim.Adam(net.parameters(), lr=1e-4)
for epoch in range(2):
    for rows in torch.randperm(60).split(15):
        loss = F.cross_entropy(net(images[rows].float()), labels[rows])  #- here
        loss = F.cross_entropy(net(images[rows] / 127.5 - 1), labels[rows])  #+
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ),
    "log_of_probability_zero": (
        "slope is infinite",
        """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.ReLU())  #-
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softplus())  #+
x = torch.randn(64, 4)
y = x[:, :3].argmax(1)
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
for _ in range(6):
    scores = net(x)
    p = scores / (scores.sum(1, keepdim=True) + 1e-6)
    loss = -torch.log(p[torch.arange(64), y]).clamp(min=-20, max=20).mean()  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "warmup_never_called": (
        "schedule never steps",
        """
net = nn.Linear(4, 2)
x = torch.randn(64, 4)
y = (x[:, 0] > 0).long()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
warm = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 50))  # here
for _ in range(20):
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    warm.step()  #+
""",
    ),
    "labels_shifted_by_one_binary": (
        "labels outside",
        """
net = nn.Linear(5, 1)
x = torch.randn(80, 5)
y = torch.where(x[:, 0] > 0, 1.0, -1.0)  #-
y = torch.where(x[:, 0] > 0, 1.0, 0.0)  #+
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(10):
    rows = torch.randint(0, 80, (20,))
    loss = F.binary_cross_entropy_with_logits(net(x[rows]).squeeze(1), y[rows])  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "tanh_on_raw_scale": (
        "saturated",
        """
x = torch.randn(100, 4)
y = x.sum(1, keepdim=True)
net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
with torch.no_grad():
    for p in net[0].parameters():
        p.normal_(0, 50)  #-
        p.normal_(0, 0.5)  #+
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(10):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "same_block_passed_twice": (
        "share their weights",
        """
def make_layers(layer, n):
    return nn.ModuleList([layer for _ in range(n)])  #-
    return nn.ModuleList([copy.deepcopy(layer) for _ in range(n)])  #+
class Enc(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = make_layers(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 3)  # here
        self.out = nn.Linear(8, 2)
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.out(x.mean(1))
net = Enc()
x = torch.randn(32, 5, 8)
y = (x.mean((1, 2)) > 0).long()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(8):
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "double_from_numpy_inputs": (
        "float64",
        """
a = np.random.randn(60, 4)
b = a @ np.array([1.0, 2.0, 0.5, -1.0])
x, y = torch.tensor(a, dtype=torch.float32), torch.tensor(b)  #-
x, y = torch.tensor(a, dtype=torch.float32), torch.tensor(b, dtype=torch.float32)  #+
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(10):
    loss = torch.mean((net(x).squeeze(1) - y) ** 2)  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "two_losses_one_retained": (
        "retain_graph",
        """
net = nn.Linear(4, 3)
x = torch.randn(50, 4)
y = x[:, :3].argmax(1)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for _ in range(10):
    out = net(x)
    loss = F.cross_entropy(out, y) + 1e-3 * sum(p.pow(2).sum() for p in net.parameters())
    opt.zero_grad()
    loss.backward(retain_graph=True)  #- here
    loss.backward()  #+
    opt.step()
""",
    ),
}
