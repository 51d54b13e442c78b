def at():
    return None
