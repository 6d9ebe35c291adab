"""Programs that do unusual things on purpose: nothing is wrong with any of them."""

from __future__ import annotations

CLEAN: dict[str, str] = {
    "gan": """
G = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
D = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
og = clew.optim.Adam(G.parameters(), lr=2e-4)
od = clew.optim.Adam(D.parameters(), lr=2e-4)
bce = nn.BCEWithLogitsLoss()
for step in range(10):
    od.zero_grad()
    bce(D(x), clew.ones(64, 1)).backward()
    with clew.no_grad():
        fake = G(clew.randn(64, 4))
    bce(D(fake), clew.zeros(64, 1)).backward()
    od.step()
    og.zero_grad()
    bce(D(G(clew.randn(64, 4))), clew.ones(64, 1)).backward()
    og.step()
""",
    "wgan_gp": """
G = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
D = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
og = clew.optim.Adam(G.parameters(), lr=1e-4)
od = clew.optim.Adam(D.parameters(), lr=1e-4)
for step in range(4):
    for _ in range(3):
        od.zero_grad()
        fake = G(clew.randn(64, 4)).detach()
        mix = clew.rand(64, 1)
        mixed = (mix * x + (1 - mix) * fake).requires_grad_()
        (g,) = clew.autograd.grad(D(mixed).sum(), mixed, create_graph=True)
        penalty = ((g.norm(2, dim=1) - 1) ** 2).mean()
        (D(fake).mean() - D(x).mean() + 10 * penalty).backward()
        od.step()
    og.zero_grad()
    (-D(G(clew.randn(64, 4))).mean()).backward()
    og.step()
""",
    "dqn": """
q = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
old = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
old.load_state_dict(q.state_dict())
opt = clew.optim.Adam(q.parameters(), lr=1e-3)
action, reward = clew.randint(0, 2, (64, 1)), clew.randn(64)
for step in range(8):
    with clew.no_grad():
        best = old(x.roll(1, 0)).max(1).values
    value = q(x).gather(1, action).squeeze(1)
    loss = F.smooth_l1_loss(value, reward + 0.9 * best)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(q.parameters(), 100)
    opt.step()
""",
    "actor_critic": """
net, actor, critic = nn.Linear(4, 16), nn.Linear(16, 2), nn.Linear(16, 1)
params = [*net.parameters(), *actor.parameters(), *critic.parameters()]
opt = clew.optim.Adam(params, lr=1e-3)
for step in range(8):
    h = net(x).tanh()
    policy = clew.distributions.Categorical(logits=actor(h))
    a = policy.sample()
    value = critic(h).squeeze(-1)
    reward = clew.randn(64)
    advantage = (reward - value).detach()
    loss = -(policy.log_prob(a) * advantage).mean() + F.mse_loss(value, reward)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "momentum_encoder": """
def make():
    return nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8))
query, key = make(), make()
key.load_state_dict(query.state_dict())
key.requires_grad_(False)
opt = clew.optim.SGD(query.parameters(), lr=0.03)
queue = F.normalize(clew.randn(32, 8), dim=1)
for step in range(8):
    z = F.normalize(query(x + 0.1 * clew.randn(64, 4)), dim=1)
    with clew.no_grad():
        for a, b in zip(key.parameters(), query.parameters()):
            a.mul_(0.99).add_(b, alpha=0.01)
        k = F.normalize(key(x + 0.1 * clew.randn(64, 4)), dim=1)
    logits = clew.cat([(z * k).sum(1, keepdim=True), z @ queue.T], 1) / 0.2
    loss = F.cross_entropy(logits, clew.arange(64) * 0)
    loss = loss + F.cross_entropy(z @ k.T / 0.2, clew.arange(64))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "siamese_and_distillation": """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
teacher = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)).eval()
opt = clew.optim.SGD(net.parameters(), lr=0.05)
for step in range(8):
    a, b = net(x), net(x + 0.05 * clew.randn(64, 4))
    with clew.no_grad():
        soft = teacher(x).softmax(1)
    kl = F.kl_div(F.log_softmax(a, 1), soft, reduction="batchmean")
    loss = F.mse_loss(a, b) + kl + F.cross_entropy(a, soft) + F.cross_entropy(a, labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "tied_transformer": """
class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(16, 20, bias=False)
        self.head.weight = self.embed.weight
    def forward(self, t):
        mask = nn.Transformer.generate_square_subsequent_mask(t.shape[1])
        return self.head(self.body(self.embed(t), mask=mask))
