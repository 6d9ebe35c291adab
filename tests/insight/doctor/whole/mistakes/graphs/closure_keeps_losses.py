# mistake: kept with their graphs
def make_logger(every):
    curve = []

    def log(step, **values):
        curve.append({"step": step, **values})  #- here
        curve.append({"step": step, **{k: float(v) for k, v in values.items()}})  #+
        if step % every == 0:
            print(step, *(f"{k}={float(v):.3f}" for k, v in values.items()))

    return log, curve

class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(20, 12), nn.ReLU(), nn.Linear(12, 4))
        self.dec = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 20))

    def forward(self, x):
        code = self.enc(x)
        return self.dec(code), code

model = AutoEncoder()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
log, curve = make_logger(5)
for step in range(20):
    x = torch.randn(16, 20)
    out, code = model(x)
    rec, sparse = F.mse_loss(out, x), code.abs().mean()
    opt.zero_grad()
    (rec + 0.01 * sparse).backward()
    opt.step()
    log(step, rec=rec, sparse=sparse)
