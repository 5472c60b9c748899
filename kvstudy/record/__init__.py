"""What a run leaves on disk: the run folder and the readers of every file in it."""
