"""What every other part of the package may import."""
