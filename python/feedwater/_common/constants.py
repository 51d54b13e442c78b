"""Constants that Go states and Python needs, too: written by go generate ./python/constants."""

# batch/field.go
ALIGN = 64
"""What the offsets of fields are multiples of."""

# watch/verdict/thresholds.go
FEW_STEPS = 20
"""How many steps tell something; of fewer nothing is said."""
BOUND_SHARE = 0.10
"""The share of the step from which on data is the problem."""
COPY_SHARE = 0.25
"""The share of pictures without a copy that could have had one from which room for copies is the first thing to do."""
UNSTEADY_SHARE = 0.5
"""The loss from which on the doctor does not believe that a step with data ready takes as long."""
GAIN_SHARE = 0.05
"""What must be there to gain before the doctor says that data is the problem."""
STRAGGLER_SHARE = 0.10
"""How much more than the other ranks one loses before the doctor says that they wait for it."""
PREFETCH_SHARE = 0.03
"""The wait below which the doctor finds nothing that workers could run ahead for."""
