"""Which sample stands at which step: of a range, of a sampler, from any cursor on."""
