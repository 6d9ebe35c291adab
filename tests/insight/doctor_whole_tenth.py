"""A tenth set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

TENTH: dict[str, tuple[str, str]] = {
    "sampling_leaves_evaluation_mode": (
        "training goes on in evaluation mode",
        """
class CharModel(nn.Module):
    def __init__(self, vocab=12, width=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.drop, self.out = nn.Dropout(0.2), nn.Linear(width, vocab)

    def forward(self, ids, state=None):
        h, state = self.rnn(self.drop(self.embed(ids)), state)
        return self.out(self.drop(h)), state

    @torch.no_grad()
    def sample(self, start, length):
        was = self.training  #+
        self.eval()  # here
        ids, state = [start], None
        for _ in range(length):
            scores, state = self(torch.tensor([[ids[-1]]]), state)
            ids.append(torch.multinomial(scores[0, -1].softmax(0), 1).item())
        self.train(was)  #+
        return ids

text = torch.randint(0, 12, (400,))
model = CharModel()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(12):
    at = torch.randint(0, 380, (8,))
    chunk = torch.stack([text[a : a + 16] for a in at.tolist()])
    scores, _ = model(chunk[:, :-1])
    loss = F.cross_entropy(scores.transpose(1, 2), chunk[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        print(model.sample(0, 6))
""",
    ),
    "first_of_several_optimizers_cleared": (
        "never cleared",
        """
class Agent:
    def __init__(self):
        self.actor = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
        self.critic = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
        self.optimizers = [
            torch.optim.Adam(net.parameters(), lr=1e-3) for net in (self.actor, self.critic)
        ]

    def losses(self, s):
        policy = torch.distributions.Categorical(logits=self.actor(s))
        a = policy.sample()
        gain = (a == (s[:, 0] > 0).long()).float()
        value = self.critic(s).squeeze(-1)
        advantage = gain - value.detach()
        return -(policy.log_prob(a) * advantage).mean(), F.mse_loss(value, gain)

    def update(self, s):
        self.optimizers[0].zero_grad()  #-
        for optimizer in self.optimizers:  #+
            optimizer.zero_grad()  #+
        for loss in self.losses(s):
            loss.backward()  # here
        for optimizer in self.optimizers:
            optimizer.step()

agent = Agent()
for step in range(12):
    agent.update(torch.randn(32, 3))
""",
    ),
    "the_copy_is_trained": (
        "parameters that were replaced",
        """
def build(width):
    return nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, 1))

class Experiment:
    def __init__(self, model, lr):
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)  # here
        self.model = copy.deepcopy(model)  #-
        self.model = model  #+

    def fit(self, x, y, steps):
        for _ in range(steps):
            picked = torch.randint(0, len(x), (16,))
            error = self.model(x[picked]).squeeze(1) - y[picked]
            self.optimizer.zero_grad()
            self.model.zero_grad()
            error.square().mean().backward()
            self.optimizer.step()
        return self

x = torch.randn(100, 5)
Experiment(build(16), 3e-3).fit(x, x[:, 0] * x[:, 1], 12)
""",
    ),
    "entropy_of_a_masked_softmax": (
        "slope is infinite",
        """
