"""What the tests of engines share: processes, a training job that tells what it gets, documents' commands, figures."""
