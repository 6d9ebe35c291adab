"""A seventeenth set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

from doctor_whole_eighteenth import EIGHTEENTH

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
    "recurrence_by_hand_with_large_weights": (
        "saturated activation",
        """
class Elman(nn.Module):
    def __init__(self, inputs, size):
        super().__init__()
        self.take = nn.Parameter(torch.randn(inputs, size) * 4)  #-
        self.keep = nn.Parameter(torch.randn(size, size) * 4)  #-
        self.take = nn.Parameter(torch.randn(inputs, size) * 0.3)  #+
        self.keep = nn.Parameter(torch.randn(size, size) * 0.15)  #+
        self.tell = nn.Linear(size, 2)

    def forward(self, series):
        state = torch.zeros(len(series), len(self.keep))
        for now in series.unbind(1):
            state = (now @ self.take + state @ self.keep).tanh()  # here
        return self.tell(state)

series = torch.randn(96, 7, 5)
up = (series[:, -1, 0] > 0).long()
net = Elman(5, 32)
opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
for rows in [*torch.randperm(96).split(24), *torch.randperm(96).split(24)]:
    opt.zero_grad()
    F.cross_entropy(net(series[rows]), up[rows]).backward()
    opt.step()
""",
    ),
    "gain_against_a_column": (
        "broadcast to all pairs",
        """
torch.manual_seed(4)
actor = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 4))
critic = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=2e-3)
for episode in range(8):
    states = torch.randn(20, 3)
    scores = F.log_softmax(actor(states), -1)
    chosen = torch.multinomial(scores.detach().exp(), 1)
    log_p = scores.gather(1, chosen).squeeze(1)
    reward = (chosen.squeeze(1) == 1).float() + states[:, 0]
    with torch.no_grad():
        expected = critic(states)
        expected = expected.flatten()  #+
        gain = reward - expected  # here
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
    error = F.mse_loss(critic(states).squeeze(1), reward)
    opt.zero_grad()
    (error - (gain * log_p).mean()).backward()
    opt.step()
""",
    ),
    "target_of_a_row_and_a_column": (
        "broadcast to all pairs",
        """
value, slow = nn.Linear(4, 1), nn.Linear(4, 1)
opt = torch.optim.SGD(value.parameters(), lr=0.02)
for step in range(24):
    now, then = torch.randn(2, 32, 4)
    reward = now[:, 0] * 0.5
    goal = reward + 0.9 * slow(then).detach()  #- here
    goal = reward[:, None] + 0.9 * slow(then).detach()  #+
    opt.zero_grad()
    (value(now) - goal).square().mean().backward()
    opt.step()
    if step % 8 == 7:
        slow.load_state_dict(value.state_dict())
""",
    ),
    "train_of_the_top_alone": (
        "evaluated in training mode",
        """
class TwoStage(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Dropout(0.4))
        self.head = nn.Linear(24, 2)
        self.calls = 0

    def train(self, mode=True):  #- here
    def train(self, mode=True):  #+
        self.calls = 0
        self.training = bool(mode)  #-
        return super().train(mode)  #+
        return self  #-

    def forward(self, x):
        self.calls += 1
        return self.head(self.stem(x))

x = torch.randn(160, 8)
y = (x[:, 0] + x[:, 1] > 0).long()
net = TwoStage()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(3):
    net.train()
    for rows in torch.randperm(120).split(30):
        opt.zero_grad()
        F.cross_entropy(net(x[rows]), y[rows]).backward()
        opt.step()
    net.train(False)
    with torch.no_grad():
        right = (net(x[120:]).argmax(1) == y[120:]).float().mean().item()
""",
    ),
    "best_state_by_data": (
        "given its own state",
        """
x = torch.randn(120, 6)
y = x[:, :1] - x[:, 1:2] + 0.2 * torch.randn(120, 1)
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
best, kept = math.inf, {}
for epoch in range(6):
    for rows in torch.randperm(80).split(16):
        opt.zero_grad()
        F.mse_loss(net(x[rows]), y[rows]).backward()
        opt.step()
    with torch.no_grad():
        score = F.mse_loss(net(x[80:]), y[80:]).item()
    if epoch < 3:
        best = score
        kept = dict((name, t.data) for name, t in net.state_dict().items())  #- here
        kept = dict((name, t.data.clone()) for name, t in net.state_dict().items())  #+
