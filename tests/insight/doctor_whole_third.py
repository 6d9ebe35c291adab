"""A third set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

THIRD: dict[str, tuple[str, str]] = {
    "accumulation_with_a_scaler": (
        "without dividing",
        """
class Trainer:
    accumulate = 4
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 1))
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.scaler = torch.amp.GradScaler("cpu")
    def fit(self, n):
        for i in range(n):
            x = torch.randn(8, 8)
            with torch.autocast("cpu", torch.bfloat16):
                loss = F.mse_loss(self.model(x).float(), x[:, :1])
            loss = loss / self.accumulate  #+
            self.scaler.scale(loss).backward()  # here
            if i % self.accumulate == self.accumulate - 1:
                self.scaler.step(self.opt)
                self.scaler.update()
                self.opt.zero_grad()
Trainer().fit(16)
""",
    ),
    "shares_of_a_sum": (
        "integer division",
        """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
counts = torch.tensor([3, 40, 7])
weights = counts // counts.sum()  #- here
weights = counts / counts.sum()  #+
for i in range(6):
    x = torch.randn(30, 3)
    kind = torch.randint(0, 3, (30,))
    errors = (net(x).squeeze(1) - x.sum(1)).pow(2)
    loss = (errors * (1 + weights[kind])).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "quotients_picked_out_and_multiplied": (
        "integer division",
        """
table = torch.randint(1, 100, (64,))
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
share = table // 100  #- here
share = table / 100  #+
for i in range(6):
    index = torch.randint(0, 64, (32,))
    x = torch.randn(32, 4)
    loss = ((net(x).squeeze(1) - x[:, 0]).pow(2) * share[index]).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "a_lambda_seeds_the_workers": (
        "no seed reaches",
        """
class Jitter(Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        return torch.ones(4) * (random.random() - 0.5)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for x in DataLoader(
    Jitter(),
    batch_size=8,
    num_workers=2,
    worker_init_fn=lambda worker: random.seed(),  #- here
    worker_init_fn=lambda worker: random.seed(worker),  #+
):
    loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "the_signal_dies_before_the_head": (
        "vanish",
        """
class Deep(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.first = nn.Linear(4, 16)
        self.blocks = nn.ModuleList(nn.Linear(16, 16) for _ in range(depth))
        self.head = nn.Linear(16, 2)
        for block in self.blocks:
            nn.init.normal_(block.weight, std=0.02)  #-
            nn.init.xavier_normal_(block.weight)  #+
            nn.init.zeros_(block.bias)
    def forward(self, x):
        x = torch.tanh(self.first(x))  # here
        for block in self.blocks:
            x = torch.tanh(block(x))
        return self.head(x)
net = Deep(8)
opt = torch.optim.Adam(net.parameters(), lr=1e-4)
for i in range(8):
    x = torch.randn(32, 4)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "two_lists_filled_in_one_loop": (
        "plain list",
        """
class Heads(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.qs, self.ks = [], []  #- here
        self.qs, self.ks = nn.ParameterList(), nn.ParameterList()  #+
        for _ in range(heads):
            self.qs.append(nn.Parameter(torch.randn(d, d) * d**-0.5))
            self.ks.append(nn.Parameter(torch.randn(d, d) * d**-0.5))
        self.out = nn.Linear(d * heads, 1)
    def forward(self, x):
        outs = []
        for q, k in zip(self.qs, self.ks):
            a = ((x @ q) @ (x @ k).transpose(1, 2) / x.shape[-1] ** 0.5).softmax(-1)
            outs.append(a @ x)
        return self.out(torch.cat(outs, -1)).mean(1)
net = Heads(8, 2)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(6):
    x = torch.randn(16, 5, 8)
    loss = F.mse_loss(net(x), x.mean((1, 2)).unsqueeze(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "a_helper_repeats_one_module": (
        "they share their weights",
        """
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.ff = nn.LayerNorm(d), nn.Linear(d, d)
    def forward(self, x):
        return x + self.ff(self.norm(x)).relu()
def clones(layer, n):
    return nn.Sequential(*[layer for _ in range(n)])  #- here
    return nn.Sequential(*[copy.deepcopy(layer) for _ in range(n)])  #+
net = nn.Sequential(nn.Linear(6, 8), clones(Block(8), 3), nn.Linear(8, 2))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for i in range(6):
    x = torch.randn(32, 6)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "a_parameter_read_as_a_number": (
        "cut off",
        """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(1.5))
        self.fc = nn.Linear(5, 3)
    def forward(self, x):
        return self.fc(x) / self.temperature.item()  #- here
        return self.fc(x) / self.temperature  #+
net = Scaled()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(6):
    x = torch.randn(32, 5)
    opt.zero_grad()
    F.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    opt.step()
""",
    ),
    "a_teacher_is_trained_through_the_divergence": (
        "target of a loss",
        """
teacher = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
student = nn.Linear(8, 4)
opt = torch.optim.Adam(student.parameters(), lr=1e-3)
for i in range(6):
    x = torch.randn(32, 8)
    wanted = F.softmax(teacher(x) / 2, dim=1)
    wanted = wanted.detach()  #+
    loss = F.kl_div(F.log_softmax(student(x) / 2, dim=1), wanted, reduction="batchmean")  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "drawn_with_replacement_before_the_split": (
        "overlap",
        """
x = torch.randn(100, 8)
y = x.sum(1, keepdim=True)
index = torch.randint(0, 100, (150,))  #-
index = torch.cat([torch.randint(0, 70, (110,)), torch.randint(70, 100, (40,))])  #+
train = TensorDataset(x[index[:110]], y[index[:110]])
valid = TensorDataset(x[index[110:]], y[index[110:]])
net = nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
train_loader = DataLoader(train, 22, shuffle=True)
valid_loader = DataLoader(valid, 20)  # here
for epoch in range(2):
    for a, b in train_loader:
        opt.zero_grad()
        F.mse_loss(net(a), b).backward()
        opt.step()
    with torch.no_grad():
        errors = [F.mse_loss(net(a), b).item() for a, b in valid_loader]
""",
    ),
    "recurrent_weights_too_large": (
        "explode",
        """
W = nn.Parameter(torch.randn(16, 16) * 1.2)  #-
W = nn.Parameter(torch.eye(16))  #+
U = nn.Parameter(torch.randn(3, 16) * 0.3)
head = nn.Linear(16, 1)
opt = torch.optim.SGD([W, U, *head.parameters()], lr=1e-6)
for i in range(6):
    x = torch.randn(8, 20, 3)
    h = torch.zeros(8, 16)
    for t in range(20):
        h = h @ W + x[:, t] @ U  # here
    loss = F.mse_loss(head(h), x.mean((1, 2)).unsqueeze(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "total_weighted_by_the_batch": (
        "running total",
        """
model, head = nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 1)
opt = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)
epoch_loss = 0
for i in range(12):
    x = torch.randn(8, 6, 4)
    out, _ = model(x)
    loss = F.mse_loss(head(out[:, -1]), x.mean((1, 2)).unsqueeze(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    epoch_loss += loss * x.size(0)  #- here
    epoch_loss += loss.item() * x.size(0)  #+
""",
    ),
    "table_of_positions_in_double": (
        "float64",
        """
class Positions(nn.Module):
    def __init__(self, d, n=50):
        super().__init__()
        at, i = np.arange(n)[:, None], np.arange(d)[None]
        table = np.sin(at / np.power(10000, 2 * (i // 2) / d))
        table = table.astype("float32")  #+
        self.register_buffer("table", torch.from_numpy(table))
    def forward(self, x):
        return x + self.table[: x.size(1)]  # here
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.at = nn.Embedding(30, 8), Positions(8)
        self.gain = nn.Parameter(torch.ones(8))
    def forward(self, words):
        return (self.at(self.embed(words)) * self.gain).mean(1)
model = Model()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for i in range(6):
    loss = model(torch.randint(0, 30, (16, 10))).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "cleared_in_every_part_of_a_step": (
        "cleared before a step has used them",
        """
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for i in range(20):
    x = torch.randn(16, 6)
    if i % 4 == 0: opt.zero_grad()  #+
    opt.zero_grad()  #- here
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long()) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        opt.step()
""",
    ),
    "a_number_wrapped_again": (
        "cut off",
        """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(6):
    x = torch.randn(32, 4)
    error = F.mse_loss(net(x), x[:, :1])
    loss = torch.tensor(error.item(), requires_grad=True)  #- here
    loss = error  #+
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "data_wrapped_in_a_variable": (
        "cut off",
        """
def custom_loss(scores, labels):
    loss = F.cross_entropy(scores, labels)
    return torch.autograd.Variable(loss.data, requires_grad=True)  #- here
    return loss  #+
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
opt = torch.optim.SGD(net.parameters(), lr=1e-2)
for i in range(6):
    x = torch.randn(32, 4)
    loss = custom_loss(net(x), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "error_rate_made_to_require_grad": (
        "cut off",
        """
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=1e-2)
for i in range(6):
    x = torch.randn(32, 4)
    y = x[:, :3].argmax(1)
    loss = (net(x).argmax(1) != y).float().mean()  #- here
    loss.requires_grad_()  #-
    loss = F.cross_entropy(net(x), y)  #+
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "backward_named_and_not_called": (
        "steps without gradients",
        """
net = nn.Linear(5, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-2)
for i in range(6):
    x = torch.randn(32, 5)
    opt.zero_grad()
    loss = F.mse_loss(net(x), x[:, :1])
    loss.backward  #-
    loss.backward()  #+
    opt.step()  # here
""",
    ),
    "clamp_in_the_place_of_relu": (
        "dead ReLU",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 24), nn.Linear(24, 1)
        nn.init.constant_(self.a.bias, -15)  #-
    def forward(self, x):
        return self.b(self.a(x).clamp(min=0))  # here
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for i in range(6):
    x = torch.randn(32, 6)
    loss = F.mse_loss(net(x), x[:, :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "clipped_after_the_step": (
        "clipped where it has no effect",
        """
net, out = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 1)
params = [*net.parameters(), *out.parameters()]
opt = torch.optim.Adam(params, lr=1e-3)
for i in range(6):
    x = torch.randn(8, 6, 3)
    loss = F.mse_loss(out(net(x)[0]), x[..., :1])
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, 0.5)  #+
    opt.step()
    nn.utils.clip_grad_norm_(params, 0.5)  #- here
""",
    ),
    "clipped_before_backward": (
        "clipped where it has no effect",
        """
net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(6):
    x = torch.randn(8, 3)
    loss = F.mse_loss(net(x), x[:, :1])
    opt.zero_grad(set_to_none=False)
    nn.utils.clip_grad_value_(net.parameters(), 0.5)  #- here
    loss.backward()
    nn.utils.clip_grad_value_(net.parameters(), 0.5)  #+
    opt.step()
""",
    ),
    "a_plain_step_on_scaled_gradients": (
        "steps with gradients that are still scaled",
        """
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")
for i in range(6):
    x = torch.randn(32, 6)
    loss = F.mse_loss(net(x), x[:, :1])
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)  #+
    scaler.update()  #+
    opt.step()  #- here
""",
    ),
    "losses_of_validation_kept": (
        "kept with their graphs",
        """
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
history = {"train": [], "val": []}
for epoch in range(8):
    x, other = torch.randn(64, 8), torch.randn(64, 8)
    loss = F.mse_loss(net(x), x[:, :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
    history["train"].append(loss.item())
    net.eval()
    error = F.mse_loss(net(other), other[:, :1])
    history["val"].append(error)  #- here
    history["val"].append(error.item())  #+
    net.train()
""",
    ),
    "mean_absolute_error_of_a_column_and_a_vector": (
        "broadcast",
        """
class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 1))
    def forward(self, x):
        return self.net(x)
    def loss(self, batch):
        x, wanted = batch
        wanted = wanted.unsqueeze(1)  #+
        return nn.L1Loss()(self(x), wanted)  # here
x = torch.randn(90, 7)
model = Regression()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for batch in DataLoader(TensorDataset(x, x[:, 0] ** 2), 15, shuffle=True):
    opt.zero_grad()
    model.loss(batch).backward()
    opt.step()
""",
    ),
    "code_rounded_on_the_way": (
        "cut off",
        """
encoder, decoder = nn.Linear(6, 3), nn.Linear(3, 6)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
for i in range(6):
    x = torch.randn(20, 6)
    code = encoder(x)
    code = code.round()  #- here
    code = code + (code.round() - code).detach()  #+
    loss = F.mse_loss(decoder(code), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "tested_with_detach_in_training_mode": (
        "evaluated in training mode",
        """
net = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
def train():
    for _ in range(4):
        x = torch.randn(24, 5)
        loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
def test():
    right = 0
    net.eval()  #+
    for _ in range(4):
        x = torch.randn(24, 5)
        out = net(x).detach()  # here
        right += (out.argmax(1) == x[:, :3].argmax(1)).sum().item()
    return right / 96
train()
test()
""",
    ),
    "phases_by_set_grad_enabled": (
        "evaluated in training mode",
        """
net = nn.Sequential(
    nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 2)
)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
def run(phase):
    net.train(phase == "train")  #+
    for _ in range(8):
        x = torch.randn(16, 6)
        opt.zero_grad()
        with torch.set_grad_enabled(phase == "train"):
            out = net(x)  # here
            loss = F.cross_entropy(out, (x[:, 0] > 0).long())
            if phase == "train":
                loss.backward()
                opt.step()
for epoch in range(2):
    for phase in ("train", "val"):
        run(phase)
""",
    ),
    "value_of_another_network_as_target": (
        "target of a loss",
        """
q = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
old = copy.deepcopy(q)
actor = nn.Linear(4, 1)
opt = torch.optim.Adam(q.parameters(), lr=1e-3)
for i in range(6):
    s, following = torch.randn(32, 4), torch.randn(32, 4)
    action, reward = torch.rand(32, 1), torch.randn(32, 1)
    wanted = reward + 0.99 * old(torch.cat([following, torch.tanh(actor(following))], 1))
    wanted = wanted.detach()  #+
    loss = F.mse_loss(q(torch.cat([s, action], 1)), wanted)  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
}
