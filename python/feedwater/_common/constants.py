"""Constants that Go states and Python needs, too: written by go generate ./python/constants."""

# batch/field.go
ALIGN = 64
"""What the offsets of fields are multiples of."""

# watch/verdict/thresholds.go
FEW_STEPS = 20
"""How many steps tell something; of fewer nothing is said."""
BOUND_SHARE = 0.10
"""The share of the step from which on data is the problem."""
SLIGHT_SHARE = 0.02
"""The share below which a wait or an idle is not worth a word, and which more nodes are meant to come below."""
STUCK_SECONDS = 5
"""After how long in next a loop counts as starving, whatever its steps were."""
FULL_SHARE = 0.85
"""The share from which cores, or a machine, have nothing to spare."""
MOST_SHARE = 0.5
"""The share of workers' time in reading from which storage is to blame, and of cores in use below which work that is
queued is not what holds a node up.
"""
LAZY_SHARE = 0.7
"""The share of busy time below which a GPU that never waits for data is worth a word."""
UNSTEADY_SHARE = 0.5
"""The loss from which on the doctor does not believe that a step with data ready takes as long."""
GAIN_SHARE = 0.05
"""What must be there to gain before the doctor says that data is the problem."""
STRAGGLER_SHARE = 0.10
"""How much more than the other ranks one loses before the doctor says that they wait for it."""
PREFETCH_SHARE = 0.03
"""The wait below which the doctor finds nothing that workers could run ahead for."""
