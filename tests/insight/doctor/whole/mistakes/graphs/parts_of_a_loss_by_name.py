# mistake: kept with their graphs
class Log:
    def __init__(self):
        self.by_name = {}

    def note(self, **parts):
        for name, part in parts.items():
            self.by_name.setdefault(name, []).append(part)  #- here
            self.by_name.setdefault(name, []).append(part.item())  #+

body = nn.Sequential(nn.Linear(6, 24), nn.Tanh())
where, what = nn.Linear(24, 2), nn.Linear(24, 3)
opt = torch.optim.Adam([*body.parameters(), *where.parameters(), *what.parameters()], lr=2e-3)
log = Log()
for step in range(16):
    x = torch.randn(32, 6)
    h = body(x)
    place = (where(h) - x[:, :2]).abs().mean()
    kind = F.nll_loss(F.log_softmax(what(h), 1), x[:, 2:5].argmax(1))
    opt.zero_grad()
    (0.5 * place + kind).backward()
    opt.step()
    log.note(place=place, kind=kind)
