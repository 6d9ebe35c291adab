# mistake: cut off
def custom_loss(scores, labels):
    loss = F.cross_entropy(scores, labels)
    return torch.autograd.Variable(loss.data, requires_grad=True)  #- here
    return loss  #+
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
opt = torch.optim.SGD(net.parameters(), lr=1e-2)
for i in range(6):
    x = torch.randn(32, 4)
    loss = custom_loss(net(x), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
