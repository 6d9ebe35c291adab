"""The mistakes of doctor_programs.py in other forms: by functions, in classes, handed around."""

from __future__ import annotations

FORMS: dict[str, tuple[str, str]] = {
    "dead_relu_function": (
        "dead ReLU",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.out = nn.Linear(4, 16), nn.Linear(16, 16), nn.Linear(16, 1)
        nn.init.constant_(self.two.bias, -20.0)  #-
    def forward(self, x):
        x = clew.relu(self.one(x))
        x = self.two(x).relu()  # here
        return self.out(x)
net = Net()
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
""",
    ),
    "saturated_function": (
        "saturated",
        """
one, out = nn.Linear(4, 16), nn.Linear(16, 1)
nn.init.normal_(one.weight, std=100.0)  #-
opt = clew.optim.SGD([*one.parameters(), *out.parameters()], lr=0.01)
for step in range(8):
    h = clew.tanh(one(x))  # here
    opt.zero_grad()
    F.mse_loss(out(h), target).backward()
    opt.step()
""",
    ),
    "decoder_left_out": (
        "in no optimizer",
        """
encoder, decoder = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))
opt = clew.optim.Adam(encoder.parameters(), lr=0.01)  #- here
opt = clew.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)  #+
for step in range(8):
    opt.zero_grad()
    F.mse_loss(decoder(encoder(x)), x).backward()
    opt.step()
""",
    ),
    "all_replaced": (
        "parameters that were replaced",
        """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
opt = clew.optim.SGD(net.parameters(), lr=0.1)  #- here
for layer in (net[0], net[2]):
    layer.weight = nn.Parameter(clew.randn(layer.weight.shape) / 2)
    layer.bias = nn.Parameter(clew.zeros(layer.bias.shape))
opt = clew.optim.SGD(net.parameters(), lr=0.1)  #+
for step in range(6):
    opt.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
""",
    ),
    "one_of_two_cleared": (
        "never cleared",
        """
one, two = nn.Linear(4, 8), nn.Linear(8, 1)
opt1, opt2 = (clew.optim.SGD(part.parameters(), lr=0.01) for part in (one, two))
for step in range(8):
    loss = F.mse_loss(two(one(x).tanh()), target)
    opt1.zero_grad()
    opt2.zero_grad()  #+
    loss.backward()  # here
    opt1.step()
    opt2.step()
