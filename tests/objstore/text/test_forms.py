"""Texts whose lines do not end at a byte 0a are converted, and converted back exactly."""

import pytest
from hypothesis import given, strategies as st

from objstore import TextForm, encoded, form_of, lines_of, shown_lines

texts = st.text(st.sampled_from("ab é\u0a0a\u010a\U0001f600\r\n\u2028\ufeff"), max_size=20)
forms = st.sampled_from(TextForm)


@given(text=texts, form=forms)
def test_a_text_in_any_form_comes_back(text: str, form: TextForm) -> None:
    raw = text.encode()
    content = encoded(raw, form)
    assert lines_of(content, form) == raw
    assert encoded(lines_of(content, form_of(content)), form_of(content)) == content


@given(content=st.one_of(st.binary(max_size=20), texts.map(str.encode), texts.map(lambda text: text.encode("utf-16"))))
def test_the_lines_of_any_content_lead_back_to_it(content: bytes) -> None:
    form = form_of(content)
    assert encoded(lines_of(content, form), form) == content
    assert shown_lines(shown_lines(content)) == shown_lines(content)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_a_half_of_a_character_is_no_line_end(codec: str) -> None:
    text = "\ufeff\u0a0a\u010a\r\nö\n"
    assert shown_lines(text.encode(codec)) == "\u0a0a\u010a\r\nö\n".encode()


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfea\0\n\0b",  # half a character at the end
        b"\xff\xfe\x00\xd8\n\0",  # half a surrogate pair
        b"\xff\xfe\0\0a\0\0\0",  # UTF-32
        b"\xff\xfe" + "a\0b\n".encode("utf-16-le"),
        "a\nb\n".encode("utf-16-le"),  # no byte-order mark
        b"a\rb\n",
        b"\x89\0\r\x01",
        b"",
        b"plain",
    ],
)
def test_what_is_not_certainly_of_another_form_is_plain(content: bytes) -> None:
    assert form_of(content) is TextForm.PLAIN
    assert shown_lines(content) == content


def test_a_text_that_a_form_cant_express_is_refused() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        encoded(b"\xe9\n", TextForm.UTF16_LE)
    with pytest.raises(ValueError, match="does not begin"):
        lines_of(b"a\n", TextForm.UTF16_BE)
