"""Inner names of spreading values over devices."""

from __future__ import annotations

from clew._torch.absent import _GPU, absent

for _name in "Broadcast Gather ReduceAddCoalesced Scatter _get_stream".split():
    globals()[_name] = absent("nn.parallel._functions", _name, _GPU)
