# mistake: cut off
backbone, head = nn.Sequential(nn.Linear(6, 16), nn.ReLU()), nn.Linear(16, 2)
opt = torch.optim.Adam([*backbone.parameters(), *head.parameters()], lr=1e-3)
x = torch.randn(80, 6)
y = (x[:, 0] > 0).long()
for _ in range(10):
    rows = torch.randint(0, 80, (20,))
    with torch.no_grad():  #-
    if True:  #+
        features = backbone(x[rows])  # here
    loss = F.cross_entropy(head(features), y[rows])
    opt.zero_grad()
    loss.backward()
    opt.step()
