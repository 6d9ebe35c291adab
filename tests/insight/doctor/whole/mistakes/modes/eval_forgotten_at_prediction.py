# mistake: evaluated in training mode
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.5))
        self.head = nn.Linear(32, 2)
    def forward(self, x):
        return self.head(self.body(x))
    def predict(self, x):
        self.eval()  #+
        with torch.inference_mode():
            return self(x).softmax(1)  # here
net = Net()
x = torch.randn(120, 6)
y = (x[:, 0] > 0).long()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(3):
    net.train()  #+
    for rows in torch.randperm(100).split(25):
        loss = F.cross_entropy(net(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    accuracy = (net.predict(x[100:]).argmax(1) == y[100:]).float().mean().item()
