class Gathering(torch.optim.Optimizer):
    def __init__(self, optimizer, every):
        self.optimizer, self.every, self.count = optimizer, every, 0

    @property
    def param_groups(self):
        return self.optimizer.param_groups

    def step(self, closure=None):
        self.count += 1
        if self.count % self.every == 0:
            self.optimizer.step()

    def zero_grad(self, set_to_none=True):
        if self.count % self.every == 0:
            self.optimizer.zero_grad(set_to_none=set_to_none)

net = nn.Linear(6, 2)
opt = Gathering(torch.optim.AdamW(net.parameters(), lr=1e-2), 2)
for i in range(24):
    x = torch.randn(8, 6)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long()) / 2
    loss.backward()
    opt.step()
    opt.zero_grad()
