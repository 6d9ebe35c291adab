# mistake: cut off
class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(10, 16), nn.Linear(16, 16)

    def forward(self, x):
        return self.head(F.relu(self.body(x)))  # here

teacher = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16)).eval()
student, probe = Student(), nn.Linear(16, 3)
optimizer = torch.optim.Adam([*student.parameters(), *probe.parameters()], lr=1e-3)
for step in range(12):
    x = torch.randn(32, 10)
    with torch.no_grad():
        goal = teacher(x)
        z = student(x)  #-
    z = student(x)  #+
    match = 1 - F.cosine_similarity(z, goal, dim=1).mean()
    label = F.cross_entropy(probe(z), x[:, :3].argmax(1))
    optimizer.zero_grad()
    (match + label).backward()
    optimizer.step()
