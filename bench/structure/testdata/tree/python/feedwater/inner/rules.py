__all__ = ["judge"]

STALL = 0.10


def judge(report):
    return report.stall >= STALL


def wait_long(wait):
    return wait > 5
