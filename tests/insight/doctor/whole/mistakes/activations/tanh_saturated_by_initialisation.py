# mistake: saturated
class Actor(nn.Module):
    def __init__(self, obs=24, act=4, width=256):
        super().__init__()
        self.l1 = nn.Linear(obs, width)
        self.l2 = nn.Linear(width, width)
        self.l3 = nn.Linear(width, act)
        for layer in (self.l1, self.l2):  #-
            nn.init.normal_(layer.weight, mean=0.0, std=1.0)  #-

    def forward(self, s):
        h = torch.tanh(self.l1(s))
        h = torch.tanh(self.l2(h))  # here
        return self.l3(h)

actor = Actor()
expert = nn.Linear(24, 4)
opt = torch.optim.Adam(actor.parameters(), lr=3e-4)
for step in range(12):
    s = torch.randn(64, 24)
    with torch.no_grad():
        a = expert(s)
    loss = (actor(s) - a).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
