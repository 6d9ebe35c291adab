"""Operations that wait: regions, compiled functions and modules, and what became of them."""