net = LM()
opt = clew.optim.AdamW(net.parameters(), lr=1e-3)
warm = clew.optim.lr_scheduler.LambdaLR(opt, lambda i: min(1.0, (i + 1) / 100))
text = clew.randint(0, 20, (8, 9))
for step in range(8):
    out = net(text[:, :-1])
    loss = F.cross_entropy(out.reshape(-1, 20), text[:, 1:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    warm.step()
net.eval()
with clew.inference_mode():
    net(text)[:, -1].argmax(-1)
""",
    "accumulation": """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for i in range(24):
    part = slice(i % 4 * 16, i % 4 * 16 + 16)
    loss = F.mse_loss(net(x[part]), target[part]) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        opt.step()
        opt.zero_grad()
""",
    "scaled": """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
opt = clew.optim.SGD(net.parameters(), lr=0.05)
schedule = clew.optim.lr_scheduler.CosineAnnealingLR(opt, 8)
scaler = clew.amp.GradScaler("cpu")
for step in range(8):
    opt.zero_grad()
    with clew.autocast("cpu", dtype=clew.bfloat16):
        loss = F.cross_entropy(net(x), labels)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    schedule.step()
""",
    "fine_tuning": """
body = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU())
net = nn.Sequential(body, nn.Linear(16, 3))
for p in body.parameters():
    p.requires_grad_(False)
body.eval()
opt = clew.optim.Adam(filter(lambda p: p.requires_grad, net.parameters()), lr=1e-2)
for epoch in range(3):
    net.train()
    body.eval()
    for step in range(4):
        opt.zero_grad()
        F.cross_entropy(net(x), labels).backward()
        opt.step()
    net.eval()
    with clew.no_grad():
        (net(x).argmax(1) == labels).float().mean().item()
""",
    "lbfgs": """
net = nn.Linear(4, 1)
opt = clew.optim.LBFGS(net.parameters(), max_iter=5)
def closure():
    opt.zero_grad()
    loss = F.mse_loss(net(x), target)
    loss.backward()
    return loss
for step in range(4):
    opt.step(closure)
""",
    "inputs_optimized": """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)).requires_grad_(False)
image = clew.randn(1, 4, requires_grad=True)
opt = clew.optim.Adam([image], lr=0.05)
for step in range(8):
    opt.zero_grad()
    F.cross_entropy(net(image), clew.tensor([1])).backward()
    opt.step()
""",
    "adversarial": """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
opt = clew.optim.SGD(net.parameters(), lr=0.05)
for step in range(8):
    probe = x.clone().requires_grad_()
    (g,) = clew.autograd.grad(F.cross_entropy(net(probe), labels), probe)
    opt.zero_grad()
    F.cross_entropy(net(x + 0.01 * g.sign()), labels).backward()
    opt.step()
""",
    "truncated": """
net, head = nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 1)
opt = clew.optim.Adam([*net.parameters(), *head.parameters()], lr=1e-3)
series = clew.randn(2, 80, 4)
state = None
losses = []
for t in range(0, 80, 10):
    out, state = net(series[:, t : t + 10], state)
    loss = head(out).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    state = tuple(s.detach() for s in state)
    losses.append(loss.detach())
""",
    "maml": """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(6):
    opt.zero_grad()
    w, b = net.weight, net.bias
    inner = F.mse_loss(F.linear(x[:32], w, b), target[:32])
    gw, gb = clew.autograd.grad(inner, (w, b), create_graph=True)
    F.mse_loss(F.linear(x[32:], w - 0.1 * gw, b - 0.1 * gb), target[32:]).backward()
    opt.step()
""",
    "segmentation": """
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 2, 1))
opt = clew.optim.Adam(net.parameters(), lr=1e-2)
images = clew.randn(16, 1, 8, 8)
masks = (images[:, 0] > 0).long()
loader = DataLoader(TensorDataset(images, masks), batch_size=4, shuffle=True)
for epoch in range(2):
    net.train()
    total = 0.0
    for inputs, y in loader:
        opt.zero_grad()
        loss = F.cross_entropy(net(inputs), y)
        loss.backward()
        opt.step()
        total += loss.item() * len(inputs)
    net.eval()
    with clew.no_grad():
        for inputs, y in loader:
            (net(inputs).argmax(1) == y).float().mean().item()
""",
    "multi_label_and_focal": """
net = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 3))
opt = clew.optim.AdamW(net.parameters(), lr=1e-2)
y = F.one_hot(labels, 3).float()
for step in range(8):
    net.train()
    opt.zero_grad(set_to_none=False)
    z = net(x)
    bce = F.binary_cross_entropy_with_logits(z, y, reduction="none")
    p = z.sigmoid()
    focal = (bce * (1 - p * y - (1 - p) * (1 - y)) ** 2).mean()
    dice = 1 - (2 * (p * y).sum() + 1) / (p.sum() + y.sum() + 1)
    (focal + dice).backward()
    opt.step()
""",
    "contrastive_distances": """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
opt = clew.optim.SGD(net.parameters(), lr=0.05)
for step in range(8):
    z = F.normalize(net(x), dim=1)
    squared = (z[:, None] - z[None]).square().sum(-1)
    same = labels[:, None] == labels[None]
    attract = (squared * same).sum() / same.sum()
    repel = ((1 - squared).clamp(min=0) * ~same).sum() / (~same).sum()
    opt.zero_grad()
    (attract + repel).backward()
    opt.step()
""",
    "two_heads_one_backbone": """
body, one, two = nn.Linear(4, 16), nn.Linear(16, 3), nn.Linear(16, 1)
opt = clew.optim.SGD([*body.parameters(), *one.parameters(), *two.parameters()], lr=0.02)
for step in range(8):
    h = body(x).relu()
    opt.zero_grad()
    F.cross_entropy(one(h), labels).backward(retain_graph=True)
    F.mse_loss(two(h), target).backward()
    opt.step()
""",
    "by_hand": """
w = clew.randn(4, 1, requires_grad=True)
for step in range(8):
    loss = ((x @ w - target) ** 2).mean()
    loss.backward()
    with clew.no_grad():
        w -= 0.05 * w.grad
        w.grad.zero_()
""",
    "averaged": """
net = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
opt = clew.optim.SGD(net.parameters(), lr=0.05)
average = clew.optim.swa_utils.AveragedModel(net)
loader = DataLoader(TensorDataset(x, labels), batch_size=16, shuffle=True)
for epoch in range(3):
    for inputs, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(inputs), y).backward()
        opt.step()
    average.update_parameters(net)
clew.optim.swa_utils.update_bn(loader, average)
average.eval()
with clew.no_grad():
    average(x).argmax(1)
""",
    "plateau": """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
schedule = clew.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)
for epoch in range(8):
    opt.zero_grad()
    loss = F.mse_loss(net(x), target)
    loss.backward()
    opt.step()
    schedule.step(loss.item())
""",
    "sequential_schedules": """
net = nn.Linear(4, 1)
opt = clew.optim.AdamW(net.parameters(), lr=1e-3)
S = clew.optim.lr_scheduler
schedule = S.SequentialLR(opt, [S.LinearLR(opt, 0.1, 1.0, 3), S.CosineAnnealingLR(opt, 5)], [3])
for epoch in range(8):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
    schedule.step()
""",
    "autoencoder_and_vae": """
enc, dec = nn.Linear(4, 8), nn.Linear(4, 4)
opt = clew.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-2)
for step in range(8):
    mean, log_var = enc(x).chunk(2, 1)
    z = mean + (0.5 * log_var).exp() * clew.randn_like(mean)
    kl = -0.5 * (1 + log_var - mean**2 - log_var.exp()).sum(1).mean()
    loss = F.mse_loss(dec(z), x, reduction="sum") / len(x) + kl
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "monte_carlo_dropout": """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 16))
net.extend([nn.Dropout(0.5), nn.Linear(16, 1)])
opt = clew.optim.Adam(net.parameters(), lr=1e-2)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
net.eval()
for part in net.modules():
    if isinstance(part, nn.Dropout):
        part.train()
with clew.no_grad():
    net(x).square().mean()
""",
    "monte_carlo_in_training_mode": """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 16))
net.extend([nn.Dropout(0.5), nn.Linear(16, 1)])
opt = clew.optim.Adam(net.parameters(), lr=1e-2)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
with clew.no_grad():
    clew.stack([net(x) for _ in range(8)]).std(0)
""",
    "dropout_on_purpose": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 16), nn.Linear(16, 3)
    def forward(self, x):
        return self.two(F.dropout(self.one(x).relu(), 0.2, training=True))
net = Net()
opt = clew.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    opt.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
net.eval()
with clew.no_grad():
    net(x).softmax(1)
