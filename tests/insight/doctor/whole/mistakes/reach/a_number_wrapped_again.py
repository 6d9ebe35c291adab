# mistake: cut off
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(6):
    x = torch.randn(32, 4)
    error = F.mse_loss(net(x), x[:, :1])
    loss = torch.tensor(error.item(), requires_grad=True)  #- here
    loss = error  #+
    opt.zero_grad()
    loss.backward()
    opt.step()
