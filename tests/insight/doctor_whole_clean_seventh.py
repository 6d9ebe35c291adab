"""Whole programs without a mistake that look like the mistakes of the eighth and ninth set."""

from __future__ import annotations

from doctor_whole_clean_eighth import EIGHTH_CLEAN

SEVENTH_CLEAN: dict[str, str] = {
    "steps_by_hand_over_two_batches": """
w = (torch.randn(6, 1) * 0.3).requires_grad_()
b = torch.zeros(1, requires_grad=True)
for i in range(15):
    for part in range(2):
        x = torch.randn(16, 6)
        loss = ((x @ w + b - x[:, :1] * 2) ** 2).mean() / 2
        loss.backward()
    with torch.no_grad():
        for p in (w, b):
            p -= 0.05 * p.grad
            p.grad.zero_()
""",
    "momentum_in_the_gradients": """
w = (torch.randn(6, 1) * 0.3).requires_grad_()
for i in range(15):
    x = torch.randn(32, 6)
    F.mse_loss(x @ w, x[:, :1] * 2).backward()
    with torch.no_grad():
        w -= 0.02 * w.grad
        w.grad *= 0.9
""",
    "gradients_that_are_none_by_hand": """
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
for i in range(15):
    x = torch.randn(32, 6)
    F.mse_loss(net(x), x[:, :1] ** 2).backward()
    for p in net.parameters():
        p.data.sub_(p.grad, alpha=0.05)
        p.grad = None
""",
    "training_that_begins_later": """
net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
begins = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: 0.0 if step < 8 else 1.0)
for i in range(20):
    x = torch.randn(32, 6)
    opt.zero_grad()
    F.mse_loss(net(x), x[:, :1]).backward()
    opt.step()
    begins.step()
""",
    "rate_halved_by_whole_numbers_of_epochs": """
net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
halved = torch.optim.lr_scheduler.LambdaLR(opt, lambda epoch: 0.5 ** (epoch // 4))
for i in range(20):
    x = torch.randn(32, 6)
    opt.zero_grad()
    F.mse_loss(net(x), x[:, :1]).backward()
    opt.step()
    halved.step()
""",
    "attack_on_a_frozen_model": """
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).eval().requires_grad_(False)
x, y = torch.randn(16, 8), torch.arange(16) % 3
delta = nn.Parameter(torch.zeros(16, 8))
opt = torch.optim.Adam([delta], lr=0.01)
for i in range(12):
    opt.zero_grad()
    loss = -F.cross_entropy(net(x + delta), y)
    loss.backward()
    opt.step()
    delta.data.clamp_(-0.1, 0.1)
""",
    "attack_by_a_module_that_is_optimized": """
class Patch(nn.Module):
    def __init__(self):
        super().__init__()
        self.delta = nn.Parameter(torch.zeros(1, 8))
    def forward(self, x):
        return x + self.delta.tanh() * 0.3
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).eval()
for p in net.parameters():
    p.requires_grad = False
patch = Patch()
opt = torch.optim.Adam(patch.parameters(), lr=0.02)
for i in range(12):
    x = torch.randn(32, 8)
    y = x[:, :3].argmax(1)
    opt.zero_grad()
    (-F.cross_entropy(net(patch(x)), y)).backward()
    opt.step()
""",
    "maximised_on_purpose": """
net = nn.Sequential(nn.Embedding(20, 8), nn.Flatten(), nn.Linear(32, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1, maximize=True)
for i in range(12):
    ids = torch.randint(0, 20, (16, 4))
    opt.zero_grad()
    (-F.nll_loss(F.log_softmax(net(ids), 1), ids.sum(1) % 3)).backward()
    opt.step()
""",
    "drawn_until_it_will_do": """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for i in range(12):
    for trial in range(8):
        x = torch.randn(16, 4)
        loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
        if trial >= 2:
            break
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "refined_and_judged_at_the_end": """
step_of = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
opt = torch.optim.Adam(step_of.parameters(), lr=2e-3)
for i in range(12):
    x = torch.randn(32, 3)
    guess, trace = torch.zeros(32, 3), []
    for k in range(4):
        guess = guess + step_of(torch.cat([x, guess], 1))
        loss = F.mse_loss(guess, x.abs())
        trace.append(loss.item())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "losses_of_a_loop_added_up": """
net = nn.GRUCell(3, 12)
out = nn.Linear(12, 3)
opt = torch.optim.Adam([*net.parameters(), *out.parameters()], lr=2e-3)
for i in range(12):
    x = torch.randn(7, 16, 3)
    h, loss = torch.zeros(16, 12), 0.0
    for t in range(6):
        h = net(x[t], h)
        loss = loss + F.mse_loss(out(h), x[t])
    opt.zero_grad()
    (loss / 6).backward()
    opt.step()
""",
    "matrix_that_is_the_same_by_its_seed": """
def sketch(x, width):
    g = torch.Generator().manual_seed(3)
    matrix = torch.randn(x.shape[-1], width, generator=g)
    return torch.cos(x @ matrix)
net = nn.Linear(24, 1)
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for i in range(12):
    x = torch.randn(32, 5)
    opt.zero_grad()
    F.mse_loss(net(sketch(x, 24)), x[:, :1] ** 2).backward()
    opt.step()
""",
    "pictures_of_fixed_noise": """
gen = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(gen.parameters(), lr=2e-3)
def show():
    g = torch.Generator().manual_seed(0)
    with torch.no_grad():
        return gen(torch.randn(4, 4, generator=g)).mean().item()
for i in range(12):
    z = torch.randn(32, 4)
    out = gen(z)
    loss = (out.mean(0) - 1).square().sum() + (out.std(0) - 1).square().sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    show()
""",
    "state_handed_on_step_by_step": """
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.GRU(3, 10, num_layers=2), nn.Linear(20, 2)
    def forward(self, x):
        state = None
        for t in range(x.shape[0]):
            _, state = self.rnn(x[t : t + 1], state)
        return self.out(state.transpose(0, 1).reshape(x.shape[1], -1))
net = Reader()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for i in range(10):
    x = torch.randn(6, 16, 3)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[0, :, 0] > 0).long()).backward()
    opt.step()
""",
    "average_that_begins_quickly": """
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
average = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for i in range(14):
    x = torch.randn(32, 5)
    opt.zero_grad()
    F.mse_loss(net(x), x[:, :1] + 0.1 * average(x)).backward()
    opt.step()
    decay = min(0.999, (1 + i) / (10 + i))
    with torch.no_grad():
        for a, p in zip(average.parameters(), net.parameters()):
            a.lerp_(p, 1 - decay)
""",
    "copied_after_each_step": """
actor = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 2))
old = copy.deepcopy(actor).requires_grad_(False)
opt = torch.optim.Adam(actor.parameters(), lr=3e-3)
for i in range(14):
    x = torch.randn(64, 5)
    with torch.no_grad():
        before = torch.distributions.Categorical(logits=old(x))
        a = before.sample()
        gain = torch.where(a == (x[:, 0] > 0).long(), 1.0, -1.0)
    now = torch.distributions.Categorical(logits=actor(x))
    ratio = (now.log_prob(a) - before.log_prob(a)).exp()
    opt.zero_grad()
    (-(ratio * gain).mean() - 0.01 * now.entropy().mean()).backward()
    opt.step()
    old.load_state_dict(actor.state_dict())
""",
    "classes_brought_to_the_end": """
net = nn.Sequential(nn.Conv1d(3, 12, 3, padding=1), nn.GroupNorm(1, 12), nn.ReLU(),
                    nn.Conv1d(12, 4, 1))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for i in range(10):
    x = torch.randn(8, 3, 10)
    y = (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0)
    scores = net(x)
    opt.zero_grad()
    loss = F.cross_entropy(scores.permute(0, 2, 1).reshape(-1, 4), y.reshape(-1))
    (loss + 0.1 * F.cross_entropy(scores.view(8, 4, -1), y.view(8, -1))).backward()
    opt.step()
""",
    "metric_beside_the_loss": """
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.a, self.b = nn.Linear(6, 16), nn.Linear(16, 1), nn.Linear(16, 3)
    def forward(self, x):
        h = self.body(x).tanh()
        return self.a(h), self.b(h)
net = Two()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for i in range(12):
    x = torch.randn(32, 6)
    value, scores = net(x)
    loss = F.mse_loss(value, x[:, :1])
    print(loss.item())
    if i % 2:
        loss = F.cross_entropy(scores, x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([p for p in net.parameters() if p.grad is not None], 1.0)
    opt.step()
""",
    "empty_memory_that_is_written_to": """
class Layer(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(a, b))
        self.bias = nn.Parameter(torch.empty(b))
        self.reset_parameters()
    def reset_parameters(self):
        nn.init.kaiming_uniform_(self.weight)
        nn.init.zeros_(self.bias)
    def forward(self, x):
        return x @ self.weight + self.bias
net = nn.Sequential(Layer(6, 16), nn.ReLU(), Layer(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for i in range(8):
    x = torch.randn(32, 6)
    opt.zero_grad()
    F.mse_loss(net(x), x[:, :1]).backward()
    opt.step()
""",
    "empty_memory_that_is_written_to_by_data": """
class Layer(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.weight = nn.Parameter(torch.Tensor(a, b))
    def forward(self, x):
        return x @ self.weight
def start(module):
    for p in module.parameters():
        p.data.uniform_(-0.3, 0.3)
net = nn.Sequential(Layer(6, 16), nn.ReLU(), Layer(16, 1))
start(net)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for i in range(8):
    x = torch.randn(32, 6)
    opt.zero_grad()
    F.mse_loss(net(x), x[:, :1]).backward()
    opt.step()
""",
    "all_distances_of_predictions_and_targets": """
net = nn.Linear(4, 6)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for i in range(8):
    x = torch.randn(5, 4)
    boxes = torch.rand(5, 6)
    out = net(x)
    far = F.mse_loss(out.unsqueeze(1).expand(5, 5, 6), boxes.unsqueeze(0).expand(5, 5, 6),
                     reduction="none").sum(-1)
    opt.zero_grad()
    far.min(1).values.mean().backward()
    opt.step()
""",
    "predictions_refined_and_the_last_one_counts": """
cell, out = nn.GRUCell(3, 12), nn.Linear(12, 3)
opt = torch.optim.Adam([*cell.parameters(), *out.parameters()], lr=3e-3)
for i in range(8):
    x = torch.randn(32, 3)
    h, errors = torch.zeros(32, 12), []
    for k in range(5):
        h = cell(x, h)
        loss = F.smooth_l1_loss(out(h), x.flip(1))
        errors.append(loss.detach())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    **EIGHTH_CLEAN,
}
