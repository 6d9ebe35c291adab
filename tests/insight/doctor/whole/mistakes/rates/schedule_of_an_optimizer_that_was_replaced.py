# mistake: schedule
def make(net, lr):
    return torch.optim.AdamW(net.parameters(), lr=lr)

net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = make(net, 1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)
optimizer = make(net, 3e-3)  #-
for step in range(16):
    x = torch.randn(32, 5)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()  # here
