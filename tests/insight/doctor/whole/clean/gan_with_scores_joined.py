g = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
d = nn.Sequential(nn.Linear(3, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(g.parameters(), lr=1e-3)
opt_d = torch.optim.Adam(d.parameters(), lr=1e-3)

def adversarial(scores, wanted):
    return F.binary_cross_entropy_with_logits(scores, wanted)

for step in range(12):
    real = torch.randn(32, 3) * 0.5 + 1
    fake = g(torch.randn(32, 4))
    scores = torch.cat([d(real), d(fake.detach())])
    wanted = torch.cat([torch.ones(32, 1), torch.zeros(32, 1)])
    opt_d.zero_grad()
    adversarial(scores, wanted).backward()
    opt_d.step()
    opt_g.zero_grad()
    adversarial(d(fake), torch.ones(32, 1)).backward()
    opt_g.step()
