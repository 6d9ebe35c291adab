# mistake: saturated activation
class Elman(nn.Module):
    def __init__(self, inputs, size):
        super().__init__()
        self.take = nn.Parameter(torch.randn(inputs, size) * 4)  #-
        self.keep = nn.Parameter(torch.randn(size, size) * 4)  #-
        self.take = nn.Parameter(torch.randn(inputs, size) * 0.3)  #+
        self.keep = nn.Parameter(torch.randn(size, size) * 0.15)  #+
        self.tell = nn.Linear(size, 2)

    def forward(self, series):
        state = torch.zeros(len(series), len(self.keep))
        for now in series.unbind(1):
            state = (now @ self.take + state @ self.keep).tanh()  # here
        return self.tell(state)

series = torch.randn(96, 7, 5)
up = (series[:, -1, 0] > 0).long()
net = Elman(5, 32)
opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
for rows in [*torch.randperm(96).split(24), *torch.randperm(96).split(24)]:
    opt.zero_grad()
    F.cross_entropy(net(series[rows]), up[rows]).backward()
    opt.step()
