# mistake: learning rate does not fit
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
rate = 1e-8  #-
rate = 1e-5  #+
opt = clew.optim.Adam(net.parameters(), lr=rate)  # here
for step in range(8):
    opt.zero_grad()
    F.mse_loss(net(x), target).backward()
    opt.step()
