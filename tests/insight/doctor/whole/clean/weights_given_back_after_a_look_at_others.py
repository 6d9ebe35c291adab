net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
mean = copy.deepcopy(net.state_dict())
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(12):
    x = torch.randn(16, 6)
    opt.zero_grad()
    F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
    opt.step()
    with torch.no_grad():
        for k, v in net.state_dict().items():
            mean[k].lerp_(v, 0.1)
    if i % 4 == 3:
        kept = {k: v.clone() for k, v in net.state_dict().items()}
        net.load_state_dict(mean)
        net.eval()
        with torch.no_grad():
            net(torch.randn(8, 6))
        net.load_state_dict(kept)
        net.train()