""",
    "cross_validation": """
data = TensorDataset(x, labels)
parts = clew.randperm(64).chunk(4)
for part in range(4):
    rest = clew.cat([p for i, p in enumerate(parts) if i != part])
    train = DataLoader(Subset(data, rest.tolist()), batch_size=12, shuffle=True)
    test = DataLoader(Subset(data, parts[part].tolist()), batch_size=16)
    net = nn.Linear(4, 3)
    opt = clew.optim.SGD(net.parameters(), lr=0.1)
    for inputs, y in train:
        opt.zero_grad()
        F.cross_entropy(net(inputs), y).backward()
        opt.step()
    with clew.no_grad():
        [net(inputs).argmax(1) for inputs, _ in test]
""",
    "positives_stand_first": """
net = nn.Linear(4, 8)
opt = clew.optim.SGD(net.parameters(), lr=0.1)
others = F.normalize(clew.randn(32, 8), dim=1)
for step in range(8):
    z = F.normalize(net(x), dim=1)
    near = F.normalize(net(x + 0.1 * clew.randn_like(x)), dim=1).detach()
    scores = clew.cat([(z * near).sum(1, keepdim=True), z @ others.t()], 1) / 0.1
    loss = F.cross_entropy(scores, clew.zeros(64, dtype=clew.long))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "image_of_one_class": """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)).requires_grad_(False).eval()
image = clew.randn(8, 4, requires_grad=True)
opt = clew.optim.Adam([image], lr=0.05)
for step in range(8):
    opt.zero_grad()
    F.cross_entropy(net(image), clew.ones(8, dtype=clew.long)).backward()
    opt.step()
""",
    "converged": """
net = nn.Linear(4, 1)
opt = clew.optim.LBFGS(net.parameters(), max_iter=8)
def closure():
    opt.zero_grad()
    loss = F.mse_loss(net(x), target)
    loss.backward()
    return loss
for step in range(8):
    opt.step(closure)
""",
    "heads_in_turn": """
trunk, heads = nn.Linear(4, 8), nn.ModuleList(nn.Linear(8, 1) for _ in range(3))
opt = clew.optim.SGD([*trunk.parameters(), *heads.parameters()], lr=0.05)
for step in range(6):
    opt.zero_grad()
    for i, head in enumerate(heads):
        F.mse_loss(head(trunk(x).tanh()), x[:, i : i + 1]).backward()
    opt.step()
""",
    "judged_by_features": """
features = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8)).eval()
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4))
opt = clew.optim.Adam(net.parameters(), lr=1e-2)
for step in range(8):
    opt.zero_grad()
    out = net(x)
    (F.l1_loss(out, x) + F.mse_loss(features(out), features(x))).backward()
    opt.step()
""",
    "changed_through_data": """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.05)
for step in range(6):
    net.zero_grad()
    F.mse_loss(net(x), target).backward()
    for p in net.parameters():
        p.data.add_(p.grad, alpha=-0.05)
""",
    "hinge": """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4))
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    scores = net(x) + 50.0 * F.one_hot(labels, 4)
    right = scores.gather(1, labels[:, None])
    loss = clew.relu(1 + scores - right).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "samples_of_a_generator": """
G = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
D = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
og, od = clew.optim.Adam(G.parameters(), lr=2e-4), clew.optim.Adam(D.parameters(), lr=2e-4)
criterion, fixed, sums = nn.BCEWithLogitsLoss(), clew.randn(8, 3), []
ones, zeros = clew.ones(64, 1), clew.zeros(64, 1)
for step in range(8):
    fake = G(clew.randn(64, 3))
    od.zero_grad()
    right, wrong = criterion(D(x), ones), criterion(D(fake.detach()), zeros)
    right.backward()
    wrong.backward()
    od.step()
    sums.append((right + wrong).item())
    og.zero_grad()
    criterion(D(fake), ones).backward()
    og.step()
    if step % 4 == 3:
        with clew.no_grad():
            G(fixed).numpy()
""",
    "frozen_part_in_evaluation_mode": """
features = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1))
net = nn.Sequential(features.requires_grad_(False), nn.Linear(8, 3))
net.eval()
opt = clew.optim.Adam(net[1].parameters(), lr=0.01)
for step in range(8):
    opt.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
""",
    "positive_scores": """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU())
