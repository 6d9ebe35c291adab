"""An eighteenth set of whole programs with a silent mistake; see doctor_whole.py."""

from __future__ import annotations

EIGHTEENTH: dict[str, tuple[str, str]] = {
    "rate_given_to_a_function_that_makes_the_optimizer": (
        "learning rate does not fit",
        """
def optimizer_for(net, rate):
    biases = [p for p in net.parameters() if p.dim() < 2]
    groups = [{"params": [p for p in net.parameters() if p.dim() > 1]}, {"params": biases}]
    return torch.optim.Adam(groups, lr=rate)  # here

x = torch.randn(120, 6)
y = x[:, :2].prod(1, keepdim=True)
net = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
rate = 0.6  #-
rate = 6e-3  #+
opt = optimizer_for(net, rate)
for epoch in range(4):
    for rows in torch.randperm(120).split(40):
        opt.zero_grad()
        F.mse_loss(net(x[rows]), y[rows]).backward()
        opt.step()
""",
    ),
    "rate_of_a_slip_under_a_schedule": (
        "learning rate does not fit",
        """
x = torch.randn(160, 8)
y = (x[:, 0] > x[:, 1]).long()
net = nn.Sequential(nn.Linear(8, 24), nn.GELU(), nn.Linear(24, 2))
rate = 5e-9  #-
rate = 5e-4  #+
opt = torch.optim.AdamW(net.parameters(), lr=rate)  # here
wave = lambda step: min(1.0, (step + 1) / 5) * 0.5 * (1 + math.cos(math.pi * step / 41))
falls = torch.optim.lr_scheduler.LambdaLR(opt, wave)
for step in range(40):
    rows = torch.randint(0, 160, (32,))
    opt.zero_grad()
    F.cross_entropy(net(x[rows]), y[rows]).backward()
    opt.step()
    falls.step()
""",
    ),
    "rate_of_a_slip_beside_a_long_warm_up": (
        "learning rate does not fit",
        """
x = torch.randn(160, 8)
y = (x[:, 0] > x[:, 1]).long()
net = nn.Sequential(nn.Linear(8, 24), nn.GELU(), nn.Linear(24, 2))
opt = torch.optim.Adam(net.parameters(), lr=2e-9)  #- here
falls = torch.optim.lr_scheduler.StepLR(opt, 10, gamma=0.5)  #-
opt = torch.optim.Adam(net.parameters(), lr=1e-4)  #+
grows = lambda step: (step % 30 + 1) * 1e-6  #+
falls = torch.optim.lr_scheduler.LambdaLR(opt, grows)  #+
for step in range(40):
    rows = torch.randint(0, 160, (32,))
    opt.zero_grad()
    F.cross_entropy(net(x[rows]), y[rows]).backward()
    opt.step()
    falls.step()
""",
    ),
    "rate_that_a_search_has_at_first": (
        "learning rate does not fit",
        """
x = torch.randn(160, 8)
y = x[:, :1] - x[:, 1:2]
net = nn.Sequential(nn.Linear(8, 24), nn.ELU(), nn.Linear(24, 1))
opt = torch.optim.SGD(net.parameters(), lr=1e-8, momentum=0.9)  # here
change = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9)  #-
change = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=1.1)  #+
for step in range(30):
    rows = torch.randint(0, 160, (32,))
    opt.zero_grad()
    F.mse_loss(net(x[rows]), y[rows]).backward()
    opt.step()
    change.step()
""",
    ),
}
