student = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
teacher = copy.deepcopy(student).eval().requires_grad_(False)
opt = torch.optim.Adam(student.parameters(), lr=1e-3)
for step in range(40):
    x = torch.randn(32, 6)
    with torch.no_grad():
        sure, label = teacher(x).softmax(1).max(1)
    each = F.cross_entropy(student(x + 0.1 * torch.randn_like(x)), label, reduction="none")
    loss = (each * (sure > 0.3)).mean() + 0.01 * student(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
