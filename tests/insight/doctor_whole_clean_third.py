"""A third set of whole programs with nothing wrong; see doctor_whole_clean.py."""

from __future__ import annotations

from doctor_whole_clean_fourth import FOURTH_CLEAN

THIRD_CLEAN: dict[str, str] = {
    "noise_of_its_own_in_each_step": """
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    with torch.random.fork_rng():
        torch.manual_seed(7)
        probe = torch.randn(4, 6)
    x = torch.randn(16, 6)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
    opt.step()
    with torch.no_grad():
        net.eval()(probe)
        net.train()
""",
    "first_order_maml_with_one_output": """
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1, bias=False))
scale = nn.Parameter(torch.tensor(1.0))
opt = torch.optim.Adam([*net.parameters(), scale], lr=1e-3)
def error(s, x, phase):
    return F.mse_loss(s * net(x), torch.sin(x + phase))
for i in range(8):
    total = 0.0
    for task in range(2):
        phase = torch.rand(()) * 3
        fast = scale
        for inner in range(3):
            (g,) = torch.autograd.grad(error(fast, torch.rand(10, 1), phase), [fast])
            fast = fast - 0.1 * g
        total = total + error(fast, torch.rand(10, 1), phase)
    opt.zero_grad()
    total.backward()
    opt.step()
""",
    "weights_given_back_after_a_look_at_others": """
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
mean = copy.deepcopy(net.state_dict())
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(12):
    x = torch.randn(16, 6)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
    opt.step()
    with torch.no_grad():
        for k, v in net.state_dict().items():
            mean[k].lerp_(v, 0.1)
    if i % 4 == 3:
        kept = {k: v.clone() for k, v in net.state_dict().items()}
        net.load_state_dict(mean)
        net.eval()
        with torch.no_grad():
            net(torch.randn(8, 6))
        net.load_state_dict(kept)
        net.train()
""",
    "one_candidate_now_and_then": """
q, k = nn.Linear(6, 8), nn.Linear(6, 8)
opt = torch.optim.Adam([*q.parameters(), *k.parameters()], 1e-3)
for i in range(12):
    x, c = torch.randn(8, 6), torch.randn(8, [1, 4, 3][i % 3], 6)
    y = (x[:, None] * c).sum(-1).argmax(1)
    loss = F.cross_entropy((q(x)[:, None] * k(c)).sum(-1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "optimizers_of_copies": """
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
for i in range(8):
    fast = copy.deepcopy(net)
    opt = torch.optim.Adam(fast.parameters(), 0.01)
    x = torch.rand(10, 1)
    opt.zero_grad()
    F.mse_loss(fast(x), torch.sin(x)).backward()
    opt.step()
    with torch.no_grad():
        for p, f in zip(net.parameters(), fast.parameters()):
            p.lerp_(f, 0.3)
""",
    "features_of_a_teacher_before_its_relu": """
teacher = nn.Linear(6, 12).requires_grad_(False)
student = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 12), nn.ReLU())
opt = torch.optim.Adam(student.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(32, 6)
    loss = F.mse_loss(student(x), teacher(x))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "actor_critic_with_a_detached_advantage": """
body, policy, critic = nn.Linear(4, 16), nn.Linear(16, 2), nn.Linear(16, 1)
opt = torch.optim.Adam([*body.parameters(), *policy.parameters(), *critic.parameters()], 1e-3)
alpha = nn.Parameter(torch.zeros(()))
for i in range(8):
    s = torch.randn(32, 4)
    h = torch.tanh(body(s))
    dist = torch.distributions.Categorical(logits=policy(h))
    action = dist.sample()
    advantage = s[:, 0] * (2 * action.float() - 1) - critic(h).squeeze(1)
    scores = dist.log_prob(action) * advantage.detach()
    loss = advantage.pow(2).mean() - scores.mean() - 0.01 * dist.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "optimizer_of_an_attack_on_each_batch": """
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(16, 6)
    y = (x[:, 0] > 0).long()
    d = torch.zeros_like(x, requires_grad=True)
    attack = torch.optim.SGD([d], 0.1)
    for _ in range(2):
        attack.zero_grad()
        (-F.cross_entropy(net(x + d), y)).backward()
        attack.step()
    opt.zero_grad()
    F.cross_entropy(net(x + d.detach()), y).backward()
    opt.step()
""",
    **FOURTH_CLEAN,
}