class Pointer(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.score = nn.Linear(4, 16), nn.Linear(16, 1)

    def forward(self, x, mask):
        scores = self.score(torch.tanh(self.enc(x))).squeeze(-1)
        return scores.masked_fill(~mask, float("-inf")).softmax(-1)

def entropy(p):
    return -(p * p.log()).sum(-1)  #- here
    return -torch.special.xlogy(p, p.clamp(min=1e-8)).sum(-1)  #+

net = Pointer()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(10):
    x = torch.randn(16, 6, 4)
    mask = torch.rand(16, 6) > 0.3
    mask[:, 0] = True
    p = net(x, mask)
    reward = (p * x[..., 0]).sum(-1)
    loss = -reward.mean() - 0.01 * entropy(p).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ),
    "a_channel_of_one_against_none": (
        "broadcast",
        """
class Forecast(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, channels, 5, padding=2), nn.ReLU(), nn.Conv1d(channels, 1, 5, padding=2)
        )

    def forward(self, series):
        out = self.net(series.unsqueeze(1))
        out = out.squeeze(1)  #+
        return out

def batches(n, length):
    for _ in range(n):
        phase = torch.rand(12, 1) * 6.28
        time_ = torch.linspace(0, 6.28, length + 1)
        wave = torch.sin(time_ + phase)
        yield wave[:, :-1], wave[:, 1:]

model = Forecast()
criterion = nn.SmoothL1Loss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for past, future in batches(10, 24):
    optimizer.zero_grad()
    loss = criterion(model(past), future)  # here
    loss.backward()
    optimizer.step()
""",
    ),
    "step_before_backward": (
        "between backward and step",
        """
def train_step(model, optimizer, batch):
    features, target = batch["features"], batch["target"]
    optimizer.zero_grad()  # here
    output = model(features)
    loss = F.mse_loss(output, target)
    optimizer.step()  #-
    loss.backward()
    optimizer.step()  #+
    return {"loss": loss.item()}

model = nn.Sequential(nn.Linear(6, 24), nn.GELU(), nn.Linear(24, 2))
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
history = []
for step in range(12):
    features = torch.randn(32, 6)
    batch = {"features": features, "target": features[:, :2] * features[:, 2:4]}
    history.append(train_step(model, optimizer, batch))
""",
    ),
    "log_softmax_over_the_width": (
        "log_softmax",
        """
class Segmenter(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.head = nn.Conv2d(8, classes, 1)
        self.normalise = nn.LogSoftmax(dim=-1)  #-
        self.normalise = nn.LogSoftmax(dim=1)  #+

    def forward(self, x):
        return self.normalise(self.head(self.body(x)))

net, criterion = Segmenter(), nn.NLLLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(10):
    image = torch.randn(4, 3, 9, 9)
    mask = (image[:, 0] > 0).long() + 2 * (image[:, 1] > 0)
    loss = criterion(net(image), mask)  # here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    ),
    "losses_of_time_steps_overwritten": (
        "only the last of several losses",
        """
class Cell(nn.Module):
    def __init__(self, hidden=12):
        super().__init__()
        self.cell, self.out = nn.LSTMCell(3, hidden), nn.Linear(hidden, 3)

    def forward(self, x, state):
        h, c = self.cell(x, state)
        return self.out(h), (h, c)

model, mse = Cell(), nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    series = torch.randn(8, 16, 3).cumsum(0) / 3
    state = (torch.zeros(16, 12), torch.zeros(16, 12))
    optimizer.zero_grad()
    loss = 0.0  #+
    for t in range(len(series) - 1):
        guess, state = model(series[t], state)
        loss = mse(guess, series[t + 1])  #-
        loss = loss + mse(guess, series[t + 1])  #+
    loss.backward()  # here
    optimizer.step()
""",
    ),
    "backward_of_the_last_view": (
        "only the last of several losses",
        """
def augment(x, kind):
    return x + 0.1 * torch.randn_like(x) if kind == "noise" else x * (0.8 + 0.4 * torch.rand(1))

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        return self.layers(x)

encoder = Encoder()
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.9)
for step in range(10):
    x = torch.randn(32, 10)
    y = x[:, :4].argmax(1)
    total = 0
    for kind in ("noise", "scale", "noise"):
        loss = F.cross_entropy(encoder(augment(x, kind)), y)
        total = total + loss
    optimizer.zero_grad()
    loss.backward()  #- here
    total.backward()  #+
    optimizer.step()
""",
    ),
    "parameter_of_empty_memory": (
        "never initialised",
        """
class GraphConv(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(a, b))  #- here
        self.weight = nn.Parameter(torch.randn(a, b) / a**0.5)  #+
        self.bias = nn.Parameter(torch.zeros(b))

    def forward(self, x, adjacency):
        return adjacency @ (x @ self.weight) + self.bias

class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = GraphConv(6, 16), GraphConv(16, 3)

    def forward(self, x, adjacency):
        return self.two(F.relu(self.one(x, adjacency)), adjacency)

edges = (torch.rand(30, 30) < 0.15).float()
adjacency = ((edges + edges.T + torch.eye(30)) > 0).float()
adjacency = adjacency / adjacency.sum(1, keepdim=True)
x = torch.randn(30, 6)
y = (adjacency @ x)[:, :3].argmax(1)
net = GCN()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(10):
    optimizer.zero_grad()
    F.cross_entropy(net(x, adjacency)[:20], y[:20]).backward()
    optimizer.step()
""",
    ),
}
