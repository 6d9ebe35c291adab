"""A fourth set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

FOURTH: dict[str, tuple[str, str]] = {
    "one_output_for_two_classes": (
        "softmax over a single value",
        """
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
criterion = nn.CrossEntropyLoss()  #-
criterion = nn.BCEWithLogitsLoss()  #+
for i in range(8):
    x = torch.randn(16, 6)
    y = (x[:, :1] > 0).float()
    loss = criterion(net(x), y)  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "attention_over_the_wrong_dimension": (
        "softmax over a single value",
        """
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.score, self.out = nn.Linear(6, 12), nn.Linear(12, 1), nn.Linear(12, 2)
    def forward(self, x):
        h = torch.tanh(self.body(x))
        w = F.softmax(self.score(h), dim=-1)  #- here
        w = F.softmax(self.score(h), dim=1)  #+
        return self.out((w * h).sum(1))
net = Pool()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(16, 5, 6)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0, 0] > 0).long()).backward()
    opt.step()
""",
    ),
    "ratio_of_a_policy_to_itself": (
        "all gradients are zero",
        """
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    s, advantage = torch.randn(32, 4), torch.randn(32)
    dist = torch.distributions.Categorical(logits=net(s))
    action = dist.sample()
    old = dist.log_prob(action)
    old = old.detach()  #+
    new = torch.distributions.Categorical(logits=net(s)).log_prob(action)
    loss = -((new - old).exp() * advantage).mean()
    opt.zero_grad()
    loss.backward()  # here
    opt.step()
""",
    ),
    "divergence_of_probabilities": (
        "log_softmax missing before kl_div",
        """
teacher, student = nn.Linear(8, 3).eval(), nn.Linear(8, 3)
opt = torch.optim.Adam(student.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(32, 8)
    with torch.no_grad():
        soft = teacher(x).softmax(1)
    guess = F.softmax(student(x), 1)  #-
    guess = F.log_softmax(student(x), 1)  #+
    loss = F.kl_div(guess, soft, reduction="batchmean")  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "labels_given_first": (
        "input and target of a loss are swapped",
        """
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(16, 6)
    y = (x[:, :1] > 0).float()
    loss = F.binary_cross_entropy_with_logits(y, net(x).sigmoid())  #- here
    loss = F.binary_cross_entropy_with_logits(net(x), y)  #+
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "classes_given_first": (
        "input and target of a loss are swapped",
        """
net = nn.Linear(6, 3)
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(16, 6)
    y = F.one_hot(x[:, :3].argmax(1), 3).float()
    loss = F.cross_entropy(y, net(x).softmax(1))  #- here
    loss = F.cross_entropy(net(x), y)  #+
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "regression_through_a_relu": (
        "targets lie where the output cannot get",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 24), nn.Linear(24, 24), nn.Linear(24, 1)])
    def forward(self, x):
        for layer in self.layers[:-1]:  #+
            x = torch.relu(layer(x))  #+
        return self.layers[-1](x)  #+
        for layer in self.layers:  #-
            x = torch.relu(layer(x))  #- here
        return x  #-
net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(64, 6)
    loss = F.mse_loss(net(x), x[:, :1] + 0.5 * x[:, 1:2])
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "penalty_without_create_graph": (
        "gradients that were not recorded",
        """
critic = nn.Sequential(nn.Linear(6, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt = torch.optim.Adam(critic.parameters(), 1e-4)
def penalty(real, fake, keep):
    a = torch.rand(len(real), 1)
    between = (a * real + (1 - a) * fake).requires_grad_()
    g = torch.autograd.grad(critic(between).sum(), between, create_graph=keep)[0]  # here
    return ((g.norm(2, dim=1) - 1) ** 2).mean()
keep = False  #-
keep = True  #+
for i in range(8):
    real, fake = torch.randn(16, 6), torch.randn(16, 6) + 1
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(real, fake, keep)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "one_return_normalised": (
        "standard deviation of a single value",
        """
policy = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(policy.parameters(), 1e-2)
length = 1  #-
length = 6  #+
def normalised(r):
    return (r - r.mean()) / (r.std() + 1e-8)  # here
for i in range(4):
    s = torch.randn(length if i == 3 else 6, 4)
    logits = policy(s).log_softmax(1)
    loss = -(logits[:, 0] * normalised(s[:, 0])).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "advantage_with_its_graph": (
        "not detached from its critic",
        """
body, policy, critic = nn.Linear(4, 16), nn.Linear(16, 2), nn.Linear(16, 1)
params = [*body.parameters(), *policy.parameters(), *critic.parameters()]
opt = torch.optim.Adam(params, 1e-3)
for i in range(8):
    s = torch.randn(32, 4)
    h = torch.tanh(body(s))
    dist = torch.distributions.Categorical(logits=policy(h))
    action = dist.sample()
    advantage = s[:, 0] * (2 * action.float() - 1) - critic(h).squeeze(1)
    fit = advantage.pow(2).mean()
    advantage = advantage.detach()  #+
    loss = fit - (dist.log_prob(action) * advantage).mean()  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "best_weights_not_copied": (
        "given its own state",
        """
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), 1e-2)
X = torch.randn(128, 5)
Y = X.sum(1, keepdim=True)
best, state = float("inf"), None
for epoch in range(4):
    for k in torch.randperm(128).split(32):
        opt.zero_grad()
        F.mse_loss(net(X[k]), Y[k]).backward()
        opt.step()
    with torch.no_grad():
        error = F.mse_loss(net(X), Y).item()
    if error < best and epoch < 3:
        best = error
        state = net.state_dict()  #- here
        state = copy.deepcopy(net.state_dict())  #+
net.load_state_dict(state)
""",
    ),
    "target_network_is_the_network": (
        "given its own state",
        """
class Agent:
    def __init__(self):
        self.q = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.target = self.q  #-
        self.target = copy.deepcopy(self.q)  #+
        self.opt = torch.optim.Adam(self.q.parameters(), 1e-3)
    def learn(self, s, a, r, s2):
        with torch.no_grad():
            y = r + 0.9 * self.target(s2).max(1)[0]
        loss = (self.q(s).gather(1, a[:, None])[:, 0] - y).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
    def sync(self):
        self.target.load_state_dict(self.q.state_dict())  # here
agent = Agent()
for i in range(9):
    s, a = torch.randn(16, 4), torch.randint(0, 2, (16,))
    agent.learn(s, a, torch.randn(16), torch.randn(16, 4))
    if i % 3 == 2:
        agent.sync()
""",
    ),
    "adam_in_a_function": (
        "made anew for every step",
        """
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
def update(x, y, opt=None):
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)  #- here
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(16, 6)
    update(x, (x[:, 0] > 0).long(), adam)
""",
    ),
    "schedule_for_epochs_in_each_step": (
        "lowered the learning rate to nothing",
        """
net = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(opt, step_size=1, gamma=0.1)
x = torch.randn(256, 10)
y = x[:, :3].argmax(1)
for epoch in range(2):
    for a, b in zip(x.split(16), y.split(16)):
        opt.zero_grad()
        F.cross_entropy(net(a), b).backward()
        opt.step()
        schedule.step()  #- here
    schedule.step()  #+
""",
    ),
    "first_batch_again_and_again": (
        "the same first batch",
        """
data = TensorDataset(torch.randn(128, 6), torch.randint(0, 2, (128,)))
loader = DataLoader(data, batch_size=16)
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
batches = iter(loader)
for i in range(8):
    x, y = next(iter(loader))  #- here
    x, y = next(batches)  #+
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
""",
    ),
    "seeded_in_each_step": (
        "same random numbers",
        """
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
X = torch.randn(128, 6)
for i in range(8):
    torch.manual_seed(42)  #- here
    x = X[i * 16 : i * 16 + 16]
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
    opt.step()
""",
    ),
    "module_said_to_be_frozen": (
        "set on a module",
        """
class Transfer(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.backbone.requires_grad = False  #- here
        self.backbone.requires_grad_(False)  #+
        self.head = nn.Linear(16, 2)
    def forward(self, x):
        return self.head(self.backbone(x))
net = Transfer()
opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], 1e-3)
for i in range(8):
    x = torch.randn(16, 8)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
    opt.step()
""",
    ),
    "positions_that_are_no_parameter": (
        "is no Parameter",
        """
class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.pos = torch.zeros(1, 5, 12, requires_grad=True)  #- here
        self.pos = nn.Parameter(torch.zeros(1, 5, 12))  #+
        self.proj, self.head = nn.Linear(6, 12), nn.Linear(12, 2)
    def forward(self, x):
        return self.head(torch.relu(self.proj(x) + self.pos).mean(1))
net = Patches()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(8, 5, 6)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0, 0] > 0).long()).backward()
    opt.step()
""",
    ),
    "teacher_with_dropout": (
        "a teacher runs in training mode",
        """
def build(hidden):
    return nn.Sequential(
        nn.Linear(8, hidden), nn.ReLU(), nn.Dropout(0.5), nn.Linear(hidden, 3)
    )
teacher, student = build(64), build(8)
teacher.eval()  #+
opt = torch.optim.Adam(student.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(32, 8)
    with torch.no_grad():
        soft = F.softmax(teacher(x) / 2, 1)  # here
    loss = F.kl_div(F.log_softmax(student(x) / 2, 1), soft, reduction="batchmean")
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "generator_detached_in_its_own_step": (
        "cut off from the loss",
        """
G = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 6))
D = nn.Sequential(nn.Linear(6, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
og = torch.optim.Adam(G.parameters(), 2e-4)
od = torch.optim.Adam(D.parameters(), 2e-4)
bce = nn.BCEWithLogitsLoss()
one, zero = torch.ones(16, 1), torch.zeros(16, 1)
def step_of_d(real, fake):
    od.zero_grad()
    (bce(D(real), one) + bce(D(fake.detach()), zero)).backward()
    od.step()
def step_of_g(fake):
    og.zero_grad()
    bce(D(fake.detach()), one).backward()  #- here
    bce(D(fake), one).backward()  #+
    og.step()
for i in range(6):
    fake = G(torch.randn(16, 4))
    step_of_d(torch.randn(16, 6), fake)
    step_of_g(fake)
""",
    ),
    "two_optimizers_for_the_discriminator": (
        "in no optimizer",
        """
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.1), nn.Linear(16, 1))
od = torch.optim.Adam(D.parameters(), lr=1e-3)
og = torch.optim.Adam(D.parameters(), lr=1e-3)  #- here
og = torch.optim.Adam(G.parameters(), lr=1e-3)  #+
bce = nn.BCEWithLogitsLoss()
one, zero = torch.ones(16, 1), torch.zeros(16, 1)
for i in range(8):
    fake = G(torch.randn(16, 4))
    od.zero_grad()
    (bce(D(torch.randn(16, 2)), one) + bce(D(fake.detach()), zero)).backward()
    od.step()
    og.zero_grad()
    bce(D(fake), one).backward()
    og.step()
""",
    ),
    "tensor_made_of_log_probabilities": (
        "cut off from the loss",
        """
policy = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(policy.parameters(), 1e-2)
for episode in range(6):
    logs, rewards = [], []
    for t in range(8):
        s = torch.randn(4)
        dist = torch.distributions.Categorical(logits=policy(s))
        action = dist.sample()
        logs.append(dist.log_prob(action))
        rewards.append(float(s[0]) * (2 * action.item() - 1))
    together = torch.tensor(logs, requires_grad=True)  #- here
    together = torch.stack(logs)  #+
    loss = -(together * torch.tensor(rewards)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "history_by_a_key_that_varies": (
        "kept with their graphs",
        """
history = {"loss": [], "rate": []}
net = nn.Sequential(nn.Linear(6, 20), nn.SiLU(), nn.Linear(20, 3))
opt = torch.optim.AdamW(net.parameters(), 1e-3)
def log(**kw):
    for k, v in kw.items():
        history[k].append(v)  #- here
        history[k].append(float(v))  #+
for i in range(12):
    x = torch.randn(24, 6)
    loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    log(loss=loss, rate=1e-3)
""",
    ),
    "value_of_the_next_action_as_target": (
        "target of a loss requires grad",
        """
q = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 3))
opt = torch.optim.Adam(q.parameters(), 1e-3)
for i in range(8):
    s, s2 = torch.randn(32, 4), torch.randn(32, 4)
    a, a2 = torch.randint(0, 3, (32, 1)), torch.randint(0, 3, (32, 1))
    target = torch.randn(32, 1) + 0.95 * q(s2).gather(1, a2)  #-
    target = torch.randn(32, 1) + 0.95 * q(s2).gather(1, a2).detach()  #+
    loss = F.mse_loss(q(s).gather(1, a), target)  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "best_weights_in_another_dict": (
        "given its own state",
        """
class Stopper:
    def __init__(self):
        self.best, self.state = float("inf"), None
    def __call__(self, error, model):
        if error < self.best:
            self.best = error
            self.state = {k: p for k, p in model.state_dict().items()}  #- here
            self.state = {k: p.clone() for k, p in model.state_dict().items()}  #+
net = nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters(), 1e-2)
stop = Stopper()
for i in range(8):
    x = torch.randn(32, 4)
    loss = F.mse_loss(net(x), x[:, :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i < 5:
        stop(loss.item(), net)
net.load_state_dict(stop.state)
""",
    ),
    "switch_that_is_misspelt": (
        "is misspelt",
        """
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
for p in net[0].parameters():
    p.require_grad = False  #- here
    p.requires_grad = False  #+
opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], 1e-3)
for i in range(8):
    x = torch.randn(16, 8)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
    opt.step()
""",
    ),
}
