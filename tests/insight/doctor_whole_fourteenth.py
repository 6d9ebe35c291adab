"""A fourteenth set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

from doctor_whole_fifteenth import FIFTEENTH

FOURTEENTH: dict[str, tuple[str, str]] = {
    "closure_without_zero": (
        "never cleared",
        """
x = torch.linspace(-2, 2, 60).unsqueeze(1)
y = torch.sin(2 * x)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=5)

def closure():
    opt.zero_grad()  #+
    loss = F.mse_loss(net(x), y)
    loss.backward()  # here
    return loss

for _ in range(8):
    opt.step(closure)
""",
    ),
    "batches_used_up": (
        "used up after the first epoch",
        """
x = torch.randn(160, 6)
y = (x[:, 0] > 0).long()
net = nn.Linear(6, 2)
opt = torch.optim.Adam(net.parameters(), 1e-2)
batches = zip(x.split(16), y.split(16))  #- here
batches = list(zip(x.split(16), y.split(16)))  #+
for epoch in range(5):
    for a, b in batches:
        opt.zero_grad()
        loss = F.cross_entropy(net(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
""",
    ),
    "second_layer_forgotten": (
        "called twice, and one like it never",
        """
class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(8, 32)
        self.fc1 = nn.Linear(32, 32)
        self.fc2 = nn.Linear(32, 32)
        self.out = nn.Linear(32, 3)

    def forward(self, x):
        x = F.relu(self.inp(x))
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc1(x))  #- here
        x = F.relu(self.fc2(x))  #+
        return self.out(x)

net = MLP()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(10):
    x = torch.randn(32, 8)
    opt.zero_grad()
    F.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    opt.step()
""",
    ),
    "weights_without_grad": (
        "requires no grad",
        """
W1 = torch.randn(6, 16) * 0.3
W2 = torch.randn(16, 2) * 0.3  #-
W2 = (torch.randn(16, 2) * 0.3).requires_grad_()  #+
W1.requires_grad_()
opt = torch.optim.SGD([W1, W2], lr=0.1)  # here
for _ in range(10):
    x = torch.randn(32, 6)
    loss = F.cross_entropy(torch.relu(x @ W1) @ W2, (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "accuracy_with_column": (
        "broadcast against each other",
        """
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
bce = nn.BCEWithLogitsLoss(reduction="none")
for _ in range(8):
    x = torch.randn(32, 6)
    y = (x[:, 0] > 0).float()
    out = net(x)
    weight = torch.where(y > 0, 2.0, 1.0)
    weight = weight[:, None]  #+
    loss = (weight * bce(out, y[:, None])).mean()  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "trainer_softmax": (
        "softmax before cross_entropy",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        return torch.softmax(self.body(x), dim=-1)  #- here
        return self.body(x)  #+

class Trainer:
    def __init__(self, net):
        self.net, self.loss = net, nn.CrossEntropyLoss(label_smoothing=0.05)
        self.opt = torch.optim.AdamW(net.parameters(), 1e-3)

    def step(self, x, y):
        loss = self.loss(self.net(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

t = Trainer(Net())
for _ in range(8):
    x = torch.randn(32, 8)
    t.step(x, x[:, :4].argmax(1))
""",
    ),
    "wrong_optimizer_steps": (
        "never steps",
        """
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
g_optim = torch.optim.Adam(G.parameters(), 1e-3)  # here
d_optim = torch.optim.Adam(D.parameters(), 1e-3)
for step in range(12):
    real, z = torch.randn(32, 2) + 2, torch.randn(32, 4)
    d_optim.zero_grad()
    d_loss = F.softplus(-D(real)).mean() + F.softplus(D(G(z).detach())).mean()
    d_loss.backward()
    d_optim.step()
    g_optim.zero_grad()
    g_loss = F.softplus(-D(G(z))).mean()
    g_loss.backward()
    d_optim.step()  #-
    g_optim.step()  #+
""",
    ),
    "unfrozen_too_late": (
        "in no optimizer",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        return self.head(self.body(x))

def loop(n):
    for _ in range(n):
        x = torch.randn(32, 8)
        opt.zero_grad()
        F.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
        opt.step()

net = Net()
for p in net.body.parameters():
    p.requires_grad = False
opt = torch.optim.Adam(filter(lambda p: p.requires_grad, net.parameters()), lr=1e-3)  # here
loop(5)
for p in net.body.parameters():
    p.requires_grad = True
opt.add_param_group({"params": list(net.body.parameters()), "lr": 1e-4})  #+
loop(8)
""",
    ),
    "scaler_and_optimizer_step": (
        "steps twice",
        """
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(10):
    x = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(net(x).float(), x[:, :3].argmax(1))
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    opt.step()  #- here
""",
    ),
    "backward_twice_the_same": (
        "backward runs twice",
        """
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for _ in range(10):
    x = torch.randn(32, 8)
    loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward(retain_graph=True)  #-
    loss.backward()  # here
    opt.step()
""",
    ),
    "rate_set_as_attribute": (
        "attribute of an optimizer",
        """
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(4):
    if epoch == 2:
        opt.lr = 0.005  #- here
        for g in opt.param_groups:  #+
            g["lr"] = 0.005  #+
    for _ in range(4):
        x = torch.randn(32, 8)
        loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ),
    "compared_not_set": (
        "compared where it was to be set",
        """
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
for p in net[0].parameters():
    p.requires_grad == False  #- here
    p.requires_grad = False  #+
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for _ in range(8):
    x = torch.randn(32, 8)
    loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "no_whole_batch": (
        "gives no batches",
        """
x = torch.randn(50, 6)
y = (x[:, 0] > 0).long()
net = nn.Linear(6, 2)
opt = torch.optim.Adam(net.parameters(), 1e-2)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)  #- here
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True, drop_last=True)  #+
for epoch in range(3):
    for a, b in loader:
        opt.zero_grad()
        F.cross_entropy(net(a), b).backward()
        opt.step()
""",
    ),
    "step_not_called": (
        "named, not called",
        """
net = nn.Linear(6, 2)
opt = torch.optim.Adam(net.parameters(), 1e-2)
sched = torch.optim.lr_scheduler.StepLR(opt, 4)
for epoch in range(10):
    x = torch.randn(32, 6)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
    opt.step()
    sched.step  #- here
    sched.step()  #+
""",
    ),
    "annealed_by_whole_numbers": (
        "integer division",
        """
class VAE(nn.Module):
    def __init__(self, d=20, z=3):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Linear(32, 2 * z))
        self.dec = nn.Sequential(nn.Linear(z, 32), nn.ReLU(), nn.Linear(32, d))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar

vae = VAE()
opt = torch.optim.Adam(vae.parameters(), lr=1e-3)
WARMUP = 20
for step in range(18):
    x = torch.randn(32, 20)
    recon, mu, logvar = vae(x)
    beta = min(1, step // WARMUP)  #- here
    beta = min(1.0, step / WARMUP)  #+
    kl = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum(1).mean()
    loss = (recon - x).pow(2).sum(1).mean() + beta * kl
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "statistics_keep_losses": (
        "kept with their graphs",
        """
class Meter:
    def __init__(self):
        self.values = {}

    def update(self, **kw):
        for k, v in kw.items():
            self.values.setdefault(k, []).append(v)  #- here
            self.values.setdefault(k, []).append(float(v))  #+

meter = Meter()
gen = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 6))
opt = torch.optim.Adam(gen.parameters(), lr=1e-3)
for i in range(12):
    x = torch.randn(32, 6)
    out = gen(x)
    rec = F.l1_loss(out, x)
    reg = out.pow(2).mean()
    loss = rec + 0.01 * reg
    opt.zero_grad()
    loss.backward()
    opt.step()
    meter.update(loss=loss, rec=rec, reg=reg)
""",
    ),
    "cleared_in_a_helper": (
        "between backward and step",
        """
class Trainer:
    def __init__(self, model, lr=1e-3):
        self.model = model
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr)
        self.grad_norms = []

    def log_gradients(self):
        total = sum(p.grad.norm() ** 2 for p in self.model.parameters()) ** 0.5
        self.grad_norms.append(total.item())
        self.model.zero_grad()  #- here

    def train_step(self, x, y):
        self.opt.zero_grad()  #+
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.log_gradients()
        self.opt.step()
        return loss.item()

pool = nn.AdaptiveAvgPool1d(4)
model = nn.Sequential(nn.Conv1d(1, 8, 5), nn.ReLU(), pool, nn.Flatten(), nn.Linear(32, 3))
trainer = Trainer(model)
for i in range(10):
    y = torch.randint(0, 3, (16,))
    x = torch.randn(16, 1, 30) + y.view(-1, 1, 1)
    trainer.train_step(x, y)
""",
    ),
    **FIFTEENTH,
}
