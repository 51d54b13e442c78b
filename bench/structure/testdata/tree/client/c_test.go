package client

func inTests() {}
