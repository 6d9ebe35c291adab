# mistake: cut off
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(1.5))
        self.fc = nn.Linear(5, 3)
    def forward(self, x):
        return self.fc(x) / self.temperature.item()  #- here
        return self.fc(x) / self.temperature  #+
net = Scaled()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(6):
    x = torch.randn(32, 5)
    opt.zero_grad()
    F.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    opt.step()
