"""Test that every way to write a setting has one meaning."""

import pytest
from hypothesis import given, strategies as st

from objstore.disk.config.settings import SETTINGS, Setting, stored_value, value_of

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
AGE = SETTINGS["retention.older_than"]
SIZE = SETTINGS["retention.max_size"]
SWITCH = SETTINGS["gc.background"]
CHOICE = SETTINGS["git.commit"]
SENSELESS: list[object] = ["", "30", "30x", "d", "-1d", "1e3s", "1..5h", "٣d", True, 1.5, [], "9999999999999TB"]


@pytest.mark.parametrize(("text", "value"), NUMBERED.items())
def test_an_age_is_a_number_with_a_unit(text: str, value: int | None) -> None:
    assert value_of(AGE, text) == value


@pytest.mark.parametrize(("text", "value"), SIZED.items())
def test_a_size_is_bytes_in_toml_or_a_number_with_a_unit(text: object, value: int | None) -> None:
    assert value_of(SIZE, text) == value


@pytest.mark.parametrize("given", SENSELESS)
def test_an_invalid_age_is_refused_with_the_valid_form(given: object) -> None:
    with pytest.raises(ValueError, match="as in 30d, or never"):
        value_of(AGE, given)


@pytest.mark.parametrize("given", [-1, 2**63, "100", "2 GX", "1e9", 1.5, "never", False, "0x10"])
def test_an_invalid_size_is_refused_with_the_valid_form(given: object) -> None:
    with pytest.raises(ValueError, match="as in 2GB, or unlimited"):
        value_of(SIZE, given)


@pytest.mark.parametrize(
    ("setting", "given", "most"),
    [
        (SIZE, "99999999999999TB", "bytes, or unlimited"),
        (SIZE, f"{2**63}B", "bytes, or unlimited"),
        (SIZE, f"{2**63}.5 kB", "bytes, or unlimited"),
        (AGE, "999999999999999999w", "seconds, or never"),
    ],
)
def test_a_value_over_the_limit_is_refused_with_the_limit(setting: Setting, given: str, most: str) -> None:
    with pytest.raises(ValueError, match=f"^at most {2**63 - 1} {most}$"):
        value_of(setting, given)
    assert value_of(SIZE, f"{2**63 - 1}B") == 2**63 - 1


def test_a_switch_is_on_or_off() -> None:
    assert [value_of(SWITCH, word) for word in ("on", "TRUE", True, "1")] == [True] * 4
    assert [value_of(SWITCH, word) for word in ("off", "no", False, "0")] == [False] * 4
    for word in ("maybe", "", 1, None):
        with pytest.raises(ValueError, match="on or off"):
            value_of(SWITCH, word)


def test_a_choice_is_one_of_its_words() -> None:
    assert [value_of(CHOICE, word) for word in ("accept", " Keep ")] == ["accept", "keep"]
    assert stored_value(CHOICE, "KEEP") == "keep"
    for word in ("on", "", True, 1, None):
        with pytest.raises(ValueError, match="accept or keep"):
            value_of(CHOICE, word)


def test_every_default_is_a_value_of_its_kind() -> None:
    for setting in SETTINGS.values():
        value_of(setting, setting.default)


@given(number=st.integers(0, 10**9), unit=st.sampled_from(["s", "min", "h", "d", "w"]))
def test_a_stored_setting_is_read_back_with_its_meaning(number: int, unit: str) -> None:
    text = f"{number}{unit}"
    assert value_of(AGE, stored_value(AGE, f" {text}\n")) == value_of(AGE, text)
