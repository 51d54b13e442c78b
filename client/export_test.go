package client

// CheckProtocol is what a fleet asks of a node's answer.
var CheckProtocol = checkProtocol
