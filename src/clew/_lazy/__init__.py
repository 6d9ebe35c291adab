"""Functions of the top level that are loaded when first asked for (see clew._namespace)."""
