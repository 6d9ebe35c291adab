class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.LazyConv2d(8, 3)
        self.bn = nn.BatchNorm2d(8)
        self.fc = nn.LazyLinear(3)
        self.kept = {}
        self.conv.register_forward_hook(lambda m, i, o: self.kept.update(conv=o.detach()))

    def forward(self, x):
        return self.fc(F.relu(self.bn(self.conv(x))).flatten(1))

net = Net()
net(torch.zeros(2, 1, 8, 8))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
x, y = torch.randn(48, 1, 8, 8), torch.randint(0, 3, (48,))
x.requires_grad_(False)
x.sub_(x.mean()).div_(x.std())
batches = iter(DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True))
next(batches)
for a, b in batches:
    pass
for step in range(8):
    i = torch.randint(0, 48, (16,))
    opt.zero_grad()
    loss = F.cross_entropy(net(x[i]), y[i])
    loss.backward()
    opt.step()
    net.kept["conv"].abs().mean().item()
    torch.rand(1)
with torch.no_grad():
    net.eval()
    net(x[:1])
    net.kept["conv"].shape
