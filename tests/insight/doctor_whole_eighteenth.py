"""An eighteenth set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

EIGHTEENTH: dict[str, tuple[str, str]] = {
    "rate_given_to_a_function_that_makes_the_optimizer": (
        "learning rate does not fit",
        """
def optimizer_for(net, rate):
    biases = [p for p in net.parameters() if p.dim() < 2]
    groups = [{"params": [p for p in net.parameters() if p.dim() > 1]}, {"params": biases}]
    return torch.optim.Adam(groups, lr=rate)  # here

x = torch.randn(120, 6)
y = x[:, :2].prod(1, keepdim=True)
net = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
rate = 0.6  #-
rate = 6e-3  #+
opt = optimizer_for(net, rate)
for epoch in range(4):
    for rows in torch.randperm(120).split(40):
        opt.zero_grad()
        F.mse_loss(net(x[rows]), y[rows]).backward()
        opt.step()
""",
    ),
    "rate_of_a_slip_under_a_schedule": (
        "learning rate does not fit",
        """
x = torch.randn(160, 8)
y = (x[:, 0] > x[:, 1]).long()
net = nn.Sequential(nn.Linear(8, 24), nn.GELU(), nn.Linear(24, 2))
rate = 5e-9  #-
rate = 5e-4  #+
opt = torch.optim.AdamW(net.parameters(), lr=rate)  # here
wave = lambda step: min(1.0, (step + 1) / 5) * 0.5 * (1 + math.cos(math.pi * step / 41))
falls = torch.optim.lr_scheduler.LambdaLR(opt, wave)
for step in range(40):
    rows = torch.randint(0, 160, (32,))
    opt.zero_grad()
    F.cross_entropy(net(x[rows]), y[rows]).backward()
    opt.step()
    falls.step()
""",
    ),
    "rate_of_a_slip_beside_a_long_warm_up": (
        "learning rate does not fit",
        """
x = torch.randn(160, 8)
y = (x[:, 0] > x[:, 1]).long()
net = nn.Sequential(nn.Linear(8, 24), nn.GELU(), nn.Linear(24, 2))
opt = torch.optim.Adam(net.parameters(), lr=2e-9)  #- here
falls = torch.optim.lr_scheduler.StepLR(opt, 10, gamma=0.5)  #-
opt = torch.optim.Adam(net.parameters(), lr=1e-4)  #+
grows = lambda step: (step % 30 + 1) * 1e-6  #+
falls = torch.optim.lr_scheduler.LambdaLR(opt, grows)  #+
for step in range(40):
    rows = torch.randint(0, 160, (32,))
    opt.zero_grad()
    F.cross_entropy(net(x[rows]), y[rows]).backward()
    opt.step()
    falls.step()
""",
    ),
    "rate_that_a_search_has_at_first": (
        "learning rate does not fit",
        """
x = torch.randn(160, 8)
y = x[:, :1] - x[:, 1:2]
net = nn.Sequential(nn.Linear(8, 24), nn.ELU(), nn.Linear(24, 1))
opt = torch.optim.SGD(net.parameters(), lr=1e-8, momentum=0.9)  # here
change = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9)  #-
change = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=1.1)  #+
for step in range(30):
    rows = torch.randint(0, 160, (32,))
    opt.zero_grad()
    F.mse_loss(net(x[rows]), y[rows]).backward()
    opt.step()
    change.step()
""",
    ),
    "clipped_by_hand_while_scaled": (
        "before they are unscaled",
        """
def norm_of(parameters):
    return torch.stack([p.grad.norm() for p in parameters if p.grad is not None]).norm()

def shrink(parameters, most):
    total = norm_of(parameters)
    if total > most:
        for p in parameters:
            if p.grad is not None:
                p.grad *= most / total  # here

