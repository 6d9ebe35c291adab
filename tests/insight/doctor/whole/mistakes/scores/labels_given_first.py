# mistake: input and target of a loss are swapped
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(16, 6)
    y = (x[:, :1] > 0).float()
    loss = F.binary_cross_entropy_with_logits(y, net(x).sigmoid())  #- here
    loss = F.binary_cross_entropy_with_logits(net(x), y)  #+
    opt.zero_grad()
    loss.backward()
    opt.step()
