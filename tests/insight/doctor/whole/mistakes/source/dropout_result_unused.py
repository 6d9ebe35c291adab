# mistake: thrown away
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(10, 32), nn.Linear(32, 3)
        self.dropout = nn.Dropout(0.5)
    def forward(self, x):
        x = torch.relu(self.fc1(x))
        self.dropout(x)  #- here
        x = self.dropout(x)  #+
        return self.fc2(x)

net = Head()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(10):
    x = torch.randn(32, 10)
    loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
