critic = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 2))
maker = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 5))
for p in critic.parameters():
    p.requires_grad_(False)
opt = torch.optim.Adam(maker.parameters(), lr=1e-3)
valid = torch.LongTensor(16).fill_(1)
for step in range(10):
    opt.zero_grad()
    loss = F.cross_entropy(critic(maker(torch.randn(16, 3))), valid)
    loss.backward()
    opt.step()
