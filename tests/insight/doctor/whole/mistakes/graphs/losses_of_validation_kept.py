# mistake: kept with their graphs
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
history = {"train": [], "val": []}
for epoch in range(8):
    x, other = torch.randn(64, 8), torch.randn(64, 8)
    loss = F.mse_loss(net(x), x[:, :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
    history["train"].append(loss.item())
    net.eval()
    error = F.mse_loss(net(other), other[:, :1])
    history["val"].append(error)  #- here
    history["val"].append(error.item())  #+
    net.train()
