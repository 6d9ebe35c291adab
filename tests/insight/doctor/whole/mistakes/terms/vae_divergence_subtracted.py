# mistake: divergence
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.d = nn.Linear(12, 8), nn.Linear(4, 12)
    def forward(self, x):
        m, s = self.e(x).chunk(2, 1)
        return self.d(m + s.mul(0.5).exp() * torch.randn_like(m)), m, s

net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(10):
    x = torch.rand(32, 12)
    out, m, s = net(x)
    rec = F.mse_loss(out, x)
    kld = torch.mean(-0.5 * torch.sum(1 + s - m**2 - s.exp(), dim=1), dim=0)
    loss = rec - 0.1 * kld  #- here
    loss = rec + 0.1 * kld  #+
    opt.zero_grad()
    loss.backward()
    opt.step()
