# mistake: plain
class Poly(nn.Module):
    def __init__(self):
        super().__init__()
        self.coefs = tuple(nn.Parameter(torch.randn(())) for _ in range(4))  #- here
        self.coefs = nn.ParameterList(torch.randn(()) for _ in range(4))  #+
        self.bias = nn.Parameter(torch.zeros(()))
    def forward(self, x):
        return self.bias + sum(c * x ** (i + 1) for i, c in enumerate(self.coefs))
x = torch.linspace(-1, 1, 50)
y = x.sin()
m = Poly()
opt = torch.optim.SGD(m.parameters(), lr=0.05)
for _ in range(12):
    loss = F.mse_loss(m(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
