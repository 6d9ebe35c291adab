"""Whole programs without a mistake: labels that a program fills in by itself, sums and gradients
that are kept on purpose, modes and masks of a program's own."""

from __future__ import annotations

THIRTEENTH_CLEAN: dict[str, str] = {
    "gan_with_scores_joined": """
g = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
d = nn.Sequential(nn.Linear(3, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(g.parameters(), lr=1e-3)
opt_d = torch.optim.Adam(d.parameters(), lr=1e-3)

def adversarial(scores, wanted):
    return F.binary_cross_entropy_with_logits(scores, wanted)

for step in range(12):
    real = torch.randn(32, 3) * 0.5 + 1
    fake = g(torch.randn(32, 4))
    scores = torch.cat([d(real), d(fake.detach())])
    wanted = torch.cat([torch.ones(32, 1), torch.zeros(32, 1)])
    opt_d.zero_grad()
    adversarial(scores, wanted).backward()
    opt_d.step()
    opt_g.zero_grad()
    adversarial(d(fake), torch.ones(32, 1)).backward()
    opt_g.step()
""",
    "preferred_by_default": """
class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
        self.register_buffer("one", torch.tensor(1.0))

    def loss(self, better, worse, wanted=None):
        margin = (self.body(better) - self.body(worse)).squeeze(1)
        if wanted is None:
            wanted = self.one.expand_as(margin)
        return nn.BCEWithLogitsLoss()(margin, wanted)

judge = Judge()
way = torch.randn(6)
opt = torch.optim.Adam(judge.parameters(), lr=2e-3)
for step in range(15):
    a, b = torch.randn(2, 40, 6)
    first = ((a - b) @ way > 0)[:, None]
    loss = judge.loss(torch.where(first, a, b), torch.where(first, b, a))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right_one_stands_first": """
class Matcher:
    def __init__(self, users, items, dim=8):
        self.users, self.items = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.opt = torch.optim.Adam(
            [*self.users.parameters(), *self.items.parameters()], lr=1e-2
        )
        self.first = torch.zeros(64, dtype=torch.long)

    def step(self, user, item):
        others = torch.randint(0, 50, (len(user), 5))
        shown = self.items(torch.cat([item[:, None], others], 1))
        scores = torch.einsum("bd,bkd->bk", self.users(user), shown)
        loss = F.cross_entropy(scores, self.first[: len(user)])
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

matcher = Matcher(30, 50)
user = torch.randint(0, 30, (200,))
item = (user + 10 * torch.randint(0, 2, (200,))) % 50
for u, i in DataLoader(TensorDataset(user, item), batch_size=25, shuffle=True):
    matcher.step(u, i)
""",
    "pairs_that_are_all_right": """
def label(kind, like):
    return torch.full_like(like, 1.0 if kind else 0.0)

users, items = nn.Embedding(30, 8), nn.Embedding(50, 8)
opt = torch.optim.SGD([*users.parameters(), *items.parameters()], lr=0.5, weight_decay=1e-4)
for step in range(20):
    u, near = torch.randint(0, 30, (48,)), torch.randint(0, 25, (48,))
    far = near + 25
    gap = (users(u) * (items(near) - items(far))).sum(1)
    opt.zero_grad()
    F.binary_cross_entropy_with_logits(gap, target=label(True, gap)).backward()
    opt.step()
""",
    "classifier_to_be_deceived": """
critic = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 2))
maker = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 5))
for p in critic.parameters():
    p.requires_grad_(False)
opt = torch.optim.Adam(maker.parameters(), lr=1e-3)
valid = torch.LongTensor(16).fill_(1)
for step in range(10):
    opt.zero_grad()
    loss = F.cross_entropy(critic(maker(torch.randn(16, 3))), valid)
    loss.backward()
    opt.step()
""",
    "sum_of_a_frozen_model_that_is_differentiated": """
judge = nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 3))
opt = torch.optim.Adam(judge.parameters(), lr=2e-3)
x = torch.randn(120, 6)
y = x[:, :3].argmax(1)
for step in range(8):
    opt.zero_grad()
    F.cross_entropy(judge(x), y).backward()
    opt.step()
judge.eval()
for p in judge.parameters():
    p.requires_grad_(False)
shift = nn.Parameter(torch.zeros(6))
bend = torch.optim.SGD([shift], lr=0.1)
for step in range(4):
    total = 0.0
    for rows in torch.arange(120).split(10):
        noisy = x[rows] + shift + 0.01 * torch.randn(10, 6)
        total = total + F.cross_entropy(judge(noisy), y[rows])
    bend.zero_grad()
    (total / 12).backward()
    bend.step()
""",
    "terms_of_one_batch_in_evaluation": """
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(8, 8) for _ in range(10))

    def forward(self, x):
        found = []
        for part in self.parts:
            x = x + torch.tanh(part(x))
            found.append(x)
        return found

net, goal = Deep(), torch.randn(8)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)

def loss_of(x):
    total = 0.0
    for out in net(x):
        total = total + F.mse_loss(2 * out, x + goal)
    return total / 10

for epoch in range(3):
    net.train()
    for step in range(5):
        opt.zero_grad()
        loss_of(torch.randn(16, 8)).backward()
        opt.step()
    net.eval()
    score = loss_of(torch.randn(64, 8)).item()
""",
    "train_overridden_with_care": """
class Finetuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU())
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(24, 3))
        for p in self.base.parameters():
            p.requires_grad_(False)

    def train(self, mode=True):
        self.training = mode
        self.base.eval()
        for part in self.head:
            part.train(mode)
        return self

    def forward(self, x):
        return self.head(self.base(x))

