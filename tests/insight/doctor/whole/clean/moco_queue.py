q_enc = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8))
k_enc = copy.deepcopy(q_enc)
for p in k_enc.parameters():
    p.requires_grad = False
queue = F.normalize(torch.randn(8, 128), dim=0)
ptr = 0
opt = torch.optim.SGD(q_enc.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
for step in range(12):
    x = torch.randn(16, 10)
    q = F.normalize(q_enc(x + 0.1 * torch.randn_like(x)), dim=1)
    with torch.no_grad():
        for pk, pq in zip(k_enc.parameters(), q_enc.parameters()):
            pk.data = pk.data * 0.99 + pq.data * 0.01
        k = F.normalize(k_enc(x + 0.1 * torch.randn_like(x)), dim=1)
    pos = (q * k).sum(1, keepdim=True)
    neg = q @ queue.clone().detach()
    logits = torch.cat([pos, neg], 1) / 0.2
    loss = F.cross_entropy(logits, torch.zeros(16, dtype=torch.long))
    opt.zero_grad()
    loss.backward()
    opt.step()
    queue[:, ptr : ptr + 16] = k.t()
    ptr = (ptr + 16) % 128
