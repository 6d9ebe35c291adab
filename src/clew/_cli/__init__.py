"""The commands of `python -m clew` that stand for a program of their own."""
