"""A seventeenth set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

SEVENTEENTH: dict[str, tuple[str, str]] = {
    "parts_of_a_loss_by_name": (
        "kept with their graphs",
        """
class Log:
    def __init__(self):
        self.by_name = {}

    def note(self, **parts):
        for name, part in parts.items():
            self.by_name.setdefault(name, []).append(part)  #- here
            self.by_name.setdefault(name, []).append(part.item())  #+

body = nn.Sequential(nn.Linear(6, 24), nn.Tanh())
where, what = nn.Linear(24, 2), nn.Linear(24, 3)
opt = torch.optim.Adam([*body.parameters(), *where.parameters(), *what.parameters()], lr=2e-3)
log = Log()
for step in range(16):
    x = torch.randn(32, 6)
    h = body(x)
    place = (where(h) - x[:, :2]).abs().mean()
    kind = F.nll_loss(F.log_softmax(what(h), 1), x[:, 2:5].argmax(1))
    opt.zero_grad()
    (0.5 * place + kind).backward()
    opt.step()
    log.note(place=place, kind=kind)
""",
    ),
    "scores_of_epochs_with_graphs": (
        "an evaluation keeps the graph of every batch",
        """
class Fit:
    def __init__(self, net, train, valid):
        self.net, self.train, self.valid = net, train, valid
        self.opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
        self.history = []

    def test(self):
        self.net.eval()
        summed = torch.zeros(())
        for x, y in self.valid:
            loss = F.cross_entropy(self.net(x), y, reduction="sum")
            summed = summed + loss  #- here
            summed = summed + loss.detach()  #+
        return summed / len(self.valid.dataset)

    def epoch(self):
        self.net.train()
        for x, y in self.train:
            self.opt.zero_grad()
            F.cross_entropy(self.net(x), y).backward()
            self.opt.step()
        self.history.append(self.test())

def data(n):
    x = torch.randn(n, 8)
    return TensorDataset(x, x[:, :3].argmax(1))

net = nn.Sequential(nn.Linear(8, 24), nn.LayerNorm(24), nn.ReLU(), nn.Linear(24, 3))
fit = Fit(net, DataLoader(data(200), 25, shuffle=True), DataLoader(data(120), 10))
for epoch in range(3):
    fit.epoch()
""",
    ),
    "state_carried_through_the_test_series": (
        "an evaluation keeps the graph of every batch",
        """
class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(2, 16)
        self.read = nn.Linear(16, 2)

    def forward(self, x, memory=None):
        h, memory = self.cell(x, memory)  #- here
        h, memory = self.cell(x, memory)  #+
        return self.read(h), memory

t = torch.arange(900.0)
series = torch.stack([torch.sin(t / 7), torch.cos(t / 5)], 1)[:, None]
series = series + 0.05 * torch.randn(900, 1, 2)
net = Forecast()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)

def judge(model, part):
    model.eval()
    errors, memory = [], None
    for first in range(0, len(part) - 11, 10):
        guess, memory = model(part[first : first + 10], memory)
        memory = tuple(m.detach() for m in memory)  #+
        errors.append(float(F.smooth_l1_loss(guess, part[first + 1 : first + 11]).detach()))
    return np.mean(errors)

for epoch in range(3):
    net.train()
    memory = None
    for first in range(0, 600, 20):
        guess, memory = net(series[first : first + 20], memory)
        memory = tuple(m.detach() for m in memory)
        opt.zero_grad()
        F.smooth_l1_loss(guess, series[first + 1 : first + 21]).backward()
        opt.step()
    judge(net, series[650:])
""",
    ),
}
