"""Names that look like tags are seen in the study's sentences."""

from kvstudy.present.markdown import Markdown, without_tags


def test_what_looks_like_a_tag_is_text():
    assert without_tags("queue<int> beats a</b>") == r"queue\<int> beats a\</b>"


def test_code_and_signs_of_less_stay_as_they_are():
    for text in ("`queue<int>` and p < 0.05, a <5", "**bold** [link](a.ipynb)"):
        assert without_tags(text) == text


def test_a_sentence_within_another_is_not_treated_twice():
    inner = Markdown("of queue<int>")
    assert Markdown(f"{inner.data}, **yes**").data == r"of queue\<int>, **yes**"
