class Mixture(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.gate = nn.Linear(d, n)
        self.experts = nn.ModuleList(nn.Linear(d, d) for _ in range(n))

    def forward(self, x):
        p = self.gate(x).softmax(-1)
        weight, index = p.max(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            mine = index == i
            if mine.any():
                out[mine] = weight[mine, None] * expert(x[mine])
        load = (F.one_hot(index, p.shape[1]).float().mean(0) * p.mean(0)).sum() * p.shape[1]
        return x + out, load

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = Mixture(8, 16)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(6))
        self.fc = nn.Linear(8, 1)

    def forward(self, x):
        x, load = self.mix(x)
        for layer in self.layers:
            if not self.training or random.random() > 0.5:
                x = x + F.relu(layer(x))
        return self.fc(x), load

net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(12):
    x = torch.randn(16, 8)
    out, load = net(x)
    loss = F.mse_loss(out, x.sum(1, keepdim=True)) + 0.01 * load
    opt.zero_grad()
    loss.backward()
    opt.step()
