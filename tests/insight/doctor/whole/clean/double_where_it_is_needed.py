class Density(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 6))

    def forward(self, x):
        raw = self.net(x).double()
        low = torch.diag_embed(F.softplus(raw[:, :3]) + 1e-3)
        low[:, 1, 0], low[:, 2, 0], low[:, 2, 1] = raw[:, 3], raw[:, 4], raw[:, 5]
        return low @ low.transpose(1, 2)

net = Density()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(15):
    x = torch.randn(32, 3)
    target = (x * (1 + x[:, :1].abs())).double()
    S = net(x)
    solved = torch.linalg.solve(S, target.unsqueeze(-1)).squeeze(-1)
    loss = 0.5 * ((target * solved).sum(-1) + torch.logdet(S)).mean()
    opt.zero_grad()
    loss.float().backward()
    opt.step()
