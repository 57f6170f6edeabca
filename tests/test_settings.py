"""Settings: every spelling has one meaning, and a value in a file is changed with everything else left as it is."""

import pytest
from hypothesis import example, given, strategies as st

from objstore.settings import SETTINGS, Kind, literal_of, value_of
from objstore.tomltext import parsed, with_value, without_value

NUMBERED = {
    "30d": 30 * 86_400,
    "30 d": 30 * 86_400,
    "1.5h": 5_400,
    "90min": 5_400,
    "2W": 14 * 86_400,
    "0s": 0,
    "never": None,
}
SIZED = {
    "2GB": 2 * 10**9,
    "2 gb": 2 * 10**9,
    "1.5MiB": 3 * 2**19,
    "100B": 100,
    "1kB": 1000,
    "1KiB": 1024,
    "unlimited": None,
    2**40: 2**40,
}
SENSELESS: list[object] = ["", "30", "30x", "d", "-1d", "1e3s", "1..5h", "٣d", True, 1.5, [], "9999999999999TB"]


@pytest.mark.parametrize(("spelling", "value"), NUMBERED.items())
def test_an_age_is_a_number_with_a_unit(spelling: str, value: int | None) -> None:
    assert value_of(Kind.AGE, spelling) == value


@pytest.mark.parametrize(("spelling", "value"), SIZED.items())
def test_a_size_is_bytes_in_toml_or_a_number_with_a_unit(spelling: object, value: int | None) -> None:
    assert value_of(Kind.SIZE, spelling) == value


@pytest.mark.parametrize("given", SENSELESS)
def test_what_is_no_age_is_refused_with_how_it_is_spelt(given: object) -> None:
    with pytest.raises(ValueError, match="as in 30d, or never"):
        value_of(Kind.AGE, given)


@pytest.mark.parametrize("given", [-1, 2**63, "100", "2 GX", "1e9", 1.5, "never", False, "0x10"])
def test_what_is_no_size_is_refused_with_how_it_is_spelt(given: object) -> None:
    with pytest.raises(ValueError, match="as in 2GB, or unlimited"):
        value_of(Kind.SIZE, given)


@pytest.mark.parametrize(
    ("kind", "given", "most"),
    [
        (Kind.SIZE, "99999999999999TB", "bytes, or unlimited"),
        (Kind.SIZE, f"{2**63}B", "bytes, or unlimited"),
        (Kind.SIZE, f"{2**63}.5 kB", "bytes, or unlimited"),
        (Kind.AGE, "999999999999999999w", "seconds, or never"),
    ],
)
def test_of_what_is_too_much_it_is_said_how_much_there_may_be(kind: Kind, given: str, most: str) -> None:
    with pytest.raises(ValueError, match=f"^at most {2**63 - 1} {most}$"):
        value_of(kind, given)
    assert value_of(Kind.SIZE, f"{2**63 - 1}B") == 2**63 - 1


def test_a_switch_is_on_or_off() -> None:
    assert [value_of(Kind.SWITCH, word) for word in ("on", "TRUE", True, "1")] == [True] * 4
    assert [value_of(Kind.SWITCH, word) for word in ("off", "no", False, "0")] == [False] * 4
    for word in ("maybe", "", 1, None):
        with pytest.raises(ValueError, match="on or off"):
            value_of(Kind.SWITCH, word)


def test_every_default_is_a_value_of_its_kind() -> None:
    for setting in SETTINGS.values():
        value_of(setting.kind, setting.default)


@given(number=st.integers(0, 10**9), unit=st.sampled_from(["s", "min", "h", "d", "w"]))
def test_what_is_written_down_is_read_as_it_was_meant(number: int, unit: str) -> None:
    spelling = f"{number}{unit}"
    read = parsed(f"x = {literal_of(Kind.AGE, spelling)}")["x"]
    assert value_of(Kind.AGE, read) == value_of(Kind.AGE, spelling)


# ---- in a file

COMMENTED = """\
# mine
[retention]  # how long
older_than = "30d"   # a month

# the other
[gc]
background = true
"""


