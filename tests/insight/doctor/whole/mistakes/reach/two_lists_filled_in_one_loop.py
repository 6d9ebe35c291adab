# mistake: plain list
class Heads(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.qs, self.ks = [], []  #- here
        self.qs, self.ks = nn.ParameterList(), nn.ParameterList()  #+
        for _ in range(heads):
            self.qs.append(nn.Parameter(torch.randn(d, d) * d**-0.5))
            self.ks.append(nn.Parameter(torch.randn(d, d) * d**-0.5))
        self.out = nn.Linear(d * heads, 1)
    def forward(self, x):
        outs = []
        for q, k in zip(self.qs, self.ks):
            a = ((x @ q) @ (x @ k).transpose(1, 2) / x.shape[-1] ** 0.5).softmax(-1)
            outs.append(a @ x)
        return self.out(torch.cat(outs, -1)).mean(1)
net = Heads(8, 2)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(6):
    x = torch.randn(16, 5, 8)
    loss = F.mse_loss(net(x), x.mean((1, 2)).unsqueeze(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
