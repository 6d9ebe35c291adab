# mistake: target of a loss
teacher = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
student = nn.Linear(8, 4)
opt = torch.optim.Adam(student.parameters(), lr=1e-3)
for i in range(6):
    x = torch.randn(32, 8)
    wanted = F.softmax(teacher(x) / 2, dim=1)
    wanted = wanted.detach()  #+
    loss = F.kl_div(F.log_softmax(student(x) / 2, dim=1), wanted, reduction="batchmean")  # here
    opt.zero_grad()
    loss.backward()
    opt.step()
