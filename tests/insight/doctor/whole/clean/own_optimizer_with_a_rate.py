class Plain(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {})
        self.lr = lr

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.sub_(self.lr * p.grad)

net = nn.Linear(6, 2)
opt = Plain(net.parameters(), 0.1)
for i in range(10):
    if i == 5:
        opt.lr = 0.05
    x = torch.randn(32, 6)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
    opt.step()
net.training == False
