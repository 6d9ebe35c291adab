# mistake: steps before the optimizer
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 16), nn.Mish(), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x)

def run_epoch(model, loader, optimizer, scheduler):
    scheduler.step()  #- here
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    scheduler.step()  #+

x = torch.randn(90, 5)
y = x[:, :1] * x[:, 1:2]
loader = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 4], gamma=0.1)
for epoch in range(5):
    run_epoch(model, loader, optimizer, scheduler)
