# mistake: called twice, and one like it never
class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(8, 32)
        self.fc1 = nn.Linear(32, 32)
        self.fc2 = nn.Linear(32, 32)
        self.out = nn.Linear(32, 3)

    def forward(self, x):
        x = F.relu(self.inp(x))
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc1(x))  #- here
        x = F.relu(self.fc2(x))  #+
        return self.out(x)

net = MLP()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for _ in range(10):
    x = torch.randn(32, 8)
    opt.zero_grad()
    F.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    opt.step()
