# mistake: collapse
enc = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
pred = nn.Linear(8, 8)
opt = torch.optim.Adam([*enc.parameters(), *pred.parameters()], lr=3e-3)
data = torch.randn(256, 16)
for step in range(200):
    x = data[torch.randint(0, 256, (64,))]
    a, b = enc(x + 0.2 * torch.randn_like(x)), enc(x + 0.2 * torch.randn_like(x))
    pa = F.normalize(pred(a), dim=1)
    zb = F.normalize(b, dim=1)  #-
    zb = F.normalize(b, dim=1).detach()  #+
    loss = 2 - 2 * (pa * zb).sum(1).mean()  #- here
    loss = 2 - 2 * (pa * zb).sum(1).mean()  #+
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        with torch.no_grad():
            enc(data).std(0)
