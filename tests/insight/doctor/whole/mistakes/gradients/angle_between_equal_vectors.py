# mistake: slope is infinite
class Rotation(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3, bias=False)
        with torch.no_grad():
            self.net.weight.copy_(torch.eye(3))

    def forward(self, v):
        return F.normalize(self.net(v), dim=1)

def angular_error(a, b):
    cosine = (a * b).sum(1).clamp(-1.0, 1.0)
    cosine = cosine * (1 - 1e-6)  #+
    return torch.acos(cosine).mean()  # here

directions = torch.cat([torch.eye(3), -torch.eye(3)]).repeat(4, 1)
model = Rotation()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(5):
    predicted = model(directions)
    loss = angular_error(predicted, directions)
    optimizer.zero_grad()
    loss.backward()
    if torch.isfinite(model.net.weight.grad).all():
        optimizer.step()
