# mistake: dead ReLU
class Above(nn.Module):
    def __init__(self, inputs, units, least):
        super().__init__()
        self.line = nn.Linear(inputs, units)
        self.least = nn.Parameter(torch.full((units,), least))

    def forward(self, x):
        return F.relu(self.line(x) - self.least)  # here

least = 7.0  #-
least = 0.1  #+
net = nn.Sequential(Above(10, 24, 0.0), Above(24, 24, least), nn.Dropout(0.1), nn.Linear(24, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(25):
    x = torch.randn(40, 10)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > x[:, 1]).long()).backward()
    opt.step()
