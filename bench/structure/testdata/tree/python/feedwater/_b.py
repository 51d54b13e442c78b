def share(n, ranks):
    from . import _a

    return -(-n // ranks.world)
