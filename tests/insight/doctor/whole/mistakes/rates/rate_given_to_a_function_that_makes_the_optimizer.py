# mistake: learning rate does not fit
def optimizer_for(net, rate):
    biases = [p for p in net.parameters() if p.dim() < 2]
    groups = [{"params": [p for p in net.parameters() if p.dim() > 1]}, {"params": biases}]
    return torch.optim.Adam(groups, lr=rate)  # here

x = torch.randn(120, 6)
y = x[:, :2].prod(1, keepdim=True)
net = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
rate = 0.6  #-
rate = 6e-3  #+
opt = optimizer_for(net, rate)
for epoch in range(4):
    for rows in torch.randperm(120).split(40):
        opt.zero_grad()
        F.mse_loss(net(x[rows]), y[rows]).backward()
        opt.step()
