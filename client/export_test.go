package client

// Checked tells tests whether released batches are checked.
const Checked = checked