net.load_state_dict(kept)
""",
    ),
    "actor_leaves_gradients_to_the_critic": (
        "left are used",
        """
actor = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 1), nn.Tanh())
critic = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 1))
by_actor = torch.optim.Adam(actor.parameters(), lr=1e-3)
by_critic = torch.optim.Adam(critic.parameters(), lr=2e-3)
for step in range(12):
    s = torch.randn(48, 3)
    a = (actor(s).detach() + 0.2 * torch.randn(48, 1)).clamp(-1, 1)
    reward = -(a - s[:, :1]).abs()
    by_critic.zero_grad()  #+
    error = F.mse_loss(critic(torch.cat([s, a], 1)), reward)
    error.backward()  # here
    by_critic.step()
    by_critic.zero_grad()  #-
    gain = critic(torch.cat([s, actor(s)], 1)).mean()
    (-gain).backward()
    by_actor.step()
    by_actor.zero_grad()
""",
    ),
    "schedule_of_the_optimizer_before": (
        "an optimizer that does not step",
        """
def stage(model, lr, frozen):
    for p in model[0].parameters():
        p.requires_grad_(not frozen)
    return torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

x = torch.randn(128, 6)
y = x[:, :3].argmax(1)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
opt = stage(model, 0.05, frozen=True)
falls = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.8)
for epoch in range(7):
    if epoch == 2:
        opt = stage(model, 0.02, frozen=False)
        falls = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.8)  #+
    for rows in torch.randperm(128).split(32):
        opt.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        opt.step()
    falls.step()  # here
""",
    ),
    "average_in_a_dict_alone": (
        "never reaches its parameters",
        """
net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
smooth = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)

def follow(rate=0.1):
    averaged = smooth.state_dict()
    for name, new in net.state_dict().items():
        averaged[name] = torch.lerp(averaged[name], new, rate)  # here
    smooth.load_state_dict(averaged)  #+

for step in range(15):
    x = torch.randn(40, 5)
    opt.zero_grad()
    F.mse_loss(net(x), x[:, :1].sin()).backward()
    opt.step()
    follow()
with torch.no_grad():
    error = F.mse_loss(smooth(x), x[:, :1].sin()).item()
""",
    ),
    "mask_of_what_is_there_beside_a_token_more": (
        "mask is inverted",
        """
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(25, 16)
        self.look = nn.MultiheadAttention(16, 2, batch_first=True)
        self.ask = nn.Parameter(torch.randn(1, 1, 16) * 0.1)
        self.tell = nn.Linear(16, 2)

    def forward(self, ids):
        there = ids.ne(0)
        hidden = torch.cat([there, there.new_ones(len(ids), 1)], 1)  #-
        hidden = torch.cat([~there, there.new_zeros(len(ids), 1)], 1)  #+
        x = torch.cat([self.words(ids), self.ask.expand(len(ids), 1, 16)], 1)
        seen, _ = self.look(x[:, -1:], x, x, key_padding_mask=hidden)  # here
        return self.tell(seen[:, 0])

ids = torch.randint(1, 25, (90, 9))
for row, length in enumerate(torch.randint(3, 9, (90,)).tolist()):
    ids[row, length:] = 0
y = (ids[:, 0] > 12).long()
net = Reader()
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
for epoch in range(3):
    for rows in torch.randperm(90).split(30):
        opt.zero_grad()
        F.cross_entropy(net(ids[rows]), y[rows]).backward()
        opt.step()
""",
    ),
    "order_of_the_pictures_alone": (
        "shuffled apart",
        """
def fit(net, pictures, kinds, size=24):
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(3):
        pictures = pictures[torch.randperm(len(pictures))]  #- here
        order = torch.randperm(len(pictures))  #+
        pictures, kinds = pictures[order], kinds[order]  #+
        for first in range(0, len(pictures), size):
            shown, wanted = pictures[first : first + size], kinds[first : first + size]
            opt.zero_grad()
            F.cross_entropy(net(shown), wanted).backward()
            opt.step()

pictures = torch.randn(96, 1, 6, 6)
kinds = (pictures.mean((1, 2, 3)) > 0).long()
fit(nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 2)), pictures, kinds)
""",
    ),
    **EIGHTEENTH,
}
