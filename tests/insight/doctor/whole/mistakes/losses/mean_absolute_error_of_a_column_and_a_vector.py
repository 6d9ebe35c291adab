# mistake: broadcast
class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 1))
    def forward(self, x):
        return self.net(x)
    def loss(self, batch):
        x, wanted = batch
        wanted = wanted.unsqueeze(1)  #+
        return nn.L1Loss()(self(x), wanted)  # here
x = torch.randn(90, 7)
model = Regression()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for batch in DataLoader(TensorDataset(x, x[:, 0] ** 2), 15, shuffle=True):
    opt.zero_grad()
    model.loss(batch).backward()
    opt.step()
