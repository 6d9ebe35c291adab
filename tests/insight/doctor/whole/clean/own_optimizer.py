class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["m"] = torch.zeros_like(p)
                m = state["m"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_((m * b1 + p.grad * (1 - b1)).sign(), alpha=-group["lr"])
                m.mul_(b2).add_(p.grad, alpha=1 - b2)

x = torch.randn(100, 5)
y = x.pow(2).sum(1, keepdim=True).sqrt()
model = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = Lion(model.parameters(), lr=1e-3, weight_decay=0.01)
for step in range(12):
    rows = torch.randint(0, 100, (25,))
    optimizer.zero_grad()
    F.l1_loss(model(x[rows]), y[rows]).backward()
    optimizer.step()
