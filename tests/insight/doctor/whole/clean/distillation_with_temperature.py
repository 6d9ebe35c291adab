teacher = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 4))
student = nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 4))
teacher.eval()
x = torch.randn(120, 10)
y = x[:, :4].argmax(1)
optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
kl = nn.KLDivLoss(reduction="batchmean")
T, alpha = 3.0, 0.5
for epoch in range(3):
    student.train()
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True):
        with torch.no_grad():
            teacher_logits = teacher(xb)
        logits = student(xb)
        soft = kl(F.log_softmax(logits / T, dim=1), F.softmax(teacher_logits / T, dim=1)) * T * T
        loss = alpha * soft + (1 - alpha) * F.cross_entropy(logits, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
