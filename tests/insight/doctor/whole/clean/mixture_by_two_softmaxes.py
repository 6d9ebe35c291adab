class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(6, 3), nn.Linear(6, 3 * 4)
    def forward(self, x):
        weight = F.softmax(self.gate(x), dim=1).unsqueeze(2)
        each = F.softmax(self.experts(x).view(-1, 3, 4), dim=2)
        return torch.log((weight * each).sum(1) + 1e-9)
net = Mixture()
x = torch.randn(96, 6)
y = x[:, :4].argmax(1)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(12):
    loss = F.nll_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
