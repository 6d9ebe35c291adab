# mistake: added up without dividing
def backward_of(net, part):
    loss = F.l1_loss(net(part), part.sum(1, keepdim=True))
    loss.backward()  # here
    return loss.detach()

net = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.02)
for step in range(8):
    opt.zero_grad()
    total = sum(backward_of(net, part) for part in torch.randn(36, 6).split(12))
    for p in net.parameters():  #+
        p.grad /= 3  #+
    opt.step()
