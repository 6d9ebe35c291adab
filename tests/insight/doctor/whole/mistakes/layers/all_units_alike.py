# mistake: alike
def weights(m):
    if isinstance(m, nn.Linear):
        nn.init.constant_(m.weight, 0.05)  #- here
        nn.init.xavier_uniform_(m.weight)  #+
        nn.init.zeros_(m.bias)

class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 32)
        self.fc2 = nn.Linear(32, 32)
        self.fc3 = nn.Linear(32, 1)
        self.apply(weights)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))

x = torch.randn(128, 8)
y = x[:, :1] * x[:, 1:2]
net = Regressor()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(4):
    for a, b in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        loss = F.mse_loss(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
