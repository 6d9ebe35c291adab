# mistake: is no Parameter
class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.pos = torch.zeros(1, 5, 12, requires_grad=True)  #- here
        self.pos = nn.Parameter(torch.zeros(1, 5, 12))  #+
        self.proj, self.head = nn.Linear(6, 12), nn.Linear(12, 2)
    def forward(self, x):
        return self.head(torch.relu(self.proj(x) + self.pos).mean(1))
net = Patches()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(8, 5, 6)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0, 0] > 0).long()).backward()
    opt.step()
