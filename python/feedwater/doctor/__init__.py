"""Says whether data is what a training loop waits for, what that costs, and what to do.

    probe/      runs inside the unmodified script and writes numbers to a folder; changes no value
    inject/     puts the probe into every Python that the script starts
    report      the folder → one Run per process
    measured    a Run → Signals: shares, seconds per step, bytes per sample
    step        what a step would take with more workers, less work, or free cores
    causes      Signals → what may hold data back, each with what its remedy would give
    rules       Signals of all ranks → one Verdict
    advice      Signals → what becomes of the usual tips
    screen      a Verdict → one screen of text
    live        the same from inside a program: diagnose(), and doctor() of a Loader
    curve       the num_workers curve, measured for diagnose()

This module imports nothing: the probe passes through it inside programs that know nothing of numpy.
"""
