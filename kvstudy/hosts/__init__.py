"""Where things run: a process of its own group that cannot outlive its run, and Ctrl-C at any moment."""
