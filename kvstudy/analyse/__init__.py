"""From sealed runs to tables, verdicts and statistics. Pure: reads run folders, starts no process, imports no
measuring code."""