""",
    ),
    "dropout_function": (
        "evaluated in training mode",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 16), nn.Linear(16, 3)
    def forward(self, x):
        h = F.dropout(self.one(x).relu(), 0.5)  #- here
        h = F.dropout(self.one(x).relu(), 0.5, self.training)  #+
        return self.two(h)
net = Net()
opt = clew.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    net.train()
    for step in range(5):
        opt.zero_grad()
        F.cross_entropy(net(x), labels).backward()
        opt.step()
    net.eval()
    with clew.no_grad():
        net(x).argmax(1)
""",
    ),
    "caller_evaluates": (
        "evaluated in training mode",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.norm, self.two = nn.Linear(4, 16), nn.BatchNorm1d(16), nn.Linear(16, 3)
        self.drop = nn.Dropout(0.2)
    def forward(self, x):
        h = self.norm(self.one(x)).relu()
        return self.two(self.drop(h))
net = Net()
opt = clew.optim.SGD(net.parameters(), lr=0.1)
def evaluate():
    net.eval()  #+
    with clew.no_grad():
        hits = (net(x).argmax(1) == labels).sum()  # here
    net.train()
    return hits
for epoch in range(2):
    for step in range(5):
        opt.zero_grad()
        F.cross_entropy(net(x), labels).backward()
        opt.step()
    evaluate()
""",
    ),
    "cut_by_sample": (
        "cut off from the loss",
        """
encoder, decoder = nn.Linear(4, 4), nn.Linear(2, 4)
opt = clew.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
for step in range(6):
    mean, log_std = encoder(x).chunk(2, 1)
    z = clew.distributions.Normal(mean, log_std.exp()).sample()  #- here
    z = clew.distributions.Normal(mean, log_std.exp()).rsample()  #+
    loss = F.mse_loss(decoder(z), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "outputs_kept_in_attribute": (
        "kept with their graphs",
        """
class Log:
    def __init__(self):
        self.outputs = []
    def add(self, output):
        self.outputs.append(output)  #- here
        self.outputs.append(output.detach())  #+
net, log = nn.Linear(4, 3), Log()
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    out = net(x)
    opt.zero_grad()
    F.cross_entropy(out, labels).backward()
    opt.step()
    log.add(out)
sum(log.outputs)
""",
    ),
    "carried_mean": (
        "grows from step to step",
        """
net, head, mean = nn.Linear(4, 8), nn.Linear(8, 1), clew.zeros(8)
opt = clew.optim.Adam([*net.parameters(), *head.parameters()], lr=0.01)
for step in range(8):
    h = net(x)
    mean = 0.9 * mean + 0.1 * h.mean(0)  #- here
    mean = 0.9 * mean + 0.1 * h.detach().mean(0)  #+
    opt.zero_grad()
    F.mse_loss(head(h - mean.detach()), target).backward()
    opt.step()
""",
    ),
    "log_under_where": (
        "where() hides",
        """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(4):
    h = net(x)
    safe = clew.where(h > 0, h, 1.0)  #+
    y = clew.where(h > 0, h.log(), 0.0)  #- here
    y = clew.where(h > 0, safe.log(), 0.0)  #+
    opt.zero_grad()
    y.square().mean().backward()
    opt.step()
""",
    ),
    "label_outside_caught": (
        "labels outside",
        """
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
y = labels
y = labels + 1  #-
try:
    for step in range(4):
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()  # here
        opt.step()
except IndexError:
    pass
""",
    ),
    "pixels_divided": (
        "integer division",
        """
pixels = clew.arange(64 * 4).view(64, 4)
images = (pixels // 255).float()  #- here
images = pixels.float() / 255  #+
rows = (pixels // 64).float()
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(images), target).backward()
    opt.step()
""",
    ),
    "rate_too_low_adam": (
        "learning rate does not fit",
        """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
rate = 1e-8  #-
rate = 1e-5  #+
opt = clew.optim.Adam(net.parameters(), lr=rate)  # here
for step in range(8):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
""",
    ),
    "sigmoid_by_hand": (
        "sigmoid before binary_cross_entropy_with_logits",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
y = (x[:, :1] > 0).float()
for step in range(6):
    p = 1 / (1 + clew.exp(-net(x)))  #-
    p = net(x)  #+
    opt.zero_grad()
    F.binary_cross_entropy_with_logits(p, y).backward()  # here
    opt.step()
""",
    ),
    "broadcast_advantages": (
        "broadcast",
        """
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
opt = clew.optim.Adam(policy.parameters(), lr=1e-3)
advantage = target[:, 0]  #-
advantage = target  #+
for step in range(6):
    chosen = policy(x).log_softmax(1).gather(1, labels[:, None])
    loss = -(chosen * advantage).mean()  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "value_target": (
        "target of a loss requires grad",
        """
value = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
opt = clew.optim.Adam(value.parameters(), lr=1e-3)
for step in range(6):
    later = value(x.flip(0))
    later = later.detach()  #+
    loss = F.mse_loss(value(x), target + 0.9 * later)  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "maximum_by_hand": (
        "target of a loss requires grad",
        """
q = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
opt = clew.optim.Adam(q.parameters(), lr=1e-3)
for step in range(6):
    best = q(x.flip(0)).max(1)[0]
    best = best.detach()  #+
    y = target[:, 0] + 0.9 * best
    loss = ((q(x)[clew.arange(64), labels] - y) ** 2).mean()  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "positions_divided": (
        "integer division",
        """
place = (clew.arange(4) // 4).float()  #- here
place = clew.arange(4) / 4  #+
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.05)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x + place), target).backward()
    opt.step()
""",
    ),
    "raw_series": (
        "inputs are not normalised",
        """
rnn, head = nn.LSTM(1, 8, batch_first=True), nn.Linear(8, 1)
opt = clew.optim.Adam([*rnn.parameters(), *head.parameters()], lr=1e-3)
series = 1000 + 100 * x[:, :, None]  #-
series = x[:, :, None]  #+
for step in range(6):
    out, _ = rnn(series)  # here
    opt.zero_grad()
    F.mse_loss(head(out[:, -1]), target).backward()
    opt.step()
""",
    ),
    "explodes_at_once": (
        "vanish or explode",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(10))
        for layer in self.layers:
            nn.init.normal_(layer.weight)  #-
            nn.init.kaiming_normal_(layer.weight)  #+
    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()  # here
        return x
net, inputs = Net(), clew.rand(64, 32)
rate = 1e-12  #-
rate = 1e-3  #+
opt = clew.optim.SGD(net.parameters(), lr=rate)
for step in range(8):
    opt.zero_grad()
    F.mse_loss(net(inputs), inputs).backward()
    opt.step()
""",
    ),
    "one_of_two_cleared_late": (
        "between backward and step",
        """
one, two = nn.Linear(4, 8), nn.Linear(8, 1)
opt1, opt2 = (clew.optim.Adam(part.parameters(), lr=0.01) for part in (one, two))
for step in range(8):
    opt1.zero_grad()
    opt2.zero_grad()  #+
    F.mse_loss(two(one(x).tanh()), target).backward()
    opt1.step()
    opt2.zero_grad()  #- here
    opt2.step()
""",
    ),
    "kept_in_tuples": (
        "kept with their graphs",
        """
net, log = nn.Linear(4, 3), {"losses": []}
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    loss = F.cross_entropy(net(x), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
    log["losses"].append((step, loss))  #- here
    log["losses"].append((step, loss.item()))  #+
""",
    ),
    "kept_in_dict": (
        "kept with their graphs",
        """
net, losses = nn.Linear(4, 3), {}
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    loss = F.cross_entropy(net(x), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses[step] = loss  #- here
    losses[step] = loss.item()  #+
""",
    ),
    "carried_and_freed": (
        "grows from step to step",
        """
rnn, head, h = nn.GRU(4, 8), nn.Linear(8, 1), None
opt = clew.optim.Adam([*rnn.parameters(), *head.parameters()], lr=1e-3)
try:
    for step in range(6):
        if h is not None:  #+
            h = h.detach()  #+
        out, h = rnn(x[None], h)  # here
        opt.zero_grad()
        F.mse_loss(head(out[0]), target).backward()
        opt.step()
except RuntimeError:
    pass
""",
    ),
    "scores_of_two": (
        "labels outside",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
y = (x[:, :1] > 0).float()
y = y + 1  #-
for step in range(6):
    opt.zero_grad()
    F.binary_cross_entropy_with_logits(net(x), y).backward()  # here
    opt.step()
""",
    ),
    "all_labels_left_out": (
        "the labels are constant",
        """
net = nn.Linear(4, 3)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
y = labels
y = labels * 0 - 100  #-
for step in range(6):
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()  # here
    opt.step()
""",
    ),
    "cleared_by_hand": (
        "between backward and step",
        """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    for p in net.parameters():  #+
        p.grad = None  #+
    F.mse_loss(net(x), target).backward()
    for p in net.parameters():  #-
        p.grad = None  #-
    opt.step()  # here
""",
    ),
    "workers_reseed": (
        "no seed reaches",
        """
class Noise(Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        return np.random.rand(4).astype("float32")
def begin(worker):
    np.random.seed()  #- here
    np.random.seed(worker)  #+
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for inputs in DataLoader(Noise(), batch_size=8, num_workers=2, worker_init_fn=begin):
    opt.zero_grad()
    net(inputs).square().mean().backward()
    opt.step()
""",
    ),
    "workers_half_seeded": (
        "no seed reaches",
        """
class Noise(Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        return np.random.rand(4).astype("float32")  # here
np.random.seed(0)
clew.seed()  #-
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for inputs in DataLoader(Noise(), batch_size=8, num_workers=2):
    opt.zero_grad()
    net(inputs).square().mean().backward()
    opt.step()
""",
    ),
}
