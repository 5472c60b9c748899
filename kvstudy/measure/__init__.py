"""Runs: launch the service, load it, profile it, seal what came out. The only part of kvstudy that starts
processes."""
