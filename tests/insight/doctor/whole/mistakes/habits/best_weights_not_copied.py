# mistake: given its own state
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), 1e-2)
X = torch.randn(128, 5)
Y = X.sum(1, keepdim=True)
best, state = float("inf"), None
for epoch in range(4):
    for k in torch.randperm(128).split(32):
        opt.zero_grad()
        F.mse_loss(net(X[k]), Y[k]).backward()
        opt.step()
    with torch.no_grad():
        error = F.mse_loss(net(X), Y).item()
    if error < best and epoch < 3:
        best = error
        state = net.state_dict()  #- here
        state = copy.deepcopy(net.state_dict())  #+
net.load_state_dict(state)
