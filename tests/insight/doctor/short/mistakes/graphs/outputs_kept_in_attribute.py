# mistake: kept with their graphs
class Log:
    def __init__(self):
        self.outputs = []
    def add(self, output):
        self.outputs.append(output)  #- here
        self.outputs.append(output.detach())  #+
net, log = nn.Linear(4, 3), Log()
opt = clew.optim.SGD(net.parameters(), lr=0.01)
for step in range(8):
    out = net(x)
    opt.zero_grad()
    F.cross_entropy(out, labels).backward()
    opt.step()
    log.add(out)
sum(log.outputs)
