# mistake: kept with their graphs
history = {"loss": [], "rate": []}
net = nn.Sequential(nn.Linear(6, 20), nn.SiLU(), nn.Linear(20, 3))
opt = torch.optim.AdamW(net.parameters(), 1e-3)
def log(**kw):
    for k, v in kw.items():
        history[k].append(v)  #- here
        history[k].append(float(v))  #+
for i in range(12):
    x = torch.randn(24, 6)
    loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    log(loss=loss, rate=1e-3)
