"""Test that every way to write a setting has one meaning."""

import pytest
from hypothesis import given, strategies as st

from objstore.config.settings import SETTINGS, SettingKind, stored_value, value_of

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


@pytest.mark.parametrize(("text", "value"), NUMBERED.items())
def test_an_age_is_a_number_with_a_unit(text: str, value: int | None) -> None:
    assert value_of(SettingKind.AGE, text) == value


@pytest.mark.parametrize(("text", "value"), SIZED.items())
def test_a_size_is_bytes_in_toml_or_a_number_with_a_unit(text: object, value: int | None) -> None:
    assert value_of(SettingKind.SIZE, text) == value


@pytest.mark.parametrize("given", SENSELESS)
def test_an_invalid_age_is_refused_with_the_valid_form(given: object) -> None:
    with pytest.raises(ValueError, match="as in 30d, or never"):
        value_of(SettingKind.AGE, given)


@pytest.mark.parametrize("given", [-1, 2**63, "100", "2 GX", "1e9", 1.5, "never", False, "0x10"])
def test_an_invalid_size_is_refused_with_the_valid_form(given: object) -> None:
    with pytest.raises(ValueError, match="as in 2GB, or unlimited"):
        value_of(SettingKind.SIZE, given)


@pytest.mark.parametrize(
    ("kind", "given", "most"),
    [
        (SettingKind.SIZE, "99999999999999TB", "bytes, or unlimited"),
        (SettingKind.SIZE, f"{2**63}B", "bytes, or unlimited"),
        (SettingKind.SIZE, f"{2**63}.5 kB", "bytes, or unlimited"),
        (SettingKind.AGE, "999999999999999999w", "seconds, or never"),
    ],
)
def test_a_value_over_the_limit_is_refused_with_the_limit(kind: SettingKind, given: str, most: str) -> None:
    with pytest.raises(ValueError, match=f"^at most {2**63 - 1} {most}$"):
        value_of(kind, given)
    assert value_of(SettingKind.SIZE, f"{2**63 - 1}B") == 2**63 - 1


def test_a_switch_is_on_or_off() -> None:
    assert [value_of(SettingKind.SWITCH, word) for word in ("on", "TRUE", True, "1")] == [True] * 4
    assert [value_of(SettingKind.SWITCH, word) for word in ("off", "no", False, "0")] == [False] * 4
    for word in ("maybe", "", 1, None):
        with pytest.raises(ValueError, match="on or off"):
            value_of(SettingKind.SWITCH, word)


def test_every_default_is_a_value_of_its_kind() -> None:
    for setting in SETTINGS.values():
        value_of(setting.kind, setting.default)


@given(number=st.integers(0, 10**9), unit=st.sampled_from(["s", "min", "h", "d", "w"]))
def test_a_stored_setting_is_read_back_with_its_meaning(number: int, unit: str) -> None:
    text = f"{number}{unit}"
    assert value_of(SettingKind.AGE, stored_value(SettingKind.AGE, f" {text}\n")) == value_of(SettingKind.AGE, text)
