# mistake: shuffled apart
def fit(net, pictures, kinds, size=24):
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(3):
        pictures = pictures[torch.randperm(len(pictures))]  #- here
        order = torch.randperm(len(pictures))  #+
        pictures, kinds = pictures[order], kinds[order]  #+
        for first in range(0, len(pictures), size):
            shown, wanted = pictures[first : first + size], kinds[first : first + size]
            opt.zero_grad()
            F.cross_entropy(net(shown), wanted).backward()
            opt.step()

pictures = torch.randn(96, 1, 6, 6)
kinds = (pictures.mean((1, 2, 3)) > 0).long()
fit(nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 2)), pictures, kinds)