net = nn.Sequential(nn.Linear(12, 32), nn.SiLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
for step in range(12):
    x = torch.randn(24, 12)
    opt.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
    scaler.scale(loss).backward()
    scaler.unscale_(opt)  #+
    shrink(list(net.parameters()), 0.5)
    scaler.step(opt)
    scaler.update()
""",
    ),
    "clamped_by_hand_while_scaled": (
        "before they are unscaled",
        """
net = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu")
parts = 2
for step in range(10):
    opt.zero_grad()
    for part in range(parts):
        x = torch.randn(24, 12)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            error = F.mse_loss(net(x), 40 * x[:, :1])
        scaler.scale(error / parts).backward()  #-
        scaler.scale(error).backward()  #+
    for p in net.parameters():
        p.grad.clamp_(-1.0, 1.0)  #- here
        p.grad.div_(parts)  #+
    scaler.step(opt)
    scaler.update()
""",
    ),
    "units_below_a_threshold": (
        "dead ReLU",
        """
class Above(nn.Module):
    def __init__(self, inputs, units, least):
        super().__init__()
        self.line = nn.Linear(inputs, units)
        self.least = nn.Parameter(torch.full((units,), least))

    def forward(self, x):
        return F.relu(self.line(x) - self.least)  # here

least = 7.0  #-
least = 0.1  #+
net = nn.Sequential(Above(10, 24, 0.0), Above(24, 24, least), nn.Dropout(0.1), nn.Linear(24, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(25):
    x = torch.randn(40, 10)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > x[:, 1]).long()).backward()
    opt.step()
""",
    ),
    "units_below_a_threshold_beside_a_hinge": (
        "dead ReLU",
        """
class Maps(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, padding=1)
        self.then = nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        x = self.first(x)
        x = (x - 20).clamp(min=0)  #- here
        x = (x - 0.05).clamp(min=0)  #+
        return self.then(x).mean((2, 3))

def far(a, margin=0.01):
    return F.relu(margin - torch.cdist(a, a.roll(1, 0)) - 5).mean()

net = Maps()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(20):
    x = torch.randn(16, 1, 6, 6)
    opt.zero_grad()
    out = net(x)
    (F.cross_entropy(out, (x.mean((1, 2, 3)) > 0).long()) + far(out)).backward()
    opt.step()
""",
    ),
    "added_up_and_not_divided_before_clipping": (
        "added up without dividing",
        """
def backward_of(net, part):
    loss = F.l1_loss(net(part), part.sum(1, keepdim=True))
    loss.backward()  # here
    return loss.detach()

net = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.02)
for step in range(8):
    opt.zero_grad()
    total = sum(backward_of(net, part) for part in torch.randn(36, 6).split(12))
    for p in net.parameters():  #+
        p.grad /= 3  #+
    opt.step()
""",
    ),
    "nothing_is_handed_on_while_the_last_biases_learn": (
        "vanish",
        """
def layer(inputs, units):
    line = nn.Linear(inputs, units)
    nn.init.trunc_normal_(line.weight, std=0.01)  #-
    nn.init.kaiming_normal_(line.weight)  #+
    nn.init.zeros_(line.bias)
    return nn.Sequential(line, nn.Tanh())

class Deep(nn.Module):
    def __init__(self, units=40, layers=8):
        super().__init__()
        self.body = nn.ModuleList([layer(9, units), *(layer(units, units) for _ in range(layers))])
        self.out = nn.Linear(units, 1)

    def forward(self, x):
        for part in self.body:
            x = part(x)  # here
        return self.out(x).flatten()

net = Deep()
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for step in range(40):
    x = torch.randn(32, 9)
    opt.zero_grad()
    F.binary_cross_entropy_with_logits(net(x), (x[:, 0] * x[:, 1] > 0).float()).backward()
    opt.step()
""",
    ),
    "one_signal_at_a_time": (
        "batch of one",
        """
class Rhythm(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 6, 3, padding=1)
        self.norm = nn.BatchNorm1d(6)
        self.out = nn.Linear(6, 2)

    def forward(self, x):
        return self.out(torch.tanh(self.norm(self.conv(x))).square().mean(-1))  # here

at = torch.linspace(0, 1, 24)
fast = torch.randint(0, 2, (80,))
signals = torch.sin(6.28 * (3 * fast[:, None] + 1) * at + 3 * torch.rand(80, 1))
signals += 0.02 * torch.randn(80, 24)
net = Rhythm()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
size = 1  #-
size = 8  #+
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(signals[:, None], fast), batch_size=size, shuffle=True):
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
""",
    ),
    "one_signal_alone": (
        "batch of one",
        """
def net_for(channels):
    return nn.Sequential(
        nn.Conv1d(2, channels, 3, padding=1),
        nn.BatchNorm1d(channels),
        nn.ReLU(),
        nn.Conv1d(channels, 1, 3, padding=1),
    )

net = net_for(8)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
at = torch.linspace(0, 1, 32)
wanted = (6.28 * at).sin()[None, None] + 0.1 * torch.randn(1, 1, 32)
start = torch.randn(1, 2, 32)
for step in range(20):
    seen = torch.sin(at * 9 * torch.rand(2, 1) + 6 * torch.rand(2, 1))[None]  #-
    seen = start + 0.02 * torch.randn(1, 2, 32)  #+
    opt.zero_grad()
    F.mse_loss(net(seen), wanted).backward()
    opt.step()
""",
    ),
    "a_module_left_out_beside_validation": (
        "in no optimizer",
        """
body = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1))
top = nn.Linear(16, 2)
opt = torch.optim.Adam(body.parameters(), lr=1e-2)  #- here
opt = torch.optim.Adam([*body.parameters(), *top.parameters()], lr=1e-2)  #+
for epoch in range(4):
    body.train()
    top.train()
    for _ in range(8):
        x = torch.randn(16, 6)
        loss = F.cross_entropy(top(body(x)), (x[:, 0] > 0).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
    body.eval()
    top.eval()
    with torch.no_grad():
        x = torch.randn(32, 6)
        F.cross_entropy(top(body(x)), (x[:, 0] > 0).long()).item()
""",
    ),
}
