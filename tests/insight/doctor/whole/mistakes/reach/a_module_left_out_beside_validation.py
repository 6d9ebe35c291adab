# mistake: in no optimizer
body = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1))
top = nn.Linear(16, 2)
opt = torch.optim.Adam(body.parameters(), lr=1e-2)  #- here
opt = torch.optim.Adam([*body.parameters(), *top.parameters()], lr=1e-2)  #+
for epoch in range(4):
    body.train()
    top.train()
    for _ in range(8):
        x = torch.randn(16, 6)
        loss = F.cross_entropy(top(body(x)), (x[:, 0] > 0).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
    body.eval()
    top.eval()
    with torch.no_grad():
        x = torch.randn(32, 6)
        F.cross_entropy(top(body(x)), (x[:, 0] > 0).long()).item()