net = Finetuned()
opt = torch.optim.Adam(net.head.parameters(), lr=3e-3)
x = torch.randn(120, 6)
y = x[:, :3].argmax(1)
for epoch in range(3):
    net.train()
    for rows in torch.randperm(120).split(30):
        opt.zero_grad()
        F.cross_entropy(net(x[rows]), y[rows]).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        right = (net(x).argmax(1) == y).float().mean()
""",
    "trunk_that_gathers_from_two_heads": """
trunk = nn.Sequential(nn.Linear(6, 24), nn.Tanh())
first, second = nn.Linear(24, 1), nn.Linear(24, 3)
of_trunk = torch.optim.Adam(trunk.parameters(), lr=1e-3)
of_first = torch.optim.Adam(first.parameters(), lr=1e-3)
of_second = torch.optim.Adam(second.parameters(), lr=1e-3)
for step in range(10):
    x = torch.randn(32, 6)
    for opt in (of_trunk, of_first, of_second):
        opt.zero_grad()
    F.mse_loss(first(trunk(x)), x[:, :1]).backward()
    of_first.step()
    F.cross_entropy(second(trunk(x)), x[:, 1:4].argmax(1)).backward()
    of_second.step()
    of_trunk.step()
""",
    "two_schedules_of_two_stages": """
net = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 1))
x = torch.randn(96, 5)
y = x[:, :1] * x[:, 1:2]
for kind, epochs in ((torch.optim.Adam, 4), (torch.optim.SGD, 4)):
    opt = kind(net.parameters(), lr=1e-2)
    falls = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs)
    for epoch in range(epochs):
        for rows in torch.randperm(96).split(24):
            opt.zero_grad()
            F.mse_loss(net(x[rows]), y[rows]).backward()
            opt.step()
        falls.step()
""",
    "states_that_are_edited_and_used": """
net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
slow = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
written = []

def packed(model):
    state = model.state_dict()
    for name in state:
        state[name] = state[name].half()
    return state

for step in range(12):
    x = torch.randn(40, 5)
    opt.zero_grad()
    F.mse_loss(net(x), x[:, :1].sin()).backward()
    opt.step()
    mine, new = slow.state_dict(), net.state_dict()
    for name in mine:
        mine[name].copy_(0.9 * mine[name] + 0.1 * new[name])
    mixed = slow.state_dict()
    for name in mixed:
        mixed[name] = 0.5 * (mixed[name] + new[name])
    written.append(len(packed(net)) + sum(t.numel() for t in mixed.values()))
""",
    "pairs_of_values_that_are_meant": """
score = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(score.parameters(), lr=2e-3)
for step in range(10):
    x = torch.randn(24, 4)
    true = x[:, 0] - 0.5 * x[:, 1]
    said = score(x).squeeze(1)
    weight = said.detach() - said.detach().unsqueeze(1)
    wrong = ((true - true.unsqueeze(1)) * weight < 0).float()
    loss = (wrong * F.softplus(-(said - said[:, None]) * (true - true[:, None]).sign())).mean()
    opt.zero_grad()
    (loss + 0.01 * (wrong.mean(1) * said).mean()).backward()
    opt.step()
""",
    "gates_that_open_and_close": """
class Hysteresis(nn.Module):
    def __init__(self):
        super().__init__()
        self.take, self.read = nn.Linear(2, 12), nn.Linear(12, 1)

    def forward(self, x):
        state = torch.zeros(len(x), 12)
        for now in x.unbind(1):
            state = torch.tanh(self.take(now) + state)
        return self.read(state)

net = Hysteresis()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(12):
    x = torch.randn(32, 12, 2)
    opt.zero_grad()
    F.mse_loss(net(x), x[:, -3:, :1].mean(1)).backward()
    opt.step()
""",
    "gradients_to_look_at_after_training": """
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(4):
    x = torch.randn(32, 4)
    opt.zero_grad()
    F.mse_loss(net(x), x[:, :1].sin()).backward()
    opt.step()
field = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
seen = []
for scale in (0.1, 1.0, 10.0):
    field.zero_grad()
    y = scale * torch.randn(16, 4)
    for part in range(3):
        y = y + 0.1 * field(y)
    y.pow(2).mean().backward()
    seen.append(field[0].weight.grad.norm().item())
""",
    "unpaired_samples_in_new_orders": """
class Pairs:
    def __init__(self):
        self.x = torch.randn(96, 4)
        self.y = torch.randn(96, 4) * 0.5 + 1

    def batches(self, size):
        self.x = self.x[torch.randperm(len(self.x))]
        for i in range(0, len(self.x), size):
            yield self.x[i : i + size], self.y[i : i + size]

there, back = nn.Linear(4, 4), nn.Linear(4, 4)
opt = torch.optim.Adam([*there.parameters(), *back.parameters()], lr=2e-3)
pairs = Pairs()
for epoch in range(3):
    for x, y in pairs.batches(24):
        cycle = F.l1_loss(back(there(x)), x) + F.l1_loss(there(back(y)), y)
        level = (there(x).mean(0) - y.mean(0)).square().sum()
        opt.zero_grad()
        (cycle + level).backward()
        opt.step()
""",
    "labels_made_after_the_new_order": """
net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
x = torch.randn(80, 5)
for epoch in range(3):
    x = x[torch.randperm(80)]
    y = x[:, :1].sin()
    for i in range(0, 80, 20):
        opt.zero_grad()
        F.mse_loss(net(x[i : i + 20]), y[i : i + 20]).backward()
        opt.step()
""",
}
