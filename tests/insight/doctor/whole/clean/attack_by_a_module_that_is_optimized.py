class Patch(nn.Module):
    def __init__(self):
        super().__init__()
        self.delta = nn.Parameter(torch.zeros(1, 8))
    def forward(self, x):
        return x + self.delta.tanh() * 0.3
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).eval()
for p in net.parameters():
    p.requires_grad = False
patch = Patch()
opt = torch.optim.Adam(patch.parameters(), lr=0.02)
for i in range(12):
    x = torch.randn(32, 8)
    y = x[:, :3].argmax(1)
    opt.zero_grad()
    (-F.cross_entropy(net(patch(x)), y)).backward()
    opt.step()
