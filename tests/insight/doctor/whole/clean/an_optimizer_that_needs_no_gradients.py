class Climber(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})
    @torch.no_grad()
    def step(self, closure):
        best = closure()
        for group in self.param_groups:
            for p in group["params"]:
                old = p.clone()
                p.add_(0.1 * torch.randn_like(p))
                now = closure()
                if now > best:
                    p.copy_(old)
                best = min(best, now)
        return best
net = nn.Linear(4, 1)
opt = Climber(net.parameters())
x = torch.randn(32, 4)
for i in range(8):
    opt.step(lambda: F.mse_loss(net(x), x[:, :1]).item())
