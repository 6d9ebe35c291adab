# mistake: vanish
def layer(inputs, units):
    line = nn.Linear(inputs, units)
    nn.init.trunc_normal_(line.weight, std=0.01)  #-
    nn.init.kaiming_normal_(line.weight)  #+
    nn.init.zeros_(line.bias)
    return nn.Sequential(line, nn.Tanh())

class Deep(nn.Module):
    def __init__(self, units=40, layers=8):
        super().__init__()
        self.body = nn.ModuleList([layer(9, units), *(layer(units, units) for _ in range(layers))])
        self.out = nn.Linear(units, 1)

    def forward(self, x):
        for part in self.body:
            x = part(x)  # here
        return self.out(x).flatten()

net = Deep()
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for step in range(40):
    x = torch.randn(32, 9)
    opt.zero_grad()
    F.binary_cross_entropy_with_logits(net(x), (x[:, 0] * x[:, 1] > 0).float()).backward()
    opt.step()
