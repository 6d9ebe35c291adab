"""Operations written in Python; most files are loaded when a name of theirs is first asked for."""
