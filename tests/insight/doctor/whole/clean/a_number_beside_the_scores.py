body, kind, amount = nn.Linear(10, 32), nn.Linear(32, 1), nn.Linear(32, 1)
net = nn.ModuleList([body, kind, amount])
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(64, 10)
    y, z = (x[:, 0] > 0).float(), x[:, 1]
    h = F.relu(body(x))
    one, two = kind(h).squeeze(1), amount(h).squeeze(1)
    loss = F.binary_cross_entropy_with_logits(one, y) + F.mse_loss(two, z)
    opt.zero_grad()
    loss.backward()
    opt.step()
    right = ((two > 0.5) == (z > 0.5)).float().mean()
