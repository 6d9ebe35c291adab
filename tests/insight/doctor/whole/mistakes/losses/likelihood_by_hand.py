# mistake: softmax
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 32)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, x):
        out = self.fc2(F.relu(self.fc1(x)))
        return F.softmax(out, dim=1)  #-
        return out  #+

def cross_entropy(out, y):
    log_probs = torch.log(F.softmax(out, dim=1))  #- here
    log_probs = F.log_softmax(out, dim=1)  #+
    return -log_probs[torch.arange(len(y)), y].mean()

states = torch.randn(128, 6)
actions = states[:, :4].argmax(1)
policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
for step in range(12):
    index = torch.randint(0, 128, (32,))
    loss = cross_entropy(policy(states[index]), actions[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