def test_a_value_is_exchanged_where_it_stands() -> None:
    changed = with_value(COMMENTED, "retention.older_than", '"2w"')
    assert changed == COMMENTED.replace('"30d"', '"2w"')


def test_a_new_key_stands_behind_the_last_one_of_its_table() -> None:
    changed = with_value(COMMENTED, "retention.max_size", '"1GB"')
    assert changed == COMMENTED.replace("# a month\n", '# a month\nmax_size = "1GB"\n')


def test_a_value_that_goes_takes_its_line_and_nothing_else() -> None:
    assert without_value(COMMENTED, "gc.background") == COMMENTED.replace("background = true\n", "")
    assert without_value(COMMENTED, "gc.nothing") == COMMENTED


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[a]\nb = "x"\n'),
        ("[c]\nd = 1", '[c]\nd = 1\n\n[a]\nb = "x"\n'),
        ("[c]\r\nd = 1\r\n", '[c]\r\nd = 1\r\n\r\n[a]\r\nb = "x"\r\n'),
        ("a.c = 1\n", 'a.b = "x"\na.c = 1\n'),
        ("a . 'b' = 1 # why\n", "a . 'b' = \"x\" # why\n"),
        ('["a"]\n"b" = 1', '["a"]\n"b" = "x"'),
        ('t = """\n[a]\nb = 1\n"""\n', 't = """\n[a]\nb = 1\n"""\n\n[a]\nb = "x"\n'),
        ("[c]\nb = 1\n[a]\nb = 2\n", '[c]\nb = 1\n[a]\nb = "x"\n'),
    ],
)
def test_a_value_goes_where_a_person_would_put_it(before: str, after: str) -> None:
    assert with_value(before, "a.b", '"x"') == after


@pytest.mark.parametrize("text", ["a = {c = 1}\n", "a = 1\n", "[[a]]\nb = 1\n", "[a]\nb = [\n 1,\n]\n", "= broken"])
def test_what_cannot_be_changed_alone_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        with_value(text, "a.b", '"x"')


KEYS = st.sampled_from(["b", "c", '"b"', "other"])
LINES = st.one_of(
    st.builds(
        lambda key, value: f"{key} = {value}", KEYS, st.sampled_from(["1", '"b = 2"', "'''\nb = 3\n'''", "true"])
    ),
    st.sampled_from(["[a]", "[z]", "[a.b]", "# b = 4", "", "  # note", "a.b = 5", "['a']"]),
)


@given(lines=st.lists(LINES, max_size=8), end=st.sampled_from(["\n", "\r\n", ""]))
def test_setting_and_taking_out_change_one_value_of_any_text(lines: list[str], end: str) -> None:
    text = "\n".join(lines) + end
    try:
        before = parsed(text)
        changed = with_value(text, "a.b", '"new"')
    except ValueError:
        return
    said = parsed(changed)
    assert said["a"].pop("b") == "new"
    before.get("a", {}).pop("b", None)
    assert {**said, "a": said["a"]} == {"a": {}, **before}
    # Every line that was there is there, but for the one whose value was exchanged.
    assert len(set(text.splitlines()) - set(changed.splitlines())) <= 1
    gone = without_value(changed, "a.b")
    assert "b" not in parsed(gone).get("a", {})


@given(lines=st.lists(LINES, min_size=1, max_size=8), end=st.sampled_from(["\n", "\r\n"]))
@example(lines=["c = 1", ""], end="\n")
def test_a_value_that_is_set_and_taken_out_again_leaves_the_text_as_it_was(lines: list[str], end: str) -> None:
    text = "".join(f"{line}{end}" for line in lines)
    try:
        if "a" in parsed(text) or not text.strip():
            return
    except ValueError:
        return
    assert without_value(with_value(text, "a.b", '"new"'), "a.b") == text


def test_what_is_not_a_number_keeps_nobody_from_setting_another_value() -> None:
    assert with_value("[c]\nd = nan\n", "a.b", "1") == "[c]\nd = nan\n\n[a]\nb = 1\n"
