"""Which does not parse."""
def broken(:
    pass
