# mistake: kept with their graphs
class Meter:
    def __init__(self):
        self.values = {}

    def update(self, **kw):
        for k, v in kw.items():
            self.values.setdefault(k, []).append(v)  #- here
            self.values.setdefault(k, []).append(float(v))  #+

meter = Meter()
gen = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 6))
opt = torch.optim.Adam(gen.parameters(), lr=1e-3)
for i in range(12):
    x = torch.randn(32, 6)
    out = gen(x)
    rec = F.l1_loss(out, x)
    reg = out.pow(2).mean()
    loss = rec + 0.01 * reg
    opt.zero_grad()
    loss.backward()
    opt.step()
    meter.update(loss=loss, rec=rec, reg=reg)
