# mistake: learning rate does not fit
x = torch.randn(256, 8)
y = (x @ torch.randn(8, 3)).argmax(1)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
settings = {"lr": 1e-7}  #-
settings = {"lr": 1e-3}  #+
opt = torch.optim.Adam(net.parameters(), lr=settings["lr"])  # here
for epoch in range(4):
    for idx in torch.randperm(256).split(32):
        opt.zero_grad()
        F.cross_entropy(net(x[idx]), y[idx]).backward()
        opt.step()
