# mistake: softmax
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2 = nn.Linear(4, 24), nn.Linear(24, 3)
    def forward(self, x):
        x = self.l2(torch.relu(self.l1(x)))
        return torch.softmax(x, dim=0)  #- here
        return torch.softmax(x, dim=1)  #+

pi = Policy()
opt = torch.optim.Adam(pi.parameters(), lr=1e-3)
for ep in range(10):
    s = torch.randn(30, 4)
    probs = pi(s)
    with torch.no_grad():
        a = torch.multinomial(probs, 1)
    r = (a.squeeze(1) == s[:, :3].argmax(1)).float()
    logp = torch.log(probs.gather(1, a).squeeze(1))
    loss = -(logp * (r - r.mean())).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
