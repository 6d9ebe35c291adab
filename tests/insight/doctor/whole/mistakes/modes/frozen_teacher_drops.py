# mistake: a frozen model runs in training mode
teacher = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3))
student = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
for p in teacher.parameters():
    p.requires_grad_(False)
teacher.eval()  #+
opt = torch.optim.Adam(student.parameters(), lr=1e-3)
for i in range(8):
    x = torch.randn(16, 6)
    with torch.no_grad():
        soft = F.softmax(teacher(x), dim=1)  # here
    loss = F.kl_div(F.log_softmax(student(x), dim=1), soft, reduction="batchmean")
    opt.zero_grad()
    loss.backward()
    opt.step()
