"""What a subject can tell of itself beside its answers. Each kind may be absent, and is then not recorded."""
