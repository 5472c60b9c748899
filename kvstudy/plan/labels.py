"""What a series of runs may be called: a word that files can hold and charts show as it is written."""

from kvstudy.errors import ExperimentError

HINT = "write it in letters, digits and signs other than < and >: queue-int, not queue<int>"


def check_label(label: str) -> None:
    """ExperimentError for a label that pages would lose: in the texts of charts <…> is a tag."""
    if not label.isprintable() or "<" in label or ">" in label:
        raise ExperimentError(f"not a label: {label!r}", HINT)