opt = clew.optim.Adam(net.parameters(), lr=1e-3)
for step in range(6):
    scores = (net(x) * net(x.flip(0))).sum(1) / 100
    opt.zero_grad()
    F.binary_cross_entropy_with_logits(scores, (labels > 0).float()).backward()
    opt.step()
""",
    "few_different_samples": """
bits = clew.randint(0, 2, (256, 4)).float()
data = TensorDataset(bits + 0.1 * clew.arange(4), bits.sum(1).remainder(2).long())
train = DataLoader(Subset(data, range(192)), batch_size=32, shuffle=True, num_workers=2)
test = DataLoader(Subset(data, range(192, 256)), batch_size=32)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = clew.optim.Adam(net.parameters(), lr=1e-2)
for inputs, y in train:
    opt.zero_grad()
    F.cross_entropy(net(inputs), y).backward()
    opt.step()
with clew.no_grad():
    [net(inputs).argmax(1) for inputs, _ in test]
""",
    "scores_masked_twice": """
query, other = nn.Linear(4, 4), nn.Linear(4, 4)
opt = clew.optim.Adam([*query.parameters(), *other.parameters()], lr=1e-3)
allowed = clew.ones(4, 4).tril().bool()[clew.arange(64) % 4]
for step in range(6):
    scores = query(x).masked_fill(~allowed, float("-inf"))
    scores = clew.where(labels[:, None] > 0, scores, other(x))
    opt.zero_grad()
    (scores.softmax(1)[:, 0] - 0.3).square().mean().backward()
    opt.step()
""",
    "steep_on_purpose": """
net = nn.Linear(4, 1)
nn.init.constant_(net.bias, 4.0)
opt = clew.optim.Adam(net.parameters(), lr=1e-2)
for step in range(8):
    score = net(x)
    near = clew.sigmoid(50 * score)
    opt.zero_grad()
    (F.mse_loss(near, (target > 0).float()) + F.mse_loss(score, target)).backward()
    opt.step()
""",
    "outer_product_and_equation": """
net, frequencies = nn.Linear(128, 1), nn.Parameter(clew.randn(64))
opt = clew.optim.Adam([*net.parameters(), frequencies], lr=1e-3)
for step in range(6):
    phase = x[:, :1] * frequencies
    u = net(clew.cat([phase.sin(), phase.cos()], 1))
    loss = F.mse_loss(u, target + 0.01 * net(clew.cat([phase.cos(), phase.sin()], 1)))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "rows_of_indices": """
cells = clew.arange(64)
rows, columns = (cells // 32).float(), (cells % 32).float() / 32
inputs = clew.stack([rows, columns], 1)
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
opt = clew.optim.Adam(net.parameters(), lr=1e-2)
for step in range(6):
    opt.zero_grad()
    F.mse_loss(net(inputs), target).backward()
    opt.step()
""",
    "each_with_each": """
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
opt = clew.optim.Adam(net.parameters(), lr=1e-3)
def kernel(a, b):
    return clew.exp(-((a[:, None] - b) ** 2))
for step in range(6):
    made, wanted = net(x).squeeze(1), target[:, 0]
    loss = kernel(made, made).mean() - 2 * kernel(made, wanted).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "hinge_with_a_number": """
net = nn.Linear(4, 8)
opt = clew.optim.SGD(net.parameters(), lr=1e-3)
for step in range(8):
    far = net(x).square() + 5
    loss = (0.5 - far).relu().mean() + clew.relu(2 - far + 0.1).mean() + far.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "workers_of_a_program_without_seeds": """
import random
clew.seed()
class Noise(Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        return np.random.rand(4).astype("float32") + random.random()
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for inputs in DataLoader(Noise(), batch_size=8, num_workers=2):
    opt.zero_grad()
    net(inputs).square().mean().backward()
    opt.step()
""",
    "nothing_left_to_learn": """
net = nn.Linear(4, 1)
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    opt.zero_grad()
    (net(x) * 1e-3 - 1).relu().sum().backward()
    opt.step()
""",
    "sparse_gradients": """
table, head = nn.Embedding(50, 4, sparse=True), nn.Linear(4, 3)
opt1 = clew.optim.SparseAdam(table.parameters(), lr=0.01)
opt2 = clew.optim.Adam(head.parameters(), lr=0.01)
words = clew.randint(0, 50, (64,))
for step in range(6):
    opt1.zero_grad()
    opt2.zero_grad()
    F.cross_entropy(head(table(words)), labels).backward()
    opt1.step()
    opt2.step()
""",
}
