"""From a question in an experiment file to the list of runs that answers it. Nothing here starts a
process."""
