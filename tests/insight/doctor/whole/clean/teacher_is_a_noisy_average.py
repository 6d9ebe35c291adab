student = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2))
teacher = copy.deepcopy(student).requires_grad_(False)
opt = torch.optim.Adam(student.parameters(), lr=1e-3)
for i in range(10):
    x = torch.randn(32, 6)
    out = student(x)
    with torch.no_grad():
        soft = teacher(x + 0.1 * torch.randn_like(x)).softmax(1)
    loss = F.cross_entropy(out[:8], (x[:8, 0] > 0).long()) + F.mse_loss(out.softmax(1), soft)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for p, q in zip(student.parameters(), teacher.parameters()):
            q.lerp_(p, 0.05)
