class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU())
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        return self.head(self.body(x))

net = Net()
net.body.requires_grad_(False)
opt = torch.optim.AdamW([{"params": net.head.parameters(), "lr": 1e-2}], weight_decay=0.01)
for epoch in range(4):
    if epoch == 2:
        net.body.requires_grad_(True)
        opt.add_param_group({"params": net.body.parameters(), "lr": 1e-3})
    net.train()
    if epoch < 2:
        net.body.eval()
    for _ in range(4):
        x = torch.randn(32, 8)
        opt.zero_grad()
        F.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
        opt.step()
