body = nn.Sequential(nn.Linear(8, 24), nn.ReLU())
body_opt = torch.optim.Adam(body.parameters(), 1e-3)
for task in range(6):
    head = nn.Linear(24, 2)
    opt = torch.optim.SGD(head.parameters(), lr=0.1)
    w = torch.randn(8)
    for _ in range(4):
        x = torch.randn(32, 8)
        loss = F.cross_entropy(head(body(x)), (x @ w > 0).long())
        opt.zero_grad()
        body_opt.zero_grad()
        loss.backward()
        opt.step()
        body_opt.step()
