"""Colours of the pictures, once for paper and once for a dark screen."""

from __future__ import annotations

# Steps of the scale for bytes and FLOPs; step k is reached at a share of (k / last)^2.
STEPS = 8

LIGHT = {
    "page": "#ffffff",
    "ink": "#1b2026",
    "soft": "#454d56",
    "line": "#7a8591",
    "rule": "#b4bdc7",
    "loop": "#8048c8",
    "times": "#5b2c9e",
    "bar": "#e3e8ee",
    "room0": "#f7f9fb",
    "room1": "#eff3f7",
    "leaf": "#e2f3e6",
    "leafrule": "#5f9f73",
    "result": "#dcebfd",
    "resultrule": "#4a86cf",
    "mark": "#0b62d0",
    "hit": "#ffe45c",
    "bad": "#c4162a",
}
DARK = {
    "page": "#12161b",
    "ink": "#eef2f6",
    "soft": "#ccd5de",
    "line": "#8d98a5",
    "rule": "#4d5863",
    "loop": "#c39bff",
    "times": "#dcc6ff",
    "bar": "#2b343e",
    "room0": "#181d23",
    "room1": "#1f252d",
    "leaf": "#1d3526",
    "leafrule": "#5f9f73",
    "result": "#19314e",
    "resultrule": "#5b97e0",
    "mark": "#6fb0ff",
    "hit": "#665800",
    "bad": "#ff6b78",
}


def _mix(low: str, high: str, part: float) -> str:
    channels = []
    for at in (1, 3, 5):
        a, b = int(low[at : at + 2], 16), int(high[at : at + 2], 16)
        channels.append(round(a + (b - a) * part))
    return "#{:02x}{:02x}{:02x}".format(*channels)


for _step in range(STEPS):
    LIGHT[f"heat{_step}"] = _mix("#ffffff", "#ffab4a", _step / (STEPS - 1))
    DARK[f"heat{_step}"] = _mix("#262d35", "#854304", _step / (STEPS - 1))


def step_of(part: float, whole: float) -> int:
    """The step of the colour scale for a share."""
    if part <= 0 or whole <= 0:
        return 0
    return min(STEPS - 1, max(1, round((STEPS - 1) * (part / whole) ** 0.5)))
