x = torch.randn(600, 10)
y = (x[:, 0] + 0.3 * torch.randn(600) > 2.2).float()
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
net[-1].bias.data.fill_(math.log(0.02 / 0.98))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True)
for epoch in range(2):
    for a, b in loader:
        logit = net(a).squeeze(-1)
        loss = F.binary_cross_entropy_with_logits(logit, b, pos_weight=torch.tensor(20.0))
        opt.zero_grad()
        loss.backward()
        opt.step()
with torch.no_grad():
    p = net(x).sigmoid().squeeze(-1)
    print(((p > 0.5).float() == y).float().mean())
