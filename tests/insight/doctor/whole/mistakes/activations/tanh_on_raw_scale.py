# mistake: saturated
x = torch.randn(100, 4)
y = x.sum(1, keepdim=True)
net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
with torch.no_grad():
    for p in net[0].parameters():
        p.normal_(0, 50)  #-
        p.normal_(0, 0.5)  #+
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(10):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
