net = nn.Linear(6, 2)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)

def closure(first):
    x = torch.randn(8, 6)
    loss = F.cross_entropy(net(x), (x[:, 0] > 0).long()) / 2
    if first:
        opt.zero_grad()
    loss.backward()
    return loss

for i in range(12):
    closure(True)
    opt.step(lambda: closure(False))
