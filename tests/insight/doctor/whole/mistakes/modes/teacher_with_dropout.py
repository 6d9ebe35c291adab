# mistake: a teacher runs in training mode
def build(hidden):
    return nn.Sequential(
        nn.Linear(8, hidden), nn.ReLU(), nn.Dropout(0.5), nn.Linear(hidden, 3)
    )
teacher, student = build(64), build(8)
teacher.eval()  #+
opt = torch.optim.Adam(student.parameters(), 1e-3)
for i in range(8):
    x = torch.randn(32, 8)
    with torch.no_grad():
        soft = F.softmax(teacher(x) / 2, 1)  # here
    loss = F.kl_div(F.log_softmax(student(x) / 2, 1), soft, reduction="batchmean")
    opt.zero_grad()
    loss.backward()
    opt.step()
