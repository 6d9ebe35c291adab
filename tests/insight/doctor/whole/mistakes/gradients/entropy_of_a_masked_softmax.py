# mistake: slope is infinite
class Pointer(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.score = nn.Linear(4, 16), nn.Linear(16, 1)

    def forward(self, x, mask):
        scores = self.score(torch.tanh(self.enc(x))).squeeze(-1)
        return scores.masked_fill(~mask, float("-inf")).softmax(-1)

def entropy(p):
    return -(p * p.log()).sum(-1)  #- here
    return -torch.special.xlogy(p, p.clamp(min=1e-8)).sum(-1)  #+

net = Pointer()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(10):
    x = torch.randn(16, 6, 4)
    mask = torch.rand(16, 6) > 0.3
    mask[:, 0] = True
    p = net(x, mask)
    reward = (p * x[..., 0]).sum(-1)
    loss = -reward.mean() - 0.01 * entropy(p).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
